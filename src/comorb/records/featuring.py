"""Featuring: covariates become features of the model, each of a kind, with gaps where one lacks.

A code that a record doesn't have is a no. A feature that it doesn't have is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import RecordsError
from comorb.model.arrays import Floats
from comorb.model.features import Feature, FeatureTable, Kind
from comorb.records.asked import AnyAsked, Asked
from comorb.records.values import yes_no

LEVELS = 8  # of a category, at most; of more, the most common stay
OTHERS = "other values"
ANSWERS = ("no", "yes")
MISSING_NOTE = (
    "a code that a record doesn't have is a no; a feature that it doesn't have is missing and says "
    "nothing about its cluster"
)
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
            raise RecordsError(
                f"The column {asked.name!r} holds more than {_MANY:,} different texts, and a "
                "feature needs few levels; group them, or leave it out of the features."
            )
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
        note = (
            f"{lost:,} records have a value of {asked.name!r} that the model has not seen, which "
            "counts as missing"
        )
        return asked, (note,) if lost else ()
    if held.infinite:
        raise RecordsError(
            f"The column {asked.name!r} holds numbers that are infinite; correct them, or leave "
            "them empty."
        )
    if problem := _useless(held):
        if asked.told:
            raise RecordsError(
                f"The column {asked.name!r} {problem}, which can't tell records apart; leave it "
                "out of the features."
            )
        return None, (f"the item {asked.name!r} {problem}, and was left out",)
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
        have = f"the nearest are {', '.join(map(repr, near))}" if near else "there are none"
        raise RecordsError(
            f"No column {name!r} is there to be a feature; {have}. Name one of the columns beside "
            "the codes, by its own name or that of its role."
        )
    return covariates[name]


def _useless(held: Holding) -> str:
    """Return why a column can't tell records apart, if it can't."""
    if held.present < min(_LEAST, held.rows / 2):
        return "holds a value in hardly any record"
    if len(held.counts) == 1 or (not held.counts and held.low == held.high):
        return "holds one value only"
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
        raise RecordsError(
            f"The column {name!r} holds a text of its own in most records, which is no kind of "
            f"feature; say {name}=category to keep the most common ones, or leave it out."
        )
    return "category"


def _levels(asked: Asked, kind: Kind, held: Holding) -> tuple[str, ...]:
    if kind in ("count", "number"):
        return ()
    if kind == "binary":
        answers = {yes_no(text) for text in held.counts}
        if not held.counts or answers <= {True, False}:
            return ANSWERS
        if len(held.counts) != 2:
            raise RecordsError(
                f"The column {asked.name!r} holds {len(held.counts):,} different values, and a "
                f"binary feature has two; say {asked.name}=category."
            )
    ranked = sorted(held.counts, key=lambda text: (-held.counts[text], _as_sorted(text)))
    if len(ranked) <= LEVELS:
        return tuple(sorted(ranked, key=_as_sorted))
    return (*sorted(ranked[: LEVELS - 1], key=_as_sorted), OTHERS)


def _check_numbers(feature: Feature, held: Holding) -> None:
    """Refuse texts among numbers, and numbers that are no counts or have no logarithm."""
    name = feature.name
    if not held.are_numbers:
        raise RecordsError(
            f"The column {name!r} holds texts, and the kind {feature.kind!r} needs numbers; "
            f"correct them, say {name}=category, or read the column with number={name}, which "
            "takes what is no number for missing."
        )
    if feature.kind == "count" and (held.negative or held.broken):
        raise RecordsError(
            f"The column {name!r} holds numbers that are below 0 or not whole, and a count has "
            f"none; say {name}=number, or correct them."
        )
    if feature.transform == "log" and held.low <= 0:
        raise RecordsError(
            f"The column {name!r} holds numbers of 0 or less, which have no logarithm; say "
            f"{name}=number:rank or {name}=number."
        )


def _note(asked: Asked, feature: Feature, held: Holding) -> str:
    """Return what the ledger says of a feature: its kind, who said it, and what is missing."""
    said = "as said" if asked.kind and asked.told else "as recognised"
    text = f"the feature {feature.name!r} is of the kind {feature.kind}, {said}"
    whole = feature.kind == "number" and not held.broken and held.low >= 0
    if whole and not asked.kind and feature.name != "age":
        text += f" (its numbers are whole: say {feature.name}=count if it counts something)"
    if feature.levels[-1:] == (OTHERS,):
        gone = len(held.counts) - LEVELS + 1
        text += f"; {gone:,} of its {len(held.counts):,} levels are rare and became {OTHERS!r}"
    if feature.kind == "binary" and feature.levels != ANSWERS:
        text += f"; {feature.levels[1]!r} was read as yes"
    return f"{text}; {held.rows - held.present:,} of {held.rows:,} records miss it"


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
        raise RecordsError(
            f"The column {name!r} holds days or lists, which can't be a feature; make a number of "
            "it, such as the days since a day, or leave it out."
        )
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
