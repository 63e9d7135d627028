"""Category: one of several levels, binary features too; its prior is a Dirichlet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import gammaln

from comorb.messages import Message
from comorb.model.arrays import Floats
from comorb.model.emissions.base import EDGE, Feature, Variable, drop_missing, half_record
from comorb.model.exact_sums import weighted_sum


@dataclass(frozen=True)
class Category(Variable):
    """A feature with levels; ``shares`` are theirs among the values of the whole population.

    A cluster's parameters are its probabilities of the levels, and the statistics of a value are
    a one at its level.
    """

    shares: tuple[float, ...]

    @classmethod
    def learn(cls, feature: Feature, values: Floats, weights: Floats | None, total: float) -> Self:
        """Count the levels."""
        there, heavy = drop_missing(values, weights)
        ones = [(there == level).astype(np.float64) for level in range(len(feature.levels))]
        counts = np.array([weighted_sum(one, heavy, total) for one in ones])
        size = counts.sum()
        shares = counts / size if size > 0 else np.full(counts.size, 1 / counts.size)
        return cls(feature, 1.0, tuple(shares.tolist()))

    @classmethod
    def from_facts(cls, feature: Feature, influence: float, facts: tuple[float, ...]) -> Self:
        """Return the variable with these shares."""
        if len(facts) != len(feature.levels) or not facts or min(facts) < 0:
            raise ValueError(Message("variable.category", name=feature.name))
        return cls(feature, influence, facts)

    @property
    def n_parameters(self) -> int:
        """How many parameters a cluster has: one a level."""
        return len(self.shares)

    @property
    def n_statistics(self) -> int:
        """How many statistics a value has: one a level."""
        return len(self.shares)

    @property
    def n_free(self) -> int:
        """How many of the probabilities are free: they add up to 1."""
        return len(self.shares) - 1

    @property
    def facts(self) -> tuple[float, ...]:
        """The shares of the levels."""
        return self.shares

    @property
    def population(self) -> Floats:
        """The shares of the levels in the whole population."""
        return _inside(np.array(self.shares))

    @property
    def n_values(self) -> int:
        """How many levels there are."""
        return len(self.shares)

    def cells(self, count: int) -> Floats:
        """Return a one for each level."""
        return np.eye(count)

    def natural(self, parameters: Floats) -> Floats:
        """Return log θ."""
        return np.ascontiguousarray(np.log(_inside(parameters)).T)

    def fit(self, sums: Floats) -> Floats:
        """Return the share of each level."""
        size, default = sums.sum(axis=0), self.population[:, None]
        return _inside(np.where(size > 0, sums / np.where(size > 0, size, 1.0), default).T)

    def prior_statistics(self, strength: float, weight: float) -> Floats:
        """Return 2α·p / (1 − Σ p²) records of each level: α / (1 − p) and α / p for two."""
        edge = half_record(weight)
        p = np.maximum(np.array(self.shares), edge)
        p = p / p.sum()
        return np.asarray(2 * strength * p / max(1 - float(p @ p), edge))

    def log_marginal(self, sums: Floats, pseudo: Floats) -> Floats:
        """Return log Γ(A) / Γ(A + n) · Π Γ(a + c) / Γ(a): the Dirichlet-multinomial."""
        whole = pseudo.sum()
        each = gammaln(pseudo[:, None] + sums) - gammaln(pseudo)[:, None]
        return np.asarray(each.sum(axis=0) + gammaln(whole) - gammaln(whole + sums.sum(axis=0)))

    def from_angles(self, angles: Floats) -> Floats:
        """Return the squares, with sum 1."""
        return _inside(np.maximum(angles, 0.0) ** 2)

    def shift(self, parameters: Floats, noise: Floats) -> Floats:
        """Move log θ."""
        return _inside(_inside(parameters) * np.exp(noise))

    def expectation(self, parameters: Floats) -> Floats:
        """Return θ."""
        return np.ascontiguousarray(parameters.T)

    def contrast_variance(self, parameters: Floats, contrast: Floats) -> Floats:
        """Return Σ θ c² − (Σ θ c)²."""
        theta = parameters.T[:, :, None]
        mean = np.sum(theta * contrast, axis=0)
        return np.asarray(np.sum(theta * contrast**2, axis=0) - mean**2)

    def draw(self, parameters: Floats, rng: np.random.Generator, n: int) -> Floats:
        """Draw levels."""
        places = rng.choice(parameters.size, size=n, p=parameters / parameters.sum())
        return np.asarray(places, dtype=np.float64)

    def find_problem(self, parameters: Floats) -> str | None:
        """Return what is wrong with the probabilities of the levels."""
        if (parameters >= 0).all() and (np.abs(parameters.sum(axis=1) - 1) < 1e-6).all():
            return None
        return Message("variable.probabilities")

    def describe(self, parameters: Floats) -> dict[str, Floats]:
        """Return the probability of each level."""
        return dict(zip(self.feature.levels, parameters.T.copy(), strict=True))

    def n_observed(self, sums: Floats) -> Floats:
        """Return how many records of each cluster have a value, (k,)."""
        return np.asarray(sums.sum(axis=0) / self.influence)

    def binarise(self, values: Floats) -> list[Any]:
        """Return a column for each level."""
        return [values == level for level in range(len(self.shares))]


def _inside(shares: Floats) -> Floats:
    """Return probabilities, along the last axis, that are kept above 0 and add up to 1."""
    raised = np.maximum(shares, EDGE)
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))
