"""Features besides codes: which covariates become features, and of which kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
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
class FeatureSpec:
    """A covariate that becomes a feature; its kind is recognised where there is none.

    With ``required``, it is an error if it can't; an item of a table may be left out.
    """

    name: str
    kind: Kind | None = None
    transform: Transform = "none"
    required: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, in which ``required`` is called 'told'."""
        own = asdict(self)
        return own | {"told": own.pop("required")}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> FeatureSpec:
        """Return the specification that ``to_dict`` made plain."""
        own = dict(plain)
        return cls(required=own.pop("told", True), **own)

    @classmethod
    def parse(cls, text: str) -> FeatureSpec:
        """Return the specification NAME, NAME=KIND or NAME=number:TRANSFORM.

        >>> FeatureSpec.parse("los=number:log")
        FeatureSpec(name='los', kind='number', transform='log', required=True)
        """
        name, sign, rest = text.rpartition("=")
        if not sign:
            return cls(text)
        kind, _, transform = rest.partition(":")
        kinds = [one for one in KINDS if one == kind]
        transforms = [one for one in TRANSFORMS if one == (transform or "none")]
        if not (name and kinds and transforms) or (transform and kind != "number"):
            raise RecordsError("feature.form", kinds=KINDS, text=text)
        return cls(name, kinds[0], transforms[0])


AnyFeature = FeatureSpec | Feature


def parse_features(features: Mapping[str, str] | Sequence[str] | str) -> tuple[FeatureSpec, ...]:
    """Return the specifications of ``{"age": "number"}``, ``["los=number:log"]`` or ``"age"``."""
    if isinstance(features, str):
        features = [features]
    if isinstance(features, Mapping):
        features = [f"{name}={kind}" for name, kind in features.items()]
    return tuple(map(FeatureSpec.parse, features))


def write_feature(spec: AnyFeature) -> str:
    """Return the word for a feature on the command line."""
    kind = f"={spec.kind}" if spec.kind else ""
    return f"{spec.name}{kind}" + (f":{spec.transform}" if spec.transform != "none" else "")


MAX_LEVELS = 8  # of a category; of more, the most common stay
OTHERS = "other values"
ANSWERS = ("no", "yes")
MISSING_NOTE = Message("note.missing_feature")
_MIN_VALUES = 10  # that a feature needs, or half as many as there are records
_MAX_TEXTS = 10_000


@dataclass(frozen=True)
class ColumnSummary:
    """A column in figures that add up over parts of its rows.

    ``counts`` are those of its texts, and of its numbers where they are labels. Errors about a
    column have no number of records, which may be small.
    """

    rows: int = 0
    present: int = 0
    are_numbers: bool = True
    counts: Counter[str] = field(default_factory=Counter)
    low: float = np.inf
    high: float = -np.inf
    infinite: int = 0
    negative: int = 0
    fractional: int = 0

    def __add__(self, other: ColumnSummary) -> ColumnSummary:
        return ColumnSummary(
            self.rows + other.rows,
            self.present + other.present,
            self.are_numbers and other.are_numbers,
            self.counts + other.counts,
            min(self.low, other.low),
            max(self.high, other.high),
            self.infinite + other.infinite,
            self.negative + other.negative,
            self.fractional + other.fractional,
        )


def summarise_column(spec: AnyFeature, covariates: pa.Table) -> ColumnSummary:
    """Return the summary of a feature's column; refuse a missing column, and one of dates."""
    column = find_covariate(spec.name, covariates)
    if not _is_number(column.type) or spec.kind in ("category", "binary"):
        pairs = pc.value_counts(_as_texts(spec.name, column).drop_null()).to_pylist()
        if len(pairs) > _MAX_TEXTS:
            raise RecordsError("feature.many_texts", column=spec.name, limit=_MAX_TEXTS)
        counts = Counter({pair["values"]: pair["counts"] for pair in pairs})
        return ColumnSummary(len(column), counts.total(), _is_number(column.type), counts)
    values = _as_numbers(column)
    values = values[~np.isnan(values)]
    finite = values[np.isfinite(values)]
    return ColumnSummary(
        len(column),
        values.size,
        low=float(finite.min(initial=np.inf)),
        high=float(finite.max(initial=-np.inf)),
        infinite=int(values.size - finite.size),
        negative=int((finite < 0).sum()),
        fractional=int((finite != np.round(finite)).sum()),
    )


def decide_features(
    specs: Sequence[AnyFeature], columns: Sequence[ColumnSummary]
) -> tuple[tuple[Feature, ...], tuple[str, ...]]:
    """Return the features that columns become, and notes for the ledger."""
    decided = [_decide(*pair) for pair in zip(specs, columns, strict=True)]
    features = tuple(feature for feature, _ in decided if feature is not None)
    notes = [note for _, note in decided if note]
    return features, (*notes, MISSING_NOTE) if features else tuple(notes)


def _decide(spec: AnyFeature, column: ColumnSummary) -> tuple[Feature | None, str]:
    """Return the feature that a column becomes, and a note; no feature of a constant item."""
    if isinstance(spec, Feature):  # of a model: levels that it doesn't know are missing
        lost = sum(count for text, count in column.counts.items() if np.isnan(_place(text, spec)))
        return spec, Message("note.feature_unseen", n=lost, column=spec.name) if lost else ""
    if column.infinite:
        raise RecordsError("feature.infinite", column=spec.name)
    problem = ""
    if column.present < min(_MIN_VALUES, column.rows / 2):
        problem = Message("feature.hardly_any")
    elif len(column.counts) == 1 or (not column.counts and column.low == column.high):
        problem = Message("feature.one_value")
    if problem and spec.required:
        raise RecordsError("feature.no_use", column=spec.name, problem=problem)
    if problem:
        return None, Message("note.item_left_out", item=spec.name, problem=problem)
    kind = spec.kind or _recognise_kind(spec.name, column)
    feature = Feature(spec.name, kind, _levels(spec.name, kind, column), spec.transform)
    if kind in ("count", "number"):
        _check_numbers(feature, column)
    return feature, _note(spec, feature, column)


def feature_table(features: Sequence[Feature], covariates: pa.Table, rows: int) -> FeatureTable:
    """Return the values of features, of a number of rows."""
    values = np.empty((rows, len(features)))
    for place, feature in enumerate(features):
        values[:, place] = _values(feature, find_covariate(feature.name, covariates))
    return FeatureTable(tuple(features), values)


def find_covariate(name: str, covariates: pa.Table) -> pa.ChunkedArray:
    """Return a covariate; an error names the nearest ones."""
    names = covariates.column_names
    if name in names:
        return covariates[name]
    near = get_close_matches(name, names, 3, 0.5) or names[:12]
    have = Message("text.nearest", near=map(repr, near)) if near else Message("text.there_are_none")
    raise RecordsError("feature.no_column", name=name, have=have)


def _recognise_kind(name: str, column: ColumnSummary) -> Kind:
    if name == "sex":
        return "category"
    if column.are_numbers and not column.counts:
        is_flag = (column.low, column.high) == (0, 1) and not column.fractional
        return "binary" if is_flag and name != "age" else "number"
    if {yes_no(text) for text in column.counts} == {True, False}:
        return "binary"
    if len(column.counts) > MAX_LEVELS and 2 * len(column.counts) > column.present:
        raise RecordsError("feature.own_texts", name=name)
    return "category"


def _levels(name: str, kind: Kind, column: ColumnSummary) -> tuple[str, ...]:
    if kind in ("count", "number"):
        return ()
    counts = column.counts
    if kind == "binary":
        if {yes_no(text) for text in counts} <= {True, False}:
            return ANSWERS
        if len(counts) != 2:
            raise RecordsError("feature.binary", column=name, n=len(counts))
    ranked = sorted(counts, key=lambda text: (-counts[text], _sort_key(text)))
    if len(ranked) <= MAX_LEVELS:
        return tuple(sorted(ranked, key=_sort_key))
    return (*sorted(ranked[: MAX_LEVELS - 1], key=_sort_key), OTHERS)


def _check_numbers(feature: Feature, column: ColumnSummary) -> None:
    """Refuse texts among numbers, and numbers that are no counts or have no logarithm."""
    name = feature.name
    if not column.are_numbers:
        raise RecordsError("feature.texts", name=name, kind=feature.kind)
    if feature.kind == "count" and (column.negative or column.fractional):
        raise RecordsError("feature.no_count", name=name)
    if feature.transform == "log" and column.low <= 0:
        raise RecordsError("feature.no_logarithm", name=name)


def _note(spec: FeatureSpec, feature: Feature, column: ColumnSummary) -> str:
    """Return the note on a feature: its kind, whether it was stated, and missing values."""
    key = "note.feature_said" if spec.kind and spec.required else "note.feature_found"
    first = Message(key, feature=feature.name, kind=feature.kind)
    whole = feature.kind == "number" and not column.fractional and column.low >= 0
    if whole and not spec.kind and feature.name != "age":
        first = Message("note.feature_whole", note=first, feature=feature.name)
    parts, levels = [first], len(column.counts)
    if feature.levels[-1:] == (OTHERS,):
        rare = levels - MAX_LEVELS + 1
        parts.append(Message("note.feature_levels", rare=rare, levels=levels, others=OTHERS))
    if feature.kind == "binary" and feature.levels != ANSWERS:
        parts.append(Message("note.feature_yes", level=feature.levels[1]))
    missing = column.rows - column.present
    parts.append(Message("note.feature_missing", missing=missing, n=column.rows))
    return Message("text.parts", parts=parts)


def _values(feature: Feature, column: pa.ChunkedArray) -> Floats:
    if not feature.levels:
        if not _is_number(column.type) and column.null_count < len(column):
            _check_numbers(feature, ColumnSummary(are_numbers=False))
        return _as_numbers(column)
    texts = _as_texts(feature.name, column).dictionary_encode().combine_chunks()
    places = [_place(text, feature) for text in texts.dictionary.to_pylist()]
    found = pc.fill_null(texts.indices, len(places)).to_numpy(zero_copy_only=False)
    values: Floats = np.array([*places, np.nan])[found]
    return values


def _place(text: str, feature: Feature) -> float:
    """Return the number of a level, or that of the other values; NaN where there is none."""
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
    """Return labels as texts, whole numbers without a '.0'."""
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


def _sort_key(text: str) -> tuple[bool, float, str]:
    try:
        return False, float(text), text
    except ValueError:
        return True, 0.0, text
