"""Variable: a feature as the model sees it, and the duties that every kind of it has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self

import numpy as np

from comorb.model.arrays import Floats
from comorb.model.features import Feature

EDGE = 1e-9  # a fitted probability stays this far inside (0, 1), and a rate above 0


@dataclass(frozen=True)
class Variable(ABC):
    """A feature with what the model knows of it in the whole population.

    Its log-density is linear in a few statistics of a value: ``height`` of them, zeros where the
    value is missing. So a row of statistics times ``natural`` is added to the row's log-density,
    and their sums over rows, weighted by posteriors, are all that an M-step needs. A cluster has
    ``width`` parameters. ``influence`` multiplies the log-density, and so the statistics.
    """

    feature: Feature
    influence: float

    @classmethod
    @abstractmethod
    def learned(
        cls, feature: Feature, values: Floats, weights: Floats | None, total: float
    ) -> Self:
        """Return the variable of values as people write them, (n,), NaN where one is missing."""

    @classmethod
    @abstractmethod
    def recalled(cls, feature: Feature, influence: float, facts: tuple[float, ...]) -> Self:
        """Return the variable that had these ``facts``; `ValueError` for what are none."""

    @property
    @abstractmethod
    def width(self) -> int:
        """How many parameters a cluster has."""

    @property
    @abstractmethod
    def height(self) -> int:
        """How many statistics a value has."""

    @property
    def n_free(self) -> int:
        """How many of the parameters are free."""
        return self.width

    @property
    @abstractmethod
    def facts(self) -> tuple[float, ...]:
        """What is known of the whole population, as plain numbers: its hash is the column's."""

    @property
    @abstractmethod
    def whole(self) -> Floats:
        """The parameters of the whole population, (width,)."""

    @abstractmethod
    def prepared(self, values: Floats) -> Floats:
        """Return values as the model sees them, (n,), from those that people write."""

    @abstractmethod
    def natural(self, parameters: Floats) -> Floats:
        """Return the log-density's table, (height, k), of parameters (k, width)."""

    @abstractmethod
    def fitted(self, sums: Floats) -> Floats:
        """Return the most likely parameters, (k, width), of statistics summed, (height, k)."""

    @abstractmethod
    def pseudo(self, strength: float, weight: float) -> Floats:
        """Return the prior as statistics of records that are not there, (height,).

        They are like the whole population, and as many as make the parameters of clusters
        scatter around it with variance 1 / strength, on the scale of log-odds.
        """

    @abstractmethod
    def log_marginal(self, sums: Floats, pseudo: Floats) -> Floats:
        """Return log ∫ P(values | parameters) dP(parameters) of each column of ``sums``, (k,)."""

    @abstractmethod
    def angles(self, parameters: Floats) -> Floats:
        """Return parameters on a scale on which their variance is about even, (k, width)."""

    @abstractmethod
    def from_angles(self, angles: Floats) -> Floats:
        """Return the valid parameters nearest to a place on that scale."""

    @abstractmethod
    def shifted(self, parameters: Floats, noise: Floats) -> Floats:
        """Return parameters moved by noise of the size of log-odds, (k, width)."""

    @abstractmethod
    def expectation(self, parameters: Floats) -> Floats:
        """Return the mean of the statistics in each cluster, (height, k)."""

    @abstractmethod
    def contrast_variance(self, parameters: Floats, contrast: Floats) -> Floats:
        """Return the variance, in each of k clusters, of T·contrast, (k, l), for (height, k, l)."""

    @abstractmethod
    def drawn(self, parameters: Floats, rng: np.random.Generator, n: int) -> Floats:
        """Draw n values, as people write them, from one cluster with parameters (width,)."""

    @abstractmethod
    def checked(self, parameters: Floats) -> str | None:
        """Return what is wrong with parameters, or None."""

    @abstractmethod
    def described(self, parameters: Floats) -> dict[str, Floats]:
        """Return parameters in people's units, by name, each with a row a cluster."""

    @abstractmethod
    def binarised(self, values: Floats) -> list[Any]:
        """Return 0/1 columns that stand for the prepared values where a start is sought."""

    @property
    def n_values(self) -> int | None:
        """How many different values there can be, 0 and up; None where they are not counted."""
        return None

    def cells(self, count: int) -> Floats:
        """Return the statistics of the first values, (count, height), where they are counted."""
        raise TypeError(f"the values of {self.feature.name!r} are not counted")

    @property
    def key(self) -> np.uint64:
        """A hash of what the feature is like, to six digits, and not of its name or place."""
        facts = " ".join(f"{fact:.6g}" for fact in self.facts)
        content = f"{self.feature.kind} {self.feature.transform} {facts}".encode()
        return np.uint64(int.from_bytes(blake2b(content, digest_size=8).digest(), "little"))

    def observed(self, sums: Floats) -> Floats:
        """Return how many records of each cluster have a value, (k,)."""
        return np.asarray(sums[0] / self.influence)


def observed(values: Floats, weights: Floats | None) -> tuple[Floats, Floats | None]:
    """Return the values that are there, and their weights."""
    there = ~np.isnan(values)
    return values[there], None if weights is None else weights[there]
