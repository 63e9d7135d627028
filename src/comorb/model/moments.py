"""First, second and whitened third moments of a 0/1 matrix, and bounds on their bias."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import eigsh

from comorb.model import kernels
from comorb.model.arrays import Floats
from comorb.model.blocks import Blocks, Rows, map_reduce

Pairs = Floats | sparse.csr_array

DENSE_COLUMNS = 4096  # up to here M̃2 is dense, 128 MB at most; beyond it is sparse
# Lanczos finds k eigenvectors in O(d²k) where a full decomposition takes O(d³): from so many
# columns, and so many for each cluster, it is the faster one.
LANCZOS_COLUMNS, LANCZOS_COLUMNS_PER_CLUSTER = 256, 8


@dataclass(frozen=True)
class Moments:
    """M1 and M̃2 (paper section 3.2), exact counts divided by the total weight.

    ``first`` is (d,), ``second`` (d, d), dense or sparse by size; ``weight`` is N.
    """

    first: Floats
    second: Pairs
    weight: float

    def whiten(self, k: int) -> Floats:
        """Return the whitener E_k† transposed, (d, k): step 2 of Algorithm 2.

        M̃2 ≈ U_k S_k U_kᵀ and the whitener is U_k S_k^{-1/2}; directions beyond the rank of M̃2
        are zero. Lanczos from the first moment, or a full decomposition when d is small.
        """
        d = self.first.size
        if d > LANCZOS_COLUMNS and LANCZOS_COLUMNS_PER_CLUSTER * k < d:
            values, vectors = eigsh(self.second, k=k, v0=np.sqrt(self.first))
        else:
            values, vectors = linalg.eigh(self.dense_second(), subset_by_index=(d - k, d - 1))
        order = np.argsort(values)[::-1]
        values, vectors = values[order], vectors[:, order]
        real = values > max(values[0], 0) * d * np.finfo(float).eps
        scale = np.zeros(k)
        scale[real] = 1 / np.sqrt(values[real])
        return np.ascontiguousarray(vectors * scale)

    def dense_second(self) -> Floats:
        """Return M̃2 as a dense (d, d) array."""
        return self.second if isinstance(self.second, np.ndarray) else self.second.toarray()


def prevalence(blocks: Blocks, executor: Executor | None = None) -> Floats:
    """Return M1 (d,) alone: the share of rows with each code. O(nnz)."""
    return map_reduce(partial(_count_positives, blocks.n_columns), blocks, executor) / blocks.weight


def _count_positives(d: int, rows: Rows) -> Floats:
    each = np.repeat(rows.weights, np.diff(rows.indptr)) if rows.weights.size else None
    return np.asarray(np.bincount(rows.indices, weights=each, minlength=d), dtype=np.float64)


def moments(blocks: Blocks, executor: Executor | None = None) -> Moments:
    """Return M1 and M̃2 = XᵀX / N of the rows: step 1 of Algorithm 2, in O(Σ nnz²) time."""
    pairs = map_reduce(partial(_count_pairs, blocks.n_columns), blocks, executor, small=False)
    if isinstance(pairs, np.ndarray):
        pairs += np.triu(pairs, 1).T
        pairs /= blocks.weight
        return Moments(pairs.diagonal().copy(), pairs, blocks.weight)
    pairs.data /= blocks.weight
    return Moments(pairs.diagonal(), pairs, blocks.weight)


def _count_pairs(d: int, rows: Rows) -> Pairs:
    """Return Σ w·x xᵀ over some rows, the upper triangle where it is dense."""
    if d <= DENSE_COLUMNS:
        pairs = np.zeros((d, d))
        kernels.co_occur(rows.indptr, rows.indices, rows.weights, pairs)
        return pairs
    ones = np.ones(rows.indices.size)
    weighted = np.repeat(rows.weights, np.diff(rows.indptr)) if rows.weights.size else ones
    shape = (rows.indptr.size - 1, d)
    left, right = (
        sparse.csr_array((values, rows.indices, rows.indptr), shape=shape)
        for values in (weighted, ones)
    )
    return sparse.csr_array(left.T @ right)


def third_moments(blocks: Blocks, whitener: Floats, executor: Executor | None = None) -> Floats:
    """Return all H_i = X_kᵀ diag(x_i) X_k / N at once, (d, k, k): step 6 of Algorithm 2.

    Row i of the flattened H is Σₙ xₙᵢ·vec(yₙ yₙᵀ) / N with y = whitenerᵀ x. O(nnz·k²) time,
    O(d·k²) memory; X_k is never stored.
    """
    d, k = whitener.shape
    count = partial(_third, whitener, blocks.snap)
    sums = map_reduce(count, blocks, executor, small=False)
    result = np.empty((d, k, k))
    upper = np.triu_indices(k)
    result[:, upper[0], upper[1]] = sums / blocks.weight
    result[:, upper[1], upper[0]] = result[:, upper[0], upper[1]]
    return result


def _third(whitener: Floats, snap: float, rows: Rows) -> Floats:
    d, k = whitener.shape
    sums = np.zeros((d, k * (k + 1) // 2))
    kernels.add_third_moments(rows.indptr, rows.indices, rows.weights, whitener, snap, sums)
    return sums


@dataclass(frozen=True)
class BiasBounds:
    """Theorem B.1 from a sample: how far the diagonals of M̃2 and M̃3 can be from M2 and M3.

    ``second`` (d,) bounds entry (i, i), ``mixed`` (d, d) entry (i, i, l), ``third`` (d,) entry
    (i, i, i). Off the diagonals there is no bias.
    """

    second: Floats
    mixed: Floats
    third: Floats


def bias_bounds(found: Moments) -> BiasBounds:
    """Return the bounds of Theorem B.1 with sample moments in the place of their limits.

    For a 0/1 variable E(x²|Y) = E(x³|Y) = μ, so that, with p = M1 and C = M̃2:
    p_i − p_i²; C_il − C_il² / p_l for i ≠ l; p_i − p_i³. A code that no record has gets bound 0.
    """
    p = found.first
    pairs = found.dense_second()
    mixed = pairs - np.divide(pairs**2, p, out=np.zeros_like(pairs), where=p > 0)
    np.fill_diagonal(mixed, p - p**3)
    return BiasBounds(p - p**2, mixed, p - p**3)
