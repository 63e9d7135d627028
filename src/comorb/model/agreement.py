"""How far two clusterings of the same records agree."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from comorb.model.arrays import Floats, Ints


def contingency(one: Ints, other: Ints) -> Floats:
    """Return how many records are in cluster a of one and b of the other, (k, l)."""
    k, m = int(one.max(initial=0)) + 1, int(other.max(initial=0)) + 1
    return np.bincount(one * m + other, minlength=k * m).reshape(k, m).astype(np.float64)


def adjusted_rand(one: Ints, other: Ints) -> float:
    """Return the Adjusted Rand Index (Hubert and Arabie 1985): 1 for the same partition.

    >>> adjusted_rand(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    table = contingency(one, other)
    pairs = np.sum(table * (table - 1)) / 2
    rows, columns = (np.sum(t * (t - 1)) / 2 for t in (table.sum(axis=1), table.sum(axis=0)))
    n = table.sum()
    by_chance = rows * columns / max(n * (n - 1) / 2, 1)
    most = (rows + columns) / 2
    return 1.0 if most == by_chance else float((pairs - by_chance) / (most - by_chance))


def jaccard(one: Ints, other: Ints, k: int) -> Floats:
    """Return, for each of the k clusters of one, its overlap |a ∩ b| / |a ∪ b| with its match.

    Clusters are matched one to one so that the overlaps add up to the most. (k,)
    """
    table = np.zeros((k, k))
    found = contingency(one, other)
    table[: found.shape[0], : found.shape[1]] = found
    return overlap(table)


def overlap(table: Floats) -> Floats:
    """Return the overlap of each row's cluster with its match, from their contingency, (k,)."""
    union = table.sum(axis=1)[:, None] + table.sum(axis=0)[None, :] - table
    shared = np.divide(table, union, out=np.zeros_like(table), where=union > 0)
    rows, columns = linear_sum_assignment(shared, maximize=True)
    result = np.zeros(table.shape[0])
    result[rows] = shared[rows, columns]
    return result
