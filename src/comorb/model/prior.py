"""How far clusters may stray from the whole population: the prior, learned from the data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import betaln, gammaln

from comorb.model import features
from comorb.model.arrays import Floats
from comorb.model.blocks import exact_sum
from comorb.model.emissions.base import Variable, half_record
from comorb.model.mixture import Mixture

FIRST_STRENGTH = 1.0  # log-odds of clusters with variance 1, until the strength is learned
GOLDEN = (np.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Config:
    """The search for the prior's strength.

    ``python -m benchmarks.accuracy 4 strength`` prints what the strength found loses on new
    records to the best of ten: at most 0.005 nats a record.
    """

    # log α: from clusters with log-odds of standard deviation 12 to such of 0.08
    log_strengths: tuple[float, float] = (-5.0, 5.0)
    precision: float = 0.1  # of log α: α to 5%


CONFIG = Config()


@dataclass(frozen=True)
class Prior:
    """A Beta prior on each code's means, as pseudo-counts of positive and negative records.

    That of the features is ``prior_statistics`` (s,): statistics of records that are not there.
    """

    present: Floats
    absent: Floats
    variables: tuple[Variable, ...] = ()
    prior_statistics: Floats = field(default_factory=lambda: np.empty(0))

    @classmethod
    def around(
        cls,
        first: Floats,
        strength: float,
        weight: float,
        variables: tuple[Variable, ...] = (),
    ) -> Prior:
        """Centre the prior on the overall prevalence p: α / (1 − p) and α / p pseudo-counts.

        Then log-odds scatter over the clusters with variance about 1 / α, the same for common
        and for rare codes: a rare code is drawn to its prevalence by α positive records.
        p is kept half a record inside (0, 1).
        """
        edge = half_record(weight)
        p = np.clip(first, edge, 1 - edge)
        pseudo = features.prior_statistics(variables, strength, weight)
        return cls(strength / (1 - p), strength / p, variables, pseudo)

    def log_density(self, model: Mixture) -> float:
        """Return Σ_ji a_i log μ_ji + b_i log(1 − μ_ji), the prior up to a constant. O(k·d)."""
        present, absent = model.logs
        density = float(exact_sum(self.present * present + self.absent * absent))
        if self.variables:
            density += float(exact_sum(self.prior_statistics[:, None] * model.natural))
        return density

    def log_marginal(self, sums: Floats) -> float:
        """Return Σ_ji log B(c + a, n − c + b) − log B(a, b): the means integrated out. O(k·d).

        ``sums`` is (d + 1, k): the positive counts c of each code in each cluster, and last the
        sizes n; above these the statistics of the features, where there are any.
        """
        d = self.present.size
        positives, sizes = sums[:d].T, sums[-1][:, None]
        terms = betaln(positives + self.present, sizes - positives + self.absent)
        terms -= betaln(self.present, self.absent)
        total = float(np.sort(terms.ravel()).sum())
        if self.variables:
            own = features.log_marginal(self.variables, sums[d:-1], self.prior_statistics)
            total += float(np.sort(own.ravel()).sum())
        return total


def learn_strength(
    sums: Floats, first: Floats, weight: float, variables: tuple[Variable, ...] = ()
) -> float:
    """Return the α that makes the E-step's sums most probable: empirical Bayes.

    A golden-section search (Kiefer 1953) of ``Prior.log_marginal`` over log α. O(k·d) a step.
    """
    low, high = CONFIG.log_strengths

    def value(log_strength: float) -> float:
        prior = Prior.around(first, float(np.exp(log_strength)), weight, variables)
        return prior.log_marginal(sums)

    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = value(left), value(right)
    while high - low > CONFIG.precision:
        if at_left > at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = value(right)
    return float(np.exp((low + high) / 2))


def evidence(model: Mixture, sums: Floats, log_likelihood: float, prior: Prior) -> float:
    """Return a lower bound on log P(X), weights and means integrated out; more is better.

    Σ log B(c + a, n − c + b) / B(a, b) + log Γ(k) Π Γ(n + 1) / Γ(N + k), at the expected
    counts, plus the entropy of the posteriors: log-likelihood − Σ n·base − Σ c·logit. Unlike
    the penalised likelihood it does not reward splitting a cluster in two. O(k·d).
    """
    base, logits = model.tables()
    sizes = sums[-1]
    entropy = log_likelihood - float(sizes @ base) - float(np.sum(sums[:-1] * logits))
    labels = gammaln(sizes + 1).sum() + gammaln(sizes.size) - gammaln(sizes.sum() + sizes.size)
    return prior.log_marginal(sums) + float(labels) + entropy
