"""Features, tables of their values, and `Variable`, the base class of all emissions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Literal, Self, get_args

import numpy as np

from comorb.errors import InputError
from comorb.messages import Message
from comorb.model.arrays import Floats

# A fitted probability stays this far inside (0, 1), and a rate above 0: logarithms are finite, and
# 1 − EDGE still differs from 1 by millions of float epsilons.
EDGE = 1e-9


def half_record(weight: float) -> float:
    """Return the share of half a record: how far inside (0, 1) a sample's probabilities stay."""
    return 0.5 / (weight + 1)


N_QUARTILES = 4  # columns that stand for a number where a start is sought
Kind = Literal["binary", "category", "count", "number"]
Transform = Literal["none", "log", "rank"]


@dataclass(frozen=True)
class Feature:
    """One column that is no code: its name, its kind, and its levels where it has any.

    A binary feature has two levels, the second is the yes. ``transform`` is applied to a number for
    the model, and undone for people.
    """

    name: str
    kind: Kind
    levels: tuple[str, ...] = ()
    transform: Transform = "none"

    def to_dict(self) -> dict[str, Any]:
        """Return the feature as plain values."""
        return vars(self) | {"levels": list(self.levels)}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Feature:
        """Return the feature of plain values; `ValueError` for what makes none."""
        name, kind, levels, transform = (
            plain[part] for part in ("name", "kind", "levels", "transform")
        )
        texts = isinstance(levels, list) and all(isinstance(level, str) for level in levels)
        if not isinstance(name, str) or not texts or len(set(levels)) < len(levels):
            raise ValueError(Message("variable.levels"))
        if kind not in get_args(Kind) or transform not in get_args(Transform):
            raise ValueError(Message("variable.kind", name=name))
        if transform != "none" and kind != "number":
            raise ValueError(Message("variable.transform", name=name))
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
                "model.feature_columns", expected=len(self.features), shape=str(self.values.shape)
            )

    def columns(self) -> dict[str, Any]:
        """Return the columns as people write them, by name: levels as texts, None for gaps."""
        columns: dict[str, Any] = {}
        for feature, values in zip(self.features, self.values.T, strict=True):
            columns[feature.name] = values
            if feature.levels:
                texts = np.array([*feature.levels, None], dtype=object)
                places = np.where(np.isnan(values), len(feature.levels), values)
                columns[feature.name] = texts[places.astype(np.int64)]
        return columns

    def at(self, rows: Any) -> FeatureTable:
        """Return the values of some records: places, or a slice of them."""
        return FeatureTable(self.features, self.values[rows])


def quartile_columns(values: Floats) -> list[Any]:
    """Return a column for each quarter of the values, fewer where many are the same.

    A value that is missing is in none.
    """
    there = values[~np.isnan(values)]
    if not there.size:
        return []
    shares = np.arange(1, N_QUARTILES) / N_QUARTILES
    edges = np.unique(np.quantile(there, shares, method="inverted_cdf"))
    bounds = [-np.inf, *edges[edges < there.max()].tolist(), np.inf]
    return [(values > low) & (values <= high) for low, high in pairwise(bounds)]


@dataclass(frozen=True)
class Variable(ABC):
    """A feature with what the model knows of it in the whole population.

    Its log-density is that of an exponential family: the ``n_statistics`` statistics of a value,
    zeros where it is missing, times ``natural``, the natural parameters. So the sums of statistics
    over rows, weighted by posteriors, are all that an M-step needs. A cluster has ``n_parameters``
    parameters. ``influence`` multiplies the log-density, and so the statistics.
    """

    feature: Feature
    influence: float

    @classmethod
    @abstractmethod
    def learn(cls, feature: Feature, values: Floats, weights: Floats | None, total: float) -> Self:
        """Return the variable of values as people write them, (n,), NaN where one is missing."""

    @classmethod
    @abstractmethod
    def from_facts(cls, feature: Feature, influence: float, facts: tuple[float, ...]) -> Self:
        """Return the variable that had these ``facts``; `ValueError` for what are none."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """How many parameters a cluster has."""

    @property
    @abstractmethod
    def n_statistics(self) -> int:
        """How many statistics a value has."""

    @property
    def n_free(self) -> int:
        """How many of the parameters are free."""
        return self.n_parameters

    @property
    @abstractmethod
    def facts(self) -> tuple[float, ...]:
        """What is known of the whole population, as plain numbers."""

    @property
    @abstractmethod
    def population(self) -> Floats:
        """The parameters of the whole population, (width,)."""

    def prepare(self, values: Floats) -> Floats:
        """Return values as the model sees them, (n,), from those that people write."""
        return values

    @abstractmethod
    def natural(self, parameters: Floats) -> Floats:
        """Return the log-density's table, (height, k), of parameters (k, width)."""

    @abstractmethod
    def fit(self, sums: Floats) -> Floats:
        """Return the most likely parameters, (k, width), of statistics summed, (height, k)."""

    @abstractmethod
    def prior_statistics(self, strength: float, weight: float) -> Floats:
        """Return the prior as statistics of pseudo-records, (height,).

        They are like the whole population, and as many as make the parameters of clusters scatter
        around it with variance 1 / strength, on the scale of log-odds.
        """

    @abstractmethod
    def log_marginal(self, sums: Floats, pseudo: Floats) -> Floats:
        """Return log ∫ P(values | parameters) dP(parameters) of each column of ``sums``, (k,)."""

    def angles(self, parameters: Floats) -> Floats:
        """Return parameters on a scale on which their variance is about even, (k, width)."""
        return np.sqrt(parameters)

    @abstractmethod
    def from_angles(self, angles: Floats) -> Floats:
        """Return the valid parameters nearest to a place on that scale."""

    @abstractmethod
    def shift(self, parameters: Floats, noise: Floats) -> Floats:
        """Return parameters moved by noise of the size of log-odds, (k, width)."""

    @abstractmethod
    def expectation(self, parameters: Floats) -> Floats:
        """Return the mean of the statistics in each cluster, (height, k)."""

    @abstractmethod
    def contrast_variance(self, parameters: Floats, contrast: Floats) -> Floats:
        """Return the variance, in each of k clusters, of T·contrast, (k, l), for (height, k, l)."""

    @abstractmethod
    def draw(self, parameters: Floats, rng: np.random.Generator, n: int) -> Floats:
        """Draw n values, as people write them, from one cluster with parameters (width,)."""

    @abstractmethod
    def find_problem(self, parameters: Floats) -> str | None:
        """Return what is wrong with parameters, or None."""

    @abstractmethod
    def describe(self, parameters: Floats) -> dict[str, Floats]:
        """Return parameters in original units, by name, each with a row a cluster."""

    def binarise(self, values: Floats) -> list[Any]:
        """Return 0/1 columns that stand for the prepared values in a search for starts."""
        return quartile_columns(values)

    @property
    def n_values(self) -> int | None:
        """How many different values there are, from 0 up; None where they are continuous."""
        return None

    def cells(self, count: int) -> Floats:
        """Return the statistics of the first values, (count, height), where ``n_values`` is set."""
        raise TypeError(f"the values of {self.feature.name!r} are not counted")

    @property
    def key(self) -> np.uint64:
        """A hash of the feature's kind and facts, to six digits, not of its name or place."""
        facts = " ".join(f"{fact:.6g}" for fact in self.facts)
        content = f"{self.feature.kind} {self.feature.transform} {facts}".encode()
        return np.uint64(int.from_bytes(blake2b(content, digest_size=8).digest(), "little"))

    def n_observed(self, sums: Floats) -> Floats:
        """Return how many records of each cluster have a value, (k,)."""
        return np.asarray(sums[0] / self.influence)


def drop_missing(values: Floats, weights: Floats | None) -> tuple[Floats, Floats | None]:
    """Return the values that are there, and their weights."""
    there = ~np.isnan(values)
    return values[there], None if weights is None else weights[there]
