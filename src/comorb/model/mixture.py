"""The model: a mixture of independent Bernoullis, one mean per cluster and code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from comorb.errors import InputError
from comorb.model import kernels
from comorb.model.blocks import Rows
from comorb.model.kernels import Floats, Indices, Ints

EDGE = 1e-9  # a fitted probability stays this far inside (0, 1)


@dataclass(frozen=True)
class Mixture:
    """A mixture of independent Bernoullis (paper section 2, example 2.1).

    Parameters
    ----------
    weights : ndarray of shape (k,)
        ω, the share of each cluster: not negative, with sum 1.
    means : ndarray of shape (k, d)
        Mᵀ, the probability of each code in each cluster, in [0, 1].

    Examples
    --------
    >>> model = Mixture(np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]]))
    >>> model.tables()[1].shape
    (2, 2)
    """

    weights: Floats
    means: Floats

    def __post_init__(self) -> None:
        """Refuse what is not a mixture."""
        weights = np.ascontiguousarray(self.weights, dtype=np.float64)
        means = np.ascontiguousarray(self.means, dtype=np.float64)
        if weights.ndim != 1 or means.ndim != 2 or means.shape[0] != weights.size:
            raise InputError(
                f"expected weights of shape (k,) and means of shape (k, d), "
                f"got {weights.shape} and {means.shape}"
            )
        if not (np.all(weights >= 0) and abs(weights.sum() - 1) < 1e-6):
            raise InputError(
                f"expected weights that are not negative and add up to 1, "
                f"got a sum of {weights.sum():.6g}; divide them by their sum"
            )
        if not np.all((means >= 0) & (means <= 1)):
            raise InputError(
                "expected means in [0, 1], the probability of each code in each cluster; "
                "clip them or check their scale"
            )
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "means", means)

    @property
    def n_components(self) -> int:
        """k, the number of clusters."""
        return int(self.weights.size)

    @property
    def n_columns(self) -> int:
        """d, the number of codes."""
        return int(self.means.shape[1])

    def tables(self) -> tuple[Floats, Floats]:
        """Return what a row's log-density is added up from: ``base`` (k,), ``logits`` (d, k).

        log ωⱼ + Σᵢ log(1 − μᵢⱼ), and log(μᵢⱼ / (1 − μᵢⱼ)), with μ kept inside (0, 1). A sum
        over columns is made in sorted order, so that it does not depend on theirs. O(k·d).
        """
        inside = np.clip(self.means, EDGE, 1 - EDGE)
        absent = np.log1p(-inside)
        shares = np.full(self.n_components, kernels.NEVER)
        np.log(self.weights, out=shares, where=self.weights > 0)
        base = shares + np.sort(absent, axis=1).sum(axis=1)
        return base, np.ascontiguousarray((np.log(inside) - absent).T)

    def posterior(self, rows: Rows) -> tuple[Floats, Floats]:
        """Return P(Y = j | x) (n, k) and log P(x) (n,) for each row of a block: paper eq. 1."""
        base, logits = self.tables()
        n = rows.indptr.size - 1
        out, log_density = np.empty((n, self.n_components)), np.empty(n)
        kernels.posterior(rows.indptr, rows.indices, base, logits, out, log_density)
        return out, log_density

    def sample(self, n: int, seed: int = 0) -> tuple[Ints, Indices, Ints]:
        """Draw n records: the CSR arrays ``indptr`` and ``indices``, and the true cluster.

        Per cluster and code the number of carriers is binomial and the carriers are drawn
        without replacement, so that the cost is O(ones + k·d), with no dense n × d array.
        """
        rng = np.random.default_rng(seed)
        labels = rng.choice(self.n_components, size=n, p=self.weights / self.weights.sum())
        carriers: list[Ints] = []
        codes: list[Indices] = []
        for j in range(self.n_components):
            members = np.flatnonzero(labels == j)
            for i, count in enumerate(rng.binomial(members.size, self.means[j])):
                if count:
                    picked = rng.choice(members.size, size=count, replace=False, shuffle=False)
                    carriers.append(members[picked])
                    codes.append(np.full(count, i, dtype=np.int32))
        rows = np.concatenate([np.empty(0, np.int64), *carriers])
        columns = np.concatenate([np.empty(0, np.int32), *codes])
        order = np.lexsort((columns, rows))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
        return indptr.astype(np.int64), columns[order], labels.astype(np.int64)

    def ordered(self) -> Mixture:
        """Return the same mixture, largest cluster first; ties are broken by content.

        First by the means sorted within each cluster, which the order of the columns does not
        change, then by the means as they stand.
        """
        keys = [
            (-weight, *np.sort(-row), *-row)
            for weight, row in zip(self.weights, self.means, strict=True)
        ]
        order = sorted(range(self.n_components), key=keys.__getitem__)
        return Mixture(self.weights[order], self.means[order])
