"""How sure the model is: of a record's cluster, of a mean, and of itself."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from scipy import sparse
from scipy.special import betaincinv

from comorb.model.arrays import Floats
from comorb.model.blocks import Blocks, Rows, map_reduce
from comorb.model.mixture import Mixture
from comorb.model.moments import Moments


def top_and_margin(posterior: Floats) -> tuple[Floats, Floats]:
    """Return each record's highest posterior and its lead over the second, (n,) each."""
    if posterior.shape[1] == 1:
        return posterior[:, 0], posterior[:, 0]
    second, top = np.partition(posterior, -2, axis=1)[:, -2:].T
    return top, top - second


@dataclass(frozen=True)
class Squares:
    """Σ w·r, Σ w·r·x and the same with r², over some rows: (d + 1, k) each."""

    plain: Floats
    squared: Floats

    def __add__(self, other: Self) -> Squares:
        return Squares(self.plain + other.plain, self.squared + other.squared)


def intervals(
    model: Mixture, blocks: Blocks, level: float = 0.95, executor: Executor | None = None
) -> tuple[Floats, Floats]:
    """Return the lower and upper ends of an interval on each mean, (k, d) each.

    Jeffreys' interval, from the Beta(c + ½, n − c + ½) distribution, with the counts scaled by
    the share of information that is left when labels are uncertain: Σ r²(x − μ)² / Σ r(x − μ)²,
    the diagonal of the observed against the complete information. With less than half a carrier
    (or half a non-carrier) it is one-sided and begins at 0 (or ends at 1). One pass.
    """
    found = map_reduce(partial(_squares, model), blocks, executor)
    carriers, sizes = found.plain[:-1].T, found.plain[-1][:, None]
    mu = model.means
    complete = carriers * (1 - 2 * mu) + sizes * mu**2
    observed = found.squared[:-1].T * (1 - 2 * mu) + found.squared[-1][:, None] * mu**2
    share = np.clip(np.divide(observed, complete, out=np.ones_like(mu), where=complete > 0), 0, 1)
    a = share * carriers + 0.5
    b = share * np.maximum(sizes - carriers, 0) + 0.5
    none, all_of_them = a <= 1, b <= 1
    low = betaincinv(a, b, np.where(all_of_them, 1 - level, (1 - level) / 2))
    high = betaincinv(a, b, np.where(none, level, (1 + level) / 2))
    return np.where(none, 0.0, low), np.where(all_of_them, 1.0, high)


def _squares(model: Mixture, rows: Rows) -> Squares:
    posterior, _ = model.posterior(rows)
    weighted = posterior * rows.weights[:, None] if rows.weights.size else posterior
    squared = weighted * posterior
    ones = np.ones(rows.indices.size)
    shape = (rows.indptr.size - 1, model.n_columns)
    matrix = sparse.csr_array((ones, rows.indices, rows.indptr), shape=shape).T
    return Squares(
        np.vstack([np.asarray(matrix @ weighted), weighted.sum(axis=0)]),
        np.vstack([np.asarray(matrix @ squared), squared.sum(axis=0)]),
    )


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

    Observed co-occurrences N·M̃2 against N·Σ_j ω_j μ_ij μ_lj, divided by the binomial standard
    deviation. Pairs expected in fewer than 5 records are passed over. O(d²·k).
    """
    n = found.weight
    p = (model.means.T * model.weights) @ model.means
    observed = found.dense_second() * n
    expected = p * n
    z = (observed - expected) / np.sqrt(np.maximum(expected * (1 - p), 1e-12))
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
    for i in range(model.n_components):
        for j in range(i + 1, model.n_components):
            if np.abs(model.means[i] - model.means[j]).max() < 0.01:
                return (
                    f"clusters {i + 1} and {j + 1} have the same profile; "
                    f"ask for fewer than {model.n_components} clusters"
                )
    return None
