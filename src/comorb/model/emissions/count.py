"""Count: how often something happened, by a Poisson distribution; its prior is a Gamma."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import gammaln

from comorb.messages import Message
from comorb.model.arrays import Floats
from comorb.model.emissions.base import EDGE, Feature, Variable, drop_missing, half_record
from comorb.model.exact_sums import weighted_sum

MAX_COUNT = 65_535  # each count has a cell in a table of k numbers; what is higher is a number


@dataclass(frozen=True)
class Count(Variable):
    """A count with its mean and standard deviation in the whole population, and its largest.

    A cluster's parameter is its rate λ; the statistics of a value x are 1, x and log x!.
    """

    mean: float
    spread: float
    top: int
    n_parameters: ClassVar[int] = 1
    n_statistics: ClassVar[int] = 3

    @classmethod
    def learn(cls, feature: Feature, values: Floats, weights: Floats | None, total: float) -> Self:
        """Find the mean, the spread and the largest."""
        there, heavy = drop_missing(values, weights)
        size = weighted_sum(np.ones(there.size), heavy, total)
        if not size > 0:
            return cls(feature, 1.0, 1.0, 1.0, 0)
        mean = weighted_sum(there, heavy, total) / size
        variance = weighted_sum((there - mean) ** 2, heavy, total) / size
        return cls(feature, 1.0, mean, float(np.sqrt(variance)), int(there.max()))

    @classmethod
    def from_facts(cls, feature: Feature, influence: float, facts: tuple[float, ...]) -> Self:
        """Return the variable with this mean, spread and largest count."""
        if len(facts) != 3 or min(facts) < 0 or facts[2] > MAX_COUNT or not facts[2].is_integer():
            raise ValueError(Message("variable.count", name=feature.name))
        return cls(feature, influence, facts[0], facts[1], int(facts[2]))

    @property
    def facts(self) -> tuple[float, ...]:
        """The mean, the spread and the largest."""
        return self.mean, self.spread, float(self.top)

    @property
    def population(self) -> Floats:
        """The mean of the whole population."""
        return np.array([max(self.mean, EDGE)])

    @property
    def n_values(self) -> int:
        """How many different counts there are up to the largest."""
        return self.top + 1

    def cells(self, count: int) -> Floats:
        """Return 1, x and log x! of each count."""
        x = np.arange(float(count))
        return np.column_stack([np.ones_like(x), x, gammaln(x + 1)])

    def natural(self, parameters: Floats) -> Floats:
        """Return −λ, log λ and −1."""
        rate = np.maximum(parameters[:, 0], EDGE)
        return np.stack([-rate, np.log(rate), np.full_like(rate, -1.0)])

    def fit(self, sums: Floats) -> Floats:
        """Return the mean count."""
        size = sums[0]
        rate = np.divide(sums[1], size, out=np.full_like(size, self.mean), where=size > 0)
        return np.asarray(np.maximum(rate, EDGE)[:, None])

    def prior_statistics(self, strength: float, weight: float) -> Floats:
        """Return α events in α / mean records: log-rates scatter with variance about 1 / α."""
        mean = max(self.mean, half_record(weight))
        return np.array([strength / mean, strength, 0.0])

    def log_marginal(self, sums: Floats, pseudo: Floats) -> Floats:
        """Return log Γ(a + c) bᵃ / Γ(a) (b + n)ᵃ⁺ᶜ Π x!."""
        b, a, _ = pseudo
        size, events, factorials = sums
        ratio = gammaln(a + events) - gammaln(a) + a * np.log(b)
        return np.asarray(ratio - (a + events) * np.log(b + size) - factorials)

    def from_angles(self, angles: Floats) -> Floats:
        """Return the squares."""
        return np.asarray(np.maximum(np.maximum(angles, 0.0) ** 2, EDGE))

    def shift(self, parameters: Floats, noise: Floats) -> Floats:
        """Move log λ, by no more than the count varies in the whole population."""
        scale = min(1.0, self.spread / max(self.mean, EDGE))
        return np.asarray(np.maximum(parameters, EDGE) * np.exp(scale * noise))

    def expectation(self, parameters: Floats) -> Floats:
        """Return 1 and λ; log x! is the same to all clusters and counts as 0."""
        rate = parameters[:, 0]
        return np.stack([np.ones_like(rate), rate, np.zeros_like(rate)])

    def contrast_variance(self, parameters: Floats, contrast: Floats) -> Floats:
        """Return λ c², with c the contrast of x."""
        return np.asarray(parameters * contrast[1] ** 2)

    def draw(self, parameters: Floats, rng: np.random.Generator, n: int) -> Floats:
        """Draw counts."""
        return rng.poisson(parameters[0], size=n).astype(np.float64)

    def find_problem(self, parameters: Floats) -> str | None:
        """Return what is wrong with the rates."""
        return None if np.all(parameters >= 0) else Message("variable.rate")

    def describe(self, parameters: Floats) -> dict[str, Floats]:
        """Return the rate, which is the mean count."""
        return {"mean": parameters[:, 0].copy()}
