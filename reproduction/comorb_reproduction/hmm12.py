"""HMM12: the three-view spectral method of Anandkumar, Hsu and Kakade (2012), Algorithm B."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.stats import ortho_group

from comorb.model.arrays import Floats
from comorb_reproduction.multiview import Views, learned_by_view


def learn(views: Views, roles: tuple[int, int, int], k: int, rng: np.random.Generator) -> Floats:
    """Return the means of the last view of ``roles``, (d_c, k), in an order of their own.

    U_a, U_b: singular vectors of P_ab, U_c of P_ac. For the rows θᵢ of a random rotation Θ,
    Bᵢ = (U_aᵀ P_abc(U_c θᵢ) U_b)(U_aᵀ P_ab U_b)⁻¹ = R diag(θᵢᵀ U_cᵀ M_c) R⁻¹. R diagonalises
    B₁, the other diagonals follow in the same order, and M_c = U_c Θ⁻¹ L. On a noisy sample
    eigenvalues may come in complex pairs, of which the real part is taken.
    """
    a, b, c = roles
    left, _, right = np.linalg.svd(views.pair(a, b))
    last = np.linalg.svd(views.pair(a, c))[2]
    u_a, u_b, u_c = left[:, :k], right[:k].T, last[:k].T
    rotation = ortho_group.rvs(k, random_state=rng) if k > 1 else np.ones((1, 1))
    seen = views.triple(roles, (u_a, u_b, u_c @ rotation.T))
    inverse = np.linalg.pinv(u_a.T @ views.pair(a, b) @ u_b)
    operators = np.einsum("abi,bc->iac", seen, inverse)
    vectors = np.linalg.eig(operators[0])[1]
    turned = np.linalg.pinv(vectors) @ operators @ vectors
    values = np.diagonal(turned, axis1=1, axis2=2).real
    return np.asarray(u_c @ rotation.T @ values)


hmm12 = partial(learned_by_view, learn)  # O(pairs + triples + d³)
