"""Number: a measurement, by a normal distribution; its prior is a normal-inverse-gamma."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi
from typing import ClassVar, Self

import numpy as np
from scipy.special import gammaln, ndtri

from comorb.messages import Message
from comorb.model.arrays import Floats
from comorb.model.emissions.base import Feature, Variable, drop_missing
from comorb.model.exact_sums import weighted_sum

# The least variance of a cluster, as a share of the whole population's. With a bound the likelihood
# has a maximum (Hathaway 1985); this one is a standard deviation of 3%.
MIN_VARIANCE = 1e-3
KNOTS = 257  # at which ranks are known, to 1 in 256; between them they are interpolated
NINE_TENTHS = 1.6448536269514722  # of a normal distribution lie within so many deviations
MAX_LOG_DEVIATION = 10.0  # e¹⁰ deviations of the whole population: no cluster is wider


@dataclass(frozen=True)
class Number(Variable):
    """A number with its mean and standard deviation in the whole population, once transformed.

    The model sees z = (t(x) − centre) / spread, where t is nothing, a logarithm, or the normal
    score of the rank, known at ``knots``. A cluster's parameters are the mean and the variance of
    z; the statistics of a value are 1, z and z².
    """

    centre: float
    spread: float
    knots: tuple[float, ...] = ()
    n_parameters: ClassVar[int] = 2
    n_statistics: ClassVar[int] = 3

    @classmethod
    def learn(cls, feature: Feature, values: Floats, weights: Floats | None, total: float) -> Self:
        """Find the mean and the spread, and the quantiles where ranks are asked for."""
        there, heavy = drop_missing(values, weights)
        size = weighted_sum(np.ones(there.size), heavy, total)
        knots = _quantiles(there, heavy) if feature.transform == "rank" and there.size else ()
        if not size > 0:
            return cls(feature, 1.0, 0.0, 1.0, knots)
        seen = cls(feature, 1.0, 0.0, 1.0, knots).transform(there)
        centre = weighted_sum(seen, heavy, total) / size
        variance = weighted_sum((seen - centre) ** 2, heavy, total) / size
        least = (1e-9 * max(abs(centre), 1e-300)) ** 2
        spread = float(np.sqrt(variance)) if variance > least else 1.0
        return cls(feature, 1.0, centre, spread, knots)

    @classmethod
    def from_facts(cls, feature: Feature, influence: float, facts: tuple[float, ...]) -> Self:
        """Return the variable with this mean, spread and knots."""
        knots = facts[2:]
        ranked = len(knots) > 0 and list(knots) == sorted(knots)
        if len(facts) < 2 or not facts[1] > 0 or ranked != (feature.transform == "rank"):
            raise ValueError(Message("variable.number", name=feature.name))
        return cls(feature, influence, facts[0], facts[1], knots)

    @property
    def facts(self) -> tuple[float, ...]:
        """The mean, the spread and the knots."""
        return self.centre, self.spread, *self.knots

    @property
    def population(self) -> Floats:
        """The mean and the variance of the whole population: 0 and 1."""
        return np.array([0.0, 1.0])

    def transform(self, values: Floats) -> Floats:
        """Return t(x)."""
        if self.feature.transform == "log":
            return np.log(values)
        if self.feature.transform == "rank":
            return np.interp(values, *_scores(self.knots))
        return values

    def invert(self, values: Floats) -> Floats:
        """Return x from t(x)."""
        if self.feature.transform == "log":
            return np.exp(values)
        if self.feature.transform == "rank":
            knots, scores = _scores(self.knots)
            return np.interp(values, scores, knots)
        return values

    def prepare(self, values: Floats) -> Floats:
        """Return z."""
        return np.asarray((self.transform(values) - self.centre) / self.spread)

    def natural(self, parameters: Floats) -> Floats:
        """Return −½ log 2πσ² − μ² / 2σ², μ / σ² and −1 / 2σ², with σ in original units."""
        mean, variance = parameters.T
        base = -0.5 * np.log(2 * pi * variance) - log(self.spread) - mean**2 / (2 * variance)
        return np.stack([base, mean / variance, -0.5 / variance])

    def fit(self, sums: Floats) -> Floats:
        """Return the mean and the variance, which is kept above ``MIN_VARIANCE``."""
        size, first, second = sums
        there = size > 0
        safe = np.where(there, size, 1.0)
        mean = np.where(there, first / safe, 0.0)
        variance = np.where(there, second / safe - mean**2, 1.0)
        return np.stack([mean, np.maximum(variance, MIN_VARIANCE)], axis=1)

    def prior_statistics(self, strength: float, weight: float) -> Floats:
        """Return α records of the whole population: means scatter with variance σ² / α."""
        return np.array([strength, 0.0, strength])

    def log_marginal(self, sums: Floats, pseudo: Floats) -> Floats:
        """Return the normal-inverse-gamma's, with κ = ν = α and the whole's mean and variance."""
        size, first, second = sums
        kappa = pseudo[0] + size
        shape, after = pseudo[0] / 2, kappa / 2
        rate = pseudo[2] / 2
        rate_after = np.maximum(rate + 0.5 * (second - first**2 / kappa), rate * 1e-9)
        scale = 0.5 * np.log(pseudo[0] / kappa) - size * (0.5 * log(2 * pi) + log(self.spread))
        gammas = gammaln(after) - gammaln(shape)
        return np.asarray(gammas + shape * np.log(rate) - after * np.log(rate_after) + scale)

    def angles(self, parameters: Floats) -> Floats:
        """Return the mean, and half the logarithm of the variance."""
        return np.stack([parameters[:, 0], 0.5 * np.log(parameters[:, 1])], axis=1)

    def from_angles(self, angles: Floats) -> Floats:
        """Return the mean and the variance."""
        variance = np.exp(2 * np.clip(angles[:, 1], 0.5 * log(MIN_VARIANCE), MAX_LOG_DEVIATION))
        return np.stack([angles[:, 0], np.maximum(variance, MIN_VARIANCE)], axis=1)

    def shift(self, parameters: Floats, noise: Floats) -> Floats:
        """Move the mean by a part of the standard deviation."""
        moved = parameters[:, 0] + noise[:, 0] * np.sqrt(parameters[:, 1])
        return np.stack([moved, parameters[:, 1]], axis=1)

    def expectation(self, parameters: Floats) -> Floats:
        """Return 1, μ and μ² + σ²."""
        mean, variance = parameters.T
        return np.stack([np.ones_like(mean), mean, mean**2 + variance])

    def contrast_variance(self, parameters: Floats, contrast: Floats) -> Floats:
        """Return the variance of a z + b z²: a²σ² + 4ab μσ² + b²(2σ⁴ + 4μ²σ²)."""
        mean, variance = parameters.T[:, :, None]
        _, a, b = contrast
        curved = b**2 * (2 * variance**2 + 4 * mean**2 * variance)
        return np.asarray(a**2 * variance + 4 * a * b * mean * variance + curved)

    def draw(self, parameters: Floats, rng: np.random.Generator, n: int) -> Floats:
        """Draw numbers, in original units."""
        z = rng.normal(parameters[0], np.sqrt(parameters[1]), size=n)
        return self.invert(self.centre + self.spread * z)

    def find_problem(self, parameters: Floats) -> str | None:
        """Return what is wrong with means and variances."""
        if np.isfinite(parameters).all() and np.all(parameters[:, 1] > 0):
            return None
        return Message("variable.means")

    def describe(self, parameters: Floats) -> dict[str, Floats]:
        """Return the mean and the standard deviation, or the median and where nine tenths lie.

        The latter where the number was transformed: there the mean of t(x), put back, is the
        median (the geometric mean, for a logarithm).
        """
        mean = self.centre + self.spread * parameters[:, 0]
        deviation = self.spread * np.sqrt(parameters[:, 1])
        if self.feature.transform == "none":
            return {"mean": mean, "sd": deviation}
        return {
            "median": self.invert(mean),
            "low": self.invert(mean - NINE_TENTHS * deviation),
            "high": self.invert(mean + NINE_TENTHS * deviation),
        }


def _quantiles(values: Floats, weights: Floats | None) -> tuple[float, ...]:
    """Return the values at even shares of the weight."""
    heavy = np.ones(values.size) if weights is None else weights
    order = np.lexsort((heavy, values))
    reached = np.cumsum(heavy[order])
    shares = np.linspace(0, 1, KNOTS) * reached[-1]
    places = np.minimum(np.searchsorted(reached, shares), values.size - 1)
    return tuple(values[order][places].tolist())


def _scores(knots: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Return the different knots and the normal scores of their ranks, those of ties in one."""
    different, places = np.unique(np.array(knots), return_inverse=True)
    ranks = (np.arange(len(knots)) + 0.5) / len(knots)
    shared = np.bincount(places, weights=ranks) / np.bincount(places)
    return different, np.asarray(ndtri(shared))
