"""TPM: the tensor power method on symmetrised cross moments (Anandkumar et al. 2014)."""

from __future__ import annotations

from functools import partial
from itertools import permutations

import numpy as np

from comorb.model.arrays import Floats
from comorb.model.moments import Moments
from comorb_reproduction.multiview import Views, learned_by_view, unit

STARTS, STEPS = 10, 100


def learn(views: Views, roles: tuple[int, int, int], k: int, rng: np.random.Generator) -> Floats:
    """Return the means of the last view of ``roles``, (d_c, k), in an order of their own.

    A = P_cb P_ab† and B = P_ca P_ba† take the other views to the last one, so that
    E(A x_a ⊗ B x_b) = Σ ωⱼ μⱼ ⊗ μⱼ and E(A x_a ⊗ B x_b ⊗ x_c) = Σ ωⱼ μⱼ ⊗ μⱼ ⊗ μⱼ.
    """
    a, b, c = roles
    inverse = truncated_inverse(views.pair(a, b), k)
    to_last = views.pair(c, b) @ inverse, views.pair(c, a) @ inverse.T
    second = to_last[0] @ views.pair(a, c)
    whitener = Moments(np.abs(second.diagonal()), (second + second.T) / 2, 1.0).whiten(k)
    third = views.triple(roles, (to_last[0].T @ whitener, to_last[1].T @ whitener, whitener))
    return unwhitened(whitener, symmetric(third), rng)


tpm = partial(learned_by_view, learn)  # O(pairs + triples + d³ + k⁴ a step of the power method)


def unwhitened(whitener: Floats, third: Floats, rng: np.random.Generator) -> Floats:
    """Return the μⱼ, (d, k), of the whitened tensor Σ ωⱼ (Wᵀμⱼ)^{⊗3}: μⱼ = λⱼ (Wᵀ)† vⱼ."""
    values, vectors = power(third, rng)
    return np.asarray(np.linalg.pinv(whitener.T) @ (vectors * values))


def power(tensor: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return eigenvalues (k,) and eigenvectors (k, k) of a symmetric tensor, by deflation.

    v ← T(I, v, v) / ‖T(I, v, v)‖ from random starts until it stands still; the start with the
    largest λ = T(v, v, v) wins, and T ← T − λ v ⊗ v ⊗ v. O(k⁴) a step for all components.
    """
    k = tensor.shape[0]
    rest, values, vectors = tensor, np.empty(k), np.empty((k, k))
    for j in range(k):
        tried = unit(rng.standard_normal((k, STARTS)))
        for _ in range(STEPS):
            previous, tried = tried, unit(contracted(rest, tried))
            if np.abs(tried - previous).max() < 1e-12:
                break
        heights = (tried * contracted(rest, tried)).sum(axis=0)
        best = int(np.argmax(heights))
        values[j], vectors[:, j] = heights[best], tried[:, best]
        v = vectors[:, j]
        rest = rest - values[j] * v[:, None, None] * v[:, None] * v
    return values, vectors


def contracted(tensor: Floats, vectors: Floats) -> Floats:
    """Return T(I, v, v), (k, s), for each column v of ``vectors`` (k, s)."""
    return np.asarray(((tensor @ vectors) * vectors).sum(axis=1))


def symmetric(tensor: Floats) -> Floats:
    """Return the mean of a tensor over the orders of its three indices."""
    return np.asarray(sum(tensor.transpose(order) for order in permutations(range(3)))) / 6


def truncated_inverse(matrix: Floats, k: int) -> Floats:
    """Return the pseudo-inverse of a matrix cut to its k largest singular values."""
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    kept = values[:k] > values[0] * 1e-12
    scale = np.where(kept, 1 / np.where(kept, values[:k], 1), 0)
    return np.asarray((right[:k].T * scale) @ left[:, :k].T)
