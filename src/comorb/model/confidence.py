"""How sure the model is: of a record's cluster, of a mean, and of itself."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, rel_entr

from comorb.model.arrays import Floats
from comorb.model.blocks import Blocks
from comorb.model.em import expect
from comorb.model.information import information_share
from comorb.model.mixture import EDGE, Mixture
from comorb.model.moments import Moments


def top_and_margin(posterior: Floats) -> tuple[Floats, Floats]:
    """Return each record's highest posterior and its lead over the second, (n,) each."""
    if posterior.shape[1] == 1:
        return posterior[:, 0], posterior[:, 0]
    second, top = np.partition(posterior, -2, axis=1)[:, -2:].T
    return top, top - second


def intervals(
    model: Mixture,
    blocks: Blocks,
    level: float = 0.95,
    executor: Executor | None = None,
    records: float | None = None,
) -> tuple[Floats, Floats]:
    """Return the lower and upper ends of an interval on each mean, (k, d) each.

    Jeffreys' interval, from the Beta(c + ½, n − c + ½) distribution, with the counts scaled by
    the share of information that is left when labels are uncertain and codes depend on each
    other (``information.information_share``). With less than half a carrier (or half a
    non-carrier) it is one-sided and begins at 0 (or ends at 1). ``records`` is how many the rows
    are worth, where that isn't their weight.
    """
    expected = expect(model, blocks, executor)
    sums = np.concatenate([expected.carriers, expected.sums[-1:]])
    if records is not None:
        sums = sums * (records / blocks.weight)
    carriers, sizes = sums[:-1].T, sums[-1][:, None]
    share = information_share(model, blocks, executor)
    a = share * carriers + 0.5
    b = share * np.maximum(sizes - carriers, 0) + 0.5
    none, all_of_them = a <= 1, b <= 1
    low = betaincinv(a, b, np.where(all_of_them, 1 - level, (1 - level) / 2))
    high = betaincinv(a, b, np.where(none, level, (1 + level) / 2))
    return np.where(none, 0.0, low), np.where(all_of_them, 1.0, high)


@dataclass(frozen=True)
class Residual:
    """A pair of codes whose co-occurrence the clusters do not explain."""

    first: int
    second: int
    observed: float
    expected: float
    z: float


def residuals(model: Mixture, found: Moments, top: int = 20) -> list[Residual]:
    """Return the pairs of codes that the mixture fits worst, by standardised residual.

    Observed co-occurrences o = N·M̃2 against e = N·Σ_j ω_j μ_ij μ_lj: the signed root of the
    binomial deviance 2(o log o/e + (N − o) log (N − o)/(N − e)), in which a few records of a pair
    that is hardly expected don't outweigh thousands. Pairs of fewer than 5 records are passed
    over. O(d²·k).
    """
    n = found.weight
    p = (model.means.T * model.weights) @ model.means
    observed = found.dense_second() * n
    expected = np.clip(p, EDGE, 1 - EDGE) * n
    deviance = rel_entr(observed, expected) + rel_entr(n - observed, n - expected)
    z = np.sign(observed - expected) * np.sqrt(2 * np.maximum(deviance, 0))
    z[(expected < 5) & (observed < 5)] = 0
    first, second = np.triu_indices(p.shape[0], 1)
    worst = np.argsort(-np.abs(z[first, second]), kind="stable")[:top]
    return [
        Residual(int(i), int(j), float(observed[i, j]), float(expected[i, j]), float(z[i, j]))
        for i, j in zip(first[worst], second[worst], strict=True)
    ]


def collapsed(model: Mixture, weight: float) -> str | None:
    """Return a sentence when two clusters are alike or one is nearly empty, else None."""
    sizes = model.weights * weight
    if model.n_components > 1 and sizes.min() < 1:
        return (
            f"cluster {int(sizes.argmin()) + 1} holds less than one record; "
            f"ask for fewer than {model.n_components} clusters"
        )
    profiles = np.concatenate([model.means, model.trait_angles], axis=1)
    for i in range(model.n_components):
        for j in range(i + 1, model.n_components):
            if np.abs(profiles[i] - profiles[j]).max(initial=0.0) < 0.01:
                return (
                    f"clusters {i + 1} and {j + 1} have the same profile; "
                    f"ask for fewer than {model.n_components} clusters"
                )
    return None
