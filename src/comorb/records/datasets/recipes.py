"""Recipes: what each cluster of the paper's two studies, its tables 1 and 2, looks like."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class ClusterRecipe:
    """One cluster: its size, its patients and the probability of its leading categories."""

    name: str
    size: int
    age: float
    female: float
    stay: float
    died: float
    codes: dict[str, float]


@dataclass(frozen=True)
class CohortRecipe:
    """A cohort to simulate: its clusters, and the column with the rates of all other codes."""

    name: str
    background: str
    clusters: tuple[ClusterRecipe, ...]


def _recipe(plain: dict[str, Any]) -> CohortRecipe:
    clusters = tuple(ClusterRecipe(**cluster) for cluster in plain["clusters"])
    return CohortRecipe(plain["name"], plain["background"], clusters)


_TABLES = tomllib.loads(
    resources.files("comorb.records.datasets").joinpath("recipes.toml").read_text(encoding="utf-8")
)
HEART_FAILURE, TERTIARY = _recipe(_TABLES["heart_failure"]), _recipe(_TABLES["tertiary"])
