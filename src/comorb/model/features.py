"""Features beside the codes: what each is, and its values, with gaps where one is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from comorb.errors import InputError
from comorb.model.arrays import Floats

Kind = Literal["binary", "category", "count", "number"]
Transform = Literal["none", "log", "rank"]


@dataclass(frozen=True)
class Feature:
    """One column that is no code: its name, its kind, and its levels where it has any.

    A binary feature has two levels, the second is the yes. ``transform`` is what a number goes
    through before the model sees it, and back when people read it.
    """

    name: str
    kind: Kind
    levels: tuple[str, ...] = ()
    transform: Transform = "none"

    def to_dict(self) -> dict[str, Any]:
        """Return the feature as plain values."""
        levels = list(self.levels)
        return {"name": self.name, "kind": self.kind, "levels": levels, "transform": self.transform}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Feature:
        """Return the feature of plain values; `ValueError` for what makes none."""
        name, kind, levels = plain["name"], plain["kind"], plain["levels"]
        transform = plain["transform"]
        texts = isinstance(levels, list) and all(isinstance(level, str) for level in levels)
        if not isinstance(name, str) or not texts or len(set(levels)) < len(levels):
            raise ValueError("a feature needs a name, and levels that are different texts")
        if kind not in get_args(Kind) or transform not in get_args(Transform):
            raise ValueError(f"{name!r} is of a kind or has a transform that is not known")
        if transform != "none" and kind != "number":
            raise ValueError(f"{name!r} has a transform but is no number")
        return cls(name, kind, tuple(levels), transform)


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """The values of features, (n, p): NaN where one is missing, a level's place for categories."""

    features: tuple[Feature, ...]
    values: Floats

    def __post_init__(self) -> None:
        """Refuse values that are not a column for each feature."""
        if self.values.ndim != 2 or self.values.shape[1] != len(self.features):
            raise InputError(
                f"expected a column of values for each of {len(self.features)} features, got an "
                f"array of shape {self.values.shape}"
            )

    def columns(self) -> dict[str, Any]:
        """Return the columns as people write them, by name: levels as texts, None for gaps."""
        return {
            feature.name: _written(feature, column)
            for feature, column in zip(self.features, self.values.T, strict=True)
        }

    def at(self, rows: Any) -> FeatureTable:
        """Return the values of some records: places, or a slice of them."""
        return FeatureTable(self.features, self.values[rows])


def _written(feature: Feature, values: Floats) -> Any:
    if not feature.levels:
        return values
    texts = np.array([*feature.levels, None], dtype=object)
    return texts[np.where(np.isnan(values), len(feature.levels), values).astype(np.int64)]
