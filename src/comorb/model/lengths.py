"""How much of what tells clusters apart is the number of codes in a record."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np

from comorb.model.arrays import Floats
from comorb.model.blocks import Blocks, Rows, exact_sum, map_reduce, rounded
from comorb.model.em import expect
from comorb.model.mixture import EDGE, Mixture

MOSTLY = 0.5  # of a cluster's divergence from the whole


@dataclass(frozen=True)
class Lengths:
    """The number of codes in a record, by cluster.

    ``explained`` is the share of its variance that lies between clusters, ``means`` (k,) the mean
    in each, ``of_profile`` (k,) the share of the cluster's divergence from the whole population
    that is gone once the prevalences of the whole are scaled to the cluster's mean length.
    ``records`` is Kish's effective number of them, (Σw)² / Σw².
    """

    explained: float
    means: Floats
    overall: float
    of_profile: Floats
    records: float

    @property
    def mostly_length(self) -> tuple[int, ...]:
        """The clusters that differ from the whole mostly in how many codes a record has."""
        return tuple(np.flatnonzero(self.of_profile > MOSTLY).tolist())


def lengths(model: Mixture, blocks: Blocks, executor: Executor | None = None) -> Lengths:
    """Return how far clusters explain the number of codes in a record. Two passes, O(nnz·k).

    Σ_j n_j (m_j − m)² / Σ_n (length_n − m)², with memberships by posterior; and for each cluster
    1 − Σ_i KL(μ_ij ‖ p_i m_j / m) / Σ_i KL(μ_ij ‖ p_i).
    """
    expected = expect(model, blocks, executor)
    sizes = np.maximum(expected.sums[-1], 1e-12)
    by_cluster = np.array([float(exact_sum(column)) for column in expected.carriers.T])
    overall = by_cluster.sum() / blocks.weight
    bounds = blocks.weight * max(blocks.n_columns, 1) ** 2, blocks.weight**2
    squares, of_weights = map_reduce(partial(_squares, bounds), blocks, executor).tolist()
    variance = squares - blocks.weight * overall**2
    means = by_cluster / sizes
    between = float(np.sum(sizes * (means - overall) ** 2))
    p = expected.carriers.sum(axis=1) / blocks.weight
    scaled = p * (means / max(overall, EDGE))[:, None]
    plain = _divergence(model.means, np.broadcast_to(p, scaled.shape))
    left = _divergence(model.means, scaled)
    of_profile = 1 - np.divide(left, plain, out=np.ones_like(left), where=plain > EDGE)
    explained = between / variance if variance > 0 else 0.0
    of_profile, records = np.clip(of_profile, 0, 1), blocks.weight**2 / of_weights
    return Lengths(min(explained, 1.0), means, float(overall), of_profile, records)


def _squares(bounds: tuple[float, float], rows: Rows) -> Floats:
    """Return Σ w·length² and Σ w²."""
    counts = np.diff(rows.indptr).astype(np.float64)
    weights = rows.weights if rows.weights.size else np.ones(counts.size)
    terms = weights * counts**2, weights**2
    return np.array([rounded(*one).sum() for one in zip(terms, bounds, strict=True)])


def _divergence(means: Floats, other: Floats) -> Floats:
    mu, nu = (np.clip(values, EDGE, 1 - EDGE) for values in (means, other))
    terms = mu * np.log(mu / nu) + (1 - mu) * np.log((1 - mu) / (1 - nu))
    return np.asarray(exact_sum(terms, axis=1))
