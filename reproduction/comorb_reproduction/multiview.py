"""Three views of a mixture: their cross moments, and clusters put in one order across them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from comorb.errors import InputError
from comorb.model.arrays import Floats
from comorb.model.blocks import single_threaded
from comorb.model.decompose import repair_mixture
from comorb.model.mixture import EDGE, Mixture

ROLES = ((1, 2, 0), (2, 0, 1), (0, 1, 2))  # the last of each is learned with the other two


class Views(Protocol):
    """The moments that the multi-view methods see: E(x), E(x_a ⊗ x_b), E(x_a ⊗ x_b ⊗ x_c)."""

    @property
    def first(self) -> Floats:
        """M1 over all columns, (d,)."""

    @property
    def least(self) -> float:
        """How near to 0 and 1 an estimated mean may be."""

    def pair(self, a: int, b: int) -> Floats:
        """Return P_ab = E(x_a ⊗ x_b), (d_a, d_b)."""

    def triple(self, roles: tuple[int, int, int], maps: tuple[Floats, Floats, Floats]) -> Floats:
        """Return E(Aᵀx_a ⊗ Bᵀx_b ⊗ Cᵀx_c), (k, k, k), for maps (d_a, k), (d_b, k), (d_c, k)."""


Learner = Callable[[Views, tuple[int, int, int], int, np.random.Generator], Floats]


@dataclass(frozen=True)
class SampleViews:
    """Cross moments of a 0/1 matrix, from its sparse rows; no d³ tensor is made.

    The views are the columns 1 to d/3, d/3 + 1 to 2d/3 and the rest, as in the paper. A pair
    costs O(Σ nnz²), a triple O(nnz·k + N·k³).
    """

    matrix: sparse.csr_array

    @cached_property
    def parts(self) -> tuple[sparse.csr_array, ...]:
        """The matrix cut into its three views."""
        values = self.matrix.astype(np.float64).tocsc()
        return tuple(values[:, view].tocsr() for view in thirds(values.shape[1]))

    @property
    def first(self) -> Floats:
        """M1 over all columns, (d,)."""
        return np.concatenate([np.asarray(part.mean(axis=0)).ravel() for part in self.parts])

    @property
    def least(self) -> float:
        """Half a record."""
        return 0.5 / (self.matrix.shape[0] + 1)

    def pair(self, a: int, b: int) -> Floats:
        """Return P_ab = X_aᵀ X_b / N."""
        return np.asarray((self.parts[a].T @ self.parts[b]).toarray() / self.matrix.shape[0])

    def triple(self, roles: tuple[int, int, int], maps: tuple[Floats, Floats, Floats]) -> Floats:
        """Return Σₙ Aᵀx_a ⊗ Bᵀx_b ⊗ Cᵀx_c / N, one slice of C at a time."""
        left, right, last = (self.parts[v] @ m for v, m in zip(roles, maps, strict=True))
        slices = [(left * last[:, [r]]).T @ right for r in range(last.shape[1])]
        return np.stack(slices, axis=2) / self.matrix.shape[0]


@dataclass(frozen=True)
class ExactViews:
    """Cross moments of a known mixture, as an endless sample would have them."""

    model: Mixture
    least: float = EDGE

    @cached_property
    def parts(self) -> tuple[Floats, ...]:
        """The true means of the three views, (d_v, k)."""
        return tuple(self.model.means[:, view].T for view in thirds(self.model.n_columns))

    @property
    def first(self) -> Floats:
        """M1 = M ω."""
        return np.asarray(self.model.weights @ self.model.means)

    def pair(self, a: int, b: int) -> Floats:
        """Return P_ab = M_a diag(ω) M_bᵀ."""
        return np.asarray((self.parts[a] * self.model.weights) @ self.parts[b].T)

    def triple(self, roles: tuple[int, int, int], maps: tuple[Floats, Floats, Floats]) -> Floats:
        """Return Σⱼ ωⱼ Aᵀμ_a ⊗ Bᵀμ_b ⊗ Cᵀμ_c."""
        seen = (m.T @ self.parts[v] for v, m in zip(roles, maps, strict=True))
        return np.asarray(np.einsum("j,aj,bj,cj->abc", self.model.weights, *seen, optimize=True))


def thirds(d: int) -> list[slice]:
    """Return the columns of the three views: 0 to d/3, to 2d/3 and to d."""
    return [slice(v * d // 3, (v + 1) * d // 3) for v in range(3)]


@single_threaded
def learned_by_view(
    learn: Learner, views: Views, k: int, seed: int = 0, truth: Floats | None = None
) -> Mixture:
    """Return the mixture whose means a method learns view by view, each with enough columns.

    ``truth`` (k, d) puts the clusters of the views in one order, as the paper did; without it
    the cross moments do.
    """
    d = views.first.size
    if d < 3 * k:
        raise InputError(
            f"expected at least 3 columns for each cluster, d >= 3k = {3 * k}, got d = {d}: each "
            f"of the three views must tell all clusters apart; ask for at most {d // 3} clusters"
        )
    rng = np.random.default_rng(seed)
    return assembled(views, [learn(views, roles, k, rng) for roles in ROLES], truth)


def assembled(views: Views, learned: Sequence[Floats], truth: Floats | None) -> Mixture:
    """Return one mixture from three views (d_v, k) whose clusters come in unrelated orders.

    With the true means (k, d) each view is matched with its part of them, as the paper did.
    Without, the last view predicts the directions of the others, P_vc (M_cᵀ)† = M_v Ω, and each
    is matched with its prediction by cosine. ``repair_mixture`` makes a mixture of what comes out.
    """
    if truth is not None:
        targets = [truth[:, view].T for view in thirds(truth.shape[1])]
        ordered = [
            m[:, matched(((m[:, None, :] - t[:, :, None]) ** 2).sum(axis=0))]
            for m, t in zip(learned, targets, strict=True)
        ]
    else:
        anchor = learned[2]
        inverse = np.linalg.pinv(anchor.T)
        directions = [views.pair(v, 2) @ inverse for v in (0, 1)]
        ordered = [
            m[:, matched(-(unit(t).T @ unit(m)))]
            for m, t in zip(learned[:2], directions, strict=True)
        ]
        ordered.append(anchor)
    return repair_mixture(np.vstack(ordered).T, views.first, views.least)


def matched(costs: Floats) -> list[int]:
    """Return, for each row of ``costs`` (k, k), its column in the cheapest pairing."""
    return [int(column) for column in linear_sum_assignment(costs)[1]]


def unit(columns: Floats) -> Floats:
    """Return columns divided by their lengths."""
    return np.asarray(columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300))
