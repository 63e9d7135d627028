"""Features besides codes: which columns become features, and of which kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.model.arrays import Floats
from comorb.model.emissions.base import Feature, FeatureTable, Kind, Transform
from comorb.records.values import yes_no

KINDS: tuple[Kind, ...] = get_args(Kind)
TRANSFORMS: tuple[Transform, ...] = get_args(Transform)


@dataclass(frozen=True)
class Asked:
    """A covariate that is to be a feature; its kind is recognised where none is said.

    With ``told`` it was asked for by name; an item of a table may also be left out.
    """

    name: str
    kind: Kind | None = None
    transform: Transform = "none"
    told: bool = True

    @classmethod
    def parse(cls, text: str) -> Asked:
        """Return what NAME, NAME=KIND or NAME=number:TRANSFORM asks for.

        >>> Asked.parse("los=number:log")
        Asked(name='los', kind='number', transform='log', told=True)
        """
        name, sign, rest = text.rpartition("=")
        if not sign:
            return cls(text)
        kind, _, way = rest.partition(":")
        kinds = [one for one in KINDS if one == kind]
        ways = [one for one in TRANSFORMS if one == (way or "none")]
        if not (name and kinds and ways) or (way and kind != "number"):
            raise RecordsError("feature.form", kinds=KINDS, text=text)
        return cls(name, kinds[0], ways[0])


AnyAsked = Asked | Feature


def as_asked(features: Mapping[str, str] | Sequence[str] | str) -> tuple[Asked, ...]:
    """Return what ``{"age": "number"}``, ``["age", "los=number:log"]`` or ``"age"`` asks for."""
    if isinstance(features, str):
        features = [features]
    if isinstance(features, Mapping):
        features = [f"{name}={kind}" for name, kind in features.items()]
    return tuple(map(Asked.parse, features))


def written(asked: AnyAsked) -> str:
    """Return the word that asks for a feature on the command line."""
    kind = f"={asked.kind}" if asked.kind else ""
    return f"{asked.name}{kind}" + (f":{asked.transform}" if asked.transform != "none" else "")


LEVELS = 8  # of a category, at most; of more, the most common stay
OTHERS = "other values"
ANSWERS = ("no", "yes")
MISSING_NOTE = Message("note.missing_feature")
_LEAST = 10  # values that a feature needs, or half as many as there are records
_MANY = 10_000


@dataclass(frozen=True)
class Holding:
    """What a column holds, in figures that add up over parts of its rows.

    What is refused for it tells no number of records, which may be few.

    ``counts`` are those of its texts, and of its numbers where they are said to be labels.
    """

    rows: int = 0
    present: int = 0
    are_numbers: bool = True
    counts: Mapping[str, int] = field(default_factory=dict)
    low: float = np.inf
    high: float = -np.inf
    infinite: int = 0
    negative: int = 0
    broken: int = 0

    def __add__(self, other: Holding) -> Holding:
        counts = dict(self.counts)
        for text, count in other.counts.items():
            counts[text] = counts.get(text, 0) + count
        return Holding(
            self.rows + other.rows,
            self.present + other.present,
            self.are_numbers and other.are_numbers,
            counts,
            min(self.low, other.low),
            max(self.high, other.high),
            self.infinite + other.infinite,
            self.negative + other.negative,
            self.broken + other.broken,
        )


def holding(asked: AnyAsked, covariates: pa.Table) -> Holding:
    """Return what the column of a feature holds; refuse one that isn't there, and days."""
    column = column_of(asked.name, covariates)
    rows = len(column)
    if not _is_number(column.type) or asked.kind in ("category", "binary"):
        pairs = pc.value_counts(_as_texts(asked.name, column).drop_null())
        texts, counts = pairs.field("values").to_pylist(), pairs.field("counts").to_pylist()
        if len(texts) > _MANY:
            raise RecordsError("feature.many_texts", column=asked.name, limit=_MANY)
        found = dict(zip(texts, counts, strict=True))
        return Holding(rows, sum(counts), _is_number(column.type), found)
    values = _as_numbers(column)
    values = values[~np.isnan(values)]
    finite = values[np.isfinite(values)]
    return Holding(
        rows,
        values.size,
        low=float(finite.min(initial=np.inf)),
        high=float(finite.max(initial=-np.inf)),
        infinite=int(values.size - finite.size),
        negative=int((finite < 0).sum()),
        broken=int((finite != np.round(finite)).sum()),
    )


def decide_all(
    asked: Sequence[AnyAsked], held: Sequence[Holding]
) -> tuple[tuple[Feature, ...], tuple[str, ...]]:
    """Return the features that columns become, and what the ledger says of them."""
    decided = [decide(*pair) for pair in zip(asked, held, strict=True)]
    features = tuple(feature for feature, _ in decided if feature is not None)
    notes = [note for _, told in decided for note in told]
    return features, (*notes, MISSING_NOTE) if features else tuple(notes)


def decide(asked: AnyAsked, held: Holding) -> tuple[Feature | None, tuple[str, ...]]:
    """Return the feature that a column becomes, and what the ledger says of it.

    None is returned of an item that nobody asked for by name and that can't tell records apart. A
    feature of a model stays what it is, and of levels that it doesn't know nothing is known.
    """
    if isinstance(asked, Feature):
        lost = sum(count for text, count in held.counts.items() if np.isnan(_place(text, asked)))
        note = Message("note.feature_unseen", n=lost, column=asked.name)
        return asked, (note,) if lost else ()
    if held.infinite:
        raise RecordsError("feature.infinite", column=asked.name)
    if problem := _useless(held):
        if asked.told:
            raise RecordsError("feature.no_use", column=asked.name, problem=problem)
        return None, (Message("note.item_left_out", item=asked.name, problem=problem),)
    kind = asked.kind or _recognised(asked.name, held)
    feature = Feature(asked.name, kind, _levels(asked, kind, held), asked.transform)
    if kind in ("count", "number"):
        _check_numbers(feature, held)
    return feature, (_note(asked, feature, held),)


def feature_table(features: Sequence[Feature], covariates: pa.Table, rows: int) -> FeatureTable:
    """Return the values of features, of a number of rows."""
    values = np.empty((rows, len(features)))
    for place, feature in enumerate(features):
        values[:, place] = _values(feature, column_of(feature.name, covariates))
    return FeatureTable(tuple(features), values)


def column_of(name: str, covariates: pa.Table) -> pa.ChunkedArray:
    """Return the covariate that is to be a feature, or say which there are."""
    names = covariates.column_names
    if name not in names:
        near = get_close_matches(name, names, 3, 0.5) or names[:12]
        have = (
            Message("text.nearest", near=map(repr, near))
            if near
            else Message("text.there_are_none")
        )
        raise RecordsError("feature.no_column", name=name, have=have)
    return covariates[name]


def _useless(held: Holding) -> str:
    """Return why a column can't tell records apart, if it can't."""
    if held.present < min(_LEAST, held.rows / 2):
        return Message("feature.hardly_any")
    if len(held.counts) == 1 or (not held.counts and held.low == held.high):
        return Message("feature.one_value")
    return ""


def _recognised(name: str, held: Holding) -> Kind:
    if name == "sex":
        return "category"
    if held.are_numbers and not held.counts:
        is_flag = (held.low, held.high) == (0, 1) and not held.broken
        return "binary" if is_flag and name != "age" else "number"
    answers = {yes_no(text) for text in held.counts}
    if answers == {True, False}:
        return "binary"
    if len(held.counts) > LEVELS and 2 * len(held.counts) > held.present:
        raise RecordsError("feature.own_texts", name=name)
    return "category"


def _levels(asked: Asked, kind: Kind, held: Holding) -> tuple[str, ...]:
    if kind in ("count", "number"):
        return ()
    if kind == "binary":
        answers = {yes_no(text) for text in held.counts}
        if not held.counts or answers <= {True, False}:
            return ANSWERS
        if len(held.counts) != 2:
            raise RecordsError("feature.binary", column=asked.name, n=len(held.counts))
    ranked = sorted(held.counts, key=lambda text: (-held.counts[text], _as_sorted(text)))
    if len(ranked) <= LEVELS:
        return tuple(sorted(ranked, key=_as_sorted))
    return (*sorted(ranked[: LEVELS - 1], key=_as_sorted), OTHERS)


def _check_numbers(feature: Feature, held: Holding) -> None:
    """Refuse texts among numbers, and numbers that are no counts or have no logarithm."""
    name = feature.name
    if not held.are_numbers:
        raise RecordsError("feature.texts", name=name, kind=feature.kind)
    if feature.kind == "count" and (held.negative or held.broken):
        raise RecordsError("feature.no_count", name=name)
    if feature.transform == "log" and held.low <= 0:
        raise RecordsError("feature.no_logarithm", name=name)


def _note(asked: Asked, feature: Feature, held: Holding) -> str:
    """Return what the ledger says of a feature: its kind, who said it, and what is missing."""
    key = "note.feature_said" if asked.kind and asked.told else "note.feature_found"
    first = Message(key, feature=feature.name, kind=feature.kind)
    whole = feature.kind == "number" and not held.broken and held.low >= 0
    if whole and not asked.kind and feature.name != "age":
        first = Message("note.feature_whole", note=first, feature=feature.name)
    parts = [first]
    levels = len(held.counts)
    if feature.levels[-1:] == (OTHERS,):
        rare = levels - LEVELS + 1
        parts.append(Message("note.feature_levels", rare=rare, levels=levels, others=OTHERS))
    if feature.kind == "binary" and feature.levels != ANSWERS:
        parts.append(Message("note.feature_yes", level=feature.levels[1]))
    missing = held.rows - held.present
    parts.append(Message("note.feature_missing", missing=missing, n=held.rows))
    return Message("text.parts", parts=parts)


def _values(feature: Feature, column: pa.ChunkedArray) -> Floats:
    if not feature.levels:
        if not _is_number(column.type) and column.null_count < len(column):
            _check_numbers(feature, Holding(are_numbers=False))
        return _as_numbers(column)
    texts = _as_texts(feature.name, column).dictionary_encode().combine_chunks()
    if isinstance(texts, pa.ChunkedArray):
        texts = pa.concat_arrays(texts.chunks) if texts.num_chunks else pa.array([], pa.string())
        texts = texts.dictionary_encode()
    places = [_place(text, feature) for text in texts.dictionary.to_pylist()]
    found = pc.fill_null(texts.indices, len(places)).to_numpy(zero_copy_only=False)
    values: Floats = np.array([*places, np.nan])[found]
    return values


def _place(text: str, feature: Feature) -> float:
    """Return the place of a level; rare ones are among the others, where a feature has those."""
    if feature.levels == ANSWERS:
        answer = yes_no(text)
        return np.nan if answer is None else float(answer)
    level = text if text in feature.levels else OTHERS
    return float(feature.levels.index(level)) if level in feature.levels else np.nan


def _as_numbers(column: pa.ChunkedArray) -> Floats:
    if not _is_number(column.type):
        return np.full(len(column), np.nan)
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=np.float64)


def _as_texts(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return labels as texts, whole numbers without the '.0' of their type."""
    kind = column.type
    if pa.types.is_temporal(kind) or pa.types.is_nested(kind):
        raise RecordsError("feature.days", name=name)
    if pa.types.is_boolean(kind):
        return pc.if_else(column, ANSWERS[1], ANSWERS[0])
    if pa.types.is_floating(kind):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
        return pc.replace_substring_regex(column.cast(pa.string()), r"^(-?[0-9]+)\.0$", r"\1")
    if _is_number(kind):
        return column.cast(pa.string())
    texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _as_sorted(text: str) -> tuple[bool, float, str]:
    try:
        return False, float(text), text
    except ValueError:
        return True, 0.0, text
