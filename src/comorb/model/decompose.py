"""From moments to a mixture: SVTD on exact moments, ASVTD on a sample (paper appendices C, D)."""

from __future__ import annotations

import warnings
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from scipy import linalg, optimize

from comorb.errors import ComorbWarning, InputError
from comorb.messages import Message
from comorb.model import kernels
from comorb.model.arrays import Floats
from comorb.model.blocks import Blocks, single_threaded
from comorb.model.emissions.base import half_record
from comorb.model.mixture import EDGE, Mixture
from comorb.model.moments import Moments, moments, third_moments


@dataclass(frozen=True)
class Config:
    """How exact a decomposition is, from which EM starts.

    ``python -m benchmarks.settings decompose`` prints the evidence and the time at half and twice.
    """

    max_sweeps: int = 8  # of Jacobi rotations
    min_angle: float = 1e-3  # radians: where no rotation exceeds it, they end
    min_share: float = 1e-3  # of an even weight: EM hardly revives an empty cluster


CONFIG = Config()


@single_threaded
def svtd(m1: Floats, m2: Floats, m3: Floats, k: int) -> Mixture:
    """Return the mixture whose moments are M1 (d,), M2 (d, d), M3 (d, d, d): Algorithm 1.

    M2 = U_k S_k U_kᵀ; H_r = S_k^{-1/2} U_kᵀ M3_r U_k S_k^{-1/2} = O diag(μ_r) Oᵀ; row i of M is
    the diagonal of Oᵀ H_i O; M1 = M ω. Exact on exact moments of a model whose M has rank k.
    Repaired only where rounding left the model: see ``repair_mixture``. O(d³·k).
    """
    if not 1 <= k <= m1.size:
        raise InputError("model.svtd_k", d=m1.size, k=k)
    whitener = Moments(m1, m2, 1.0).whiten(k)
    third = np.einsum("ia,rij,jb->rab", whitener, m3, whitener, optimize=True)
    return repair_mixture(rotated_diagonals(third, widest_gap_rotation(third)), m1, EDGE)


@single_threaded
def asvtd(blocks: Blocks, k: int, executor: Executor | None = None) -> Mixture:
    """Return the approximate mixture of a sample: Algorithm 2, as the paper gives it.

    M̃2 = XᵀX / N ≈ U_k S_k U_kᵀ; X_k = X U_k S_k^{-1/2}; H_i = X_kᵀ diag(x_i) X_k / N; O is the
    eigenvectors of the slice with the widest smallest gap; row i of M is diag(Oᵀ H_i O);
    M1 = M ω. The diagonals of M̃2 and M̃3 are biased, so this is a start for EM, not an
    estimate. ``repair_mixture`` makes it a model, with half a record as the least probability.
    O(Σ nnz² + nnz·k² + d·k³) time, O(d² + d·k²) memory.
    """
    found = moments(blocks, executor)
    whitener = found.whiten(k)
    rank = int(np.count_nonzero(whitener.any(axis=0)))
    if rank < k:
        warnings.warn(Message("model.rank", rank=rank, k=k), ComorbWarning, stacklevel=2)
    third = third_moments(blocks, whitener, executor)
    means = rotated_diagonals(third, widest_gap_rotation(third))
    return repair_mixture(means, found.first, half_record(blocks.weight))


def widest_gap_rotation(third: Floats) -> Floats:
    """Return O (k, k), the singular vectors of the best slice: steps 5 to 11 of Algorithm 2.

    The best H_r is the one whose two nearest singular values are furthest apart. Each H_i is
    symmetric, and positive semi-definite but for noise, so its singular vectors are its
    eigenvectors. With k = 1 there are no gaps and O = (1). O(d·k³).
    """
    k = third.shape[1]
    if k == 1:
        return np.ones((1, 1))
    values, vectors = np.linalg.eigh(third)
    gaps = np.diff(np.sort(np.abs(values), axis=1), axis=1).min(axis=1)
    return np.asarray(vectors[np.argmax(gaps)])


def joint_diagonal(third: Floats) -> Floats:
    """Return M̃ᵀ (k, d) from all slices H_i together, not from the best one alone.

    O is the orthogonal matrix that makes Σ_i ‖off-diagonal of Oᵀ H_i O‖² least, found by Jacobi
    rotations; row i of M is the diagonal of Oᵀ H_i O. O(d·k³) a sweep.
    """
    turned = np.ascontiguousarray(third.transpose(1, 2, 0))
    kernels.rotate_jointly(turned, CONFIG.max_sweeps, CONFIG.min_angle)
    return np.ascontiguousarray(np.einsum("ppi->pi", turned))


def rotated_diagonals(third: Floats, rotation: Floats) -> Floats:
    """Return M̃ᵀ (k, d): column i is diag(Oᵀ H_i O) (step 13 of Algorithm 2). O(d·k³)."""
    return np.asarray(np.einsum("aj,iab,bj->ji", rotation, third, rotation, optimize=True))


def repair_mixture(means: Floats, first: Floats, least: float) -> Mixture:
    """Return a valid model near (M̃, ω̃): what sampling noise took out of range is put back.

    Each mean is clipped to [least, 1 − least]. ω solves M1 = M ω by non-negative least squares
    (the plain solution has negative entries on real samples), raised to at least
    ``CONFIG.min_share`` of an even share, since EM can't revive an empty cluster, and divided by
    its sum. Exact moments of a model inside these bounds give that model. O(d·k²).
    """
    means = np.clip(means, least, 1 - least)
    try:
        weights, _ = optimize.nnls(means.T, first)
    except (RuntimeError, linalg.LinAlgError):
        weights = np.zeros(means.shape[0])
    k = weights.size
    total = weights.sum()
    weights = weights / total if total > 0 else np.full(k, 1 / k)
    weights = np.maximum(weights, CONFIG.min_share / k)
    return Mixture(weights / weights.sum(), means)
