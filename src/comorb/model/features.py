"""Features beside the codes: what each is, and its values, with gaps where one is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

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


def _written(feature: Feature, values: Floats) -> Any:
    if not feature.levels:
        return values
    texts = np.array([*feature.levels, None], dtype=object)
    return texts[np.where(np.isnan(values), len(feature.levels), values).astype(np.int64)]
