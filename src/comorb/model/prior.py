"""How far clusters may stray from the whole population: the prior, learned from the data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import betaln, gammaln

from comorb.model import traits
from comorb.model.arrays import Floats
from comorb.model.blocks import exact_sum
from comorb.model.kinds.variable import Variable
from comorb.model.mixture import Mixture

GOLDEN = (np.sqrt(5) - 1) / 2
LOG_STRENGTHS = (-5.0, 5.0)


@dataclass(frozen=True)
class Prior:
    """A Beta prior on each code's means, as pseudo-counts of carriers and of non-carriers.

    That of the features is ``pseudo`` (s,): statistics of records that are not there.
    """

    present: Floats
    absent: Floats
    variables: tuple[Variable, ...] = ()
    pseudo: Floats = field(default_factory=lambda: np.empty(0))

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
        and for rare codes: a rare code is drawn to its prevalence by α carriers. p is kept half
        a record inside (0, 1).
        """
        edge = 0.5 / (weight + 1)
        p = np.clip(first, edge, 1 - edge)
        pseudo = traits.pseudo(variables, strength, weight)
        return cls(strength / (1 - p), strength / p, variables, pseudo)

    def log_density(self, model: Mixture) -> float:
        """Return Σ_ji a_i log μ_ji + b_i log(1 − μ_ji), the prior up to a constant. O(k·d)."""
        present, absent = model.logs
        density = float(exact_sum(self.present * present + self.absent * absent))
        if self.variables:
            density += float(exact_sum(self.pseudo[:, None] * model.natural))
        return density

    def log_marginal(self, sums: Floats) -> float:
        """Return Σ_ji log B(c + a, n − c + b) − log B(a, b): the means integrated out. O(k·d).

        ``sums`` is (d + 1, k): the carriers c of each code in each cluster, and last the sizes n;
        above these the statistics of the features, where there are any.
        """
        d = self.present.size
        carriers, sizes = sums[:d].T, sums[-1][:, None]
        terms = betaln(carriers + self.present, sizes - carriers + self.absent)
        terms -= betaln(self.present, self.absent)
        total = float(np.sort(terms.ravel()).sum())
        if self.variables:
            own = traits.log_marginal(self.variables, sums[d:-1], self.pseudo)
            total += float(np.sort(own.ravel()).sum())
        return total


def learn_strength(
    sums: Floats, first: Floats, weight: float, variables: tuple[Variable, ...] = ()
) -> float:
    """Return the α that makes the E-step's sums most probable: empirical Bayes.

    A golden-section search of ``Prior.log_marginal`` over log α in [−5, 5], to 5%. O(k·d).
    """
    low, high = LOG_STRENGTHS

    def value(log_strength: float) -> float:
        prior = Prior.around(first, float(np.exp(log_strength)), weight, variables)
        return prior.log_marginal(sums)

    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = value(left), value(right)
    while high - low > 0.1:
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
