"""Jain and Oh (2014): moments completed where the sample is biased, then the power method.

Off their diagonals M̃2 and M̃3 are unbiased. The diagonal of M2 is filled in by alternating
minimisation, the low-rank core of M3 by least squares over its unbiased entries. It needs the
d × d × d tensor, in memory and in time, which the paper holds against it.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from comorb.errors import InputError
from comorb.model.arrays import Floats
from comorb.model.blocks import single_threaded
from comorb.model.decompose import repair_mixture
from comorb.model.mixture import Mixture
from comorb.model.moments import Moments
from comorb_reproduction.tpm import unwhitened

MOST_COLUMNS = 400  # a d × d × d tensor of half a gigabyte


def third_moment(matrix: sparse.csr_array) -> Floats:
    """Return M̃3 (d, d, d) of a 0/1 matrix in full. O(Σ nnz³) time, O(d³) memory."""
    n, d = matrix.shape
    if d > MOST_COLUMNS:
        raise InputError(
            f"expected at most {MOST_COLUMNS} columns, got {d}: this method holds a tensor of "
            f"d × d × d numbers, {d**3 * 8 / 2**30:.1f} GiB here; keep the most common codes"
        )
    rows = matrix.astype(np.float64)
    columns = rows.tocsc()
    third = np.empty((d, d, d))
    for i in range(d):
        carriers = rows[columns.indices[columns.indptr[i] : columns.indptr[i + 1]]]
        third[i] = (carriers.T @ carriers).toarray()
    third /= n
    return third


@single_threaded
def jain_oh(third: Floats, k: int, seed: int = 0, least: float = 1e-9) -> Mixture:
    """Return the mixture behind a third moment whose entries with equal indices are not trusted.

    For 0/1 data M̃3 holds the lower moments too: M1 = (M̃3)_iii and M̃2 = (M̃3)_iij. ``least``
    keeps the means inside (0, 1).
    """
    d = third.shape[0]
    if not 1 <= k < d:
        raise InputError(f"expected 1 <= k < d = {d}, got k = {k}; ask for fewer clusters")
    second = np.einsum("iij->ij", third)
    first = second.diagonal().copy()
    whitener = Moments(first, completed(second, k), 1.0).whiten(k)
    basis = np.linalg.qr(whitener)[0]
    change = basis.T @ whitener
    core = np.einsum(
        "abc,ai,bj,cl->ijl", completed_core(third, basis), *[change] * 3, optimize=True
    )
    means = unwhitened(whitener, core, np.random.default_rng(seed))
    return repair_mixture(means.T, first, least)


def completed(second: Floats, k: int, steps: int = 1000) -> Floats:
    """Return the matrix of rank k that fits a (d, d) matrix off its diagonal.

    U ← argmin Σ_{i≠j} (M_ij − u_i·v_j)², then V ← an orthonormal basis of U, until U Vᵀ stands
    still. Each row is a k × k system: (VᵀV − v_i v_iᵀ) u_i = Vᵀ m_i − M_ii v_i. O(d²·k + d·k³)
    a step.
    """
    known = second - np.diag(second.diagonal())
    basis = np.linalg.eigh(known)[1][:, -k:]
    product = known
    for _ in range(steps):
        systems = basis.T @ basis - basis[:, :, None] * basis[:, None, :]
        rows = np.linalg.solve(systems + 1e-12 * np.eye(k), (known @ basis)[:, :, None])[:, :, 0]
        previous, product = product, rows @ basis.T
        if np.abs(product - previous).max() < 1e-12 * np.abs(product).max():
            break
        basis = np.linalg.qr(rows)[0]
    return np.asarray((product + product.T) / 2)


def completed_core(third: Floats, basis: Floats) -> Floats:
    """Return the core C (k, k, k) for which C[U, U, U] fits M3 where no two indices are equal.

    The normal equations P(C[U, U, U])[Uᵀ, Uᵀ, Uᵀ] = P(M3)[Uᵀ, Uᵀ, Uᵀ], with P the entries that
    are trusted, by conjugate gradients. O(d³·k) a step.
    """
    d, k = basis.shape
    index = np.arange(d)
    full = third.copy()

    def shrunk() -> Floats:
        full[index, index, :] = full[index, :, index] = full[:, index, index] = 0
        part = (full.reshape(d * d, d) @ basis).reshape(d, d, k)
        return np.tensordot(basis, basis.T @ part, (0, 0)).ravel()

    def apply(core: Floats) -> Floats:
        part = basis @ np.tensordot(basis, core.reshape(k, k, k), (1, 0))
        np.matmul(part.reshape(d * d, k), basis.T, out=full.reshape(d * d, d))
        return shrunk()

    target = shrunk()
    operator = LinearOperator((k**3, k**3), matvec=apply, dtype=np.float64)
    core, _ = cg(operator, target, rtol=1e-10, maxiter=100)
    return np.asarray(core.reshape(k, k, k))
