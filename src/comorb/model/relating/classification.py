"""The classification matrix: how often a record of one cluster is taken for one of another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from comorb.errors import InputError
from comorb.model.arrays import Floats, Ints
from comorb.model.blocks import rounded

SINGULAR = 1e4  # the condition number from which on an inverse says nothing
FEWEST = 5.0  # effective records of a cluster, from which on anything is said of it


@dataclass(frozen=True, eq=False)
class Part:
    """Some records as the third step sees them.

    ``labels`` is the most probable cluster of each (n,), ``posterior`` its probabilities (n, k),
    ``weights`` how many records it stands for, ``columns`` what is known beside (n, p), with NaN
    where it isn't.
    """

    labels: Ints
    posterior: Floats
    weights: Floats
    columns: Floats


@dataclass(frozen=True, eq=False)
class Reach:
    """How far sums over some records go: what makes them exact, whatever their order.

    ``total`` and ``largest`` are of the weights, ``low`` and ``high`` of each column (p,), the
    values that are known.
    """

    total: float
    largest: float
    low: Floats
    high: Floats
    known: Floats

    def __add__(self, other: Self) -> Reach:
        return Reach(
            self.total + other.total,
            max(self.largest, other.largest),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.known + other.known,
        )

    @property
    def centre(self) -> Floats:
        """The middle of each column."""
        return np.asarray(np.where(self.known > 0, (self.low + self.high) / 2, 0.0))

    @property
    def scale(self) -> Floats:
        """Half of what each column spans, 1 where that is nothing."""
        half = np.where(self.known > 0, (self.high - self.low) / 2, 1.0)
        return np.asarray(np.where(half > 0, half, 1.0))

    def scaled(self, columns: Floats) -> Floats:
        """Return columns between −1 and 1."""
        return np.asarray((columns - self.centre) / self.scale)


def reach_of(total: float, part: Part) -> Reach:
    """Return how far sums over some records go, of ``total`` weight all together."""
    known = np.isfinite(part.columns)
    low = np.where(known, part.columns, np.inf).min(axis=0, initial=np.inf)
    high = np.where(known, part.columns, -np.inf).max(axis=0, initial=-np.inf)
    return Reach(
        float(rounded(part.weights, total).sum()),
        float(part.weights.max(initial=0.0)),
        np.asarray(low),
        np.asarray(high),
        known.sum(axis=0).astype(np.float64),
    )


@dataclass(frozen=True, eq=False)
class Classification:
    """Σ w·p_t over the records taken for s, (k, k): the true cluster down, the assigned across."""

    table: Floats

    def __add__(self, other: Self) -> Classification:
        return Classification(self.table + other.table)

    @property
    def k(self) -> int:
        """The number of clusters."""
        return int(self.table.shape[0])

    @property
    def sizes(self) -> Floats:
        """The soft size of each cluster, (k,)."""
        return np.asarray(self.table.sum(axis=1))

    @property
    def matrix(self) -> Floats:
        """D, the probability that a record of cluster t is taken for one of s, (k, k)."""
        sizes = self.sizes
        empty = np.flatnonzero((sizes <= 0) | (self.table.sum(axis=0) <= 0))
        if empty.size:
            raise InputError(
                f"cluster {int(empty[0]) + 1} is the most probable one of no record, so that "
                "nothing can be said of it; ask for fewer clusters"
            )
        return np.asarray(self.table / sizes[:, None])

    @property
    def condition(self) -> float:
        """How near D is to having no inverse: 1 where all is certain."""
        return float(np.linalg.cond(self.matrix))

    @property
    def inverse(self) -> Floats:
        """D⁻¹, the BCH weight of a record taken for s in each cluster t, (k, k)."""
        if self.condition > SINGULAR:
            raise InputError(
                "the clusters can hardly be told apart by the records' codes (the classification "
                f"matrix has a condition number of {self.condition:.3g}); ask for fewer clusters"
            )
        return np.asarray(np.linalg.inv(self.matrix))


def classify(total: float, part: Part) -> Classification:
    """Return the classification of some records, of ``total`` weight all together.

    Σ_i w_i p_it [s_i = s], by modal assignment (Bolck, Croon and Hagenaars 2004; Vermunt 2010).
    O(n·k). Two sure records of two clusters:

    >>> sure = Part(np.array([0, 1]), np.eye(2), np.ones(2), np.empty((2, 0)))
    >>> classify(2.0, sure).matrix.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    k = part.posterior.shape[1]
    terms = rounded(part.weights[:, None] * part.posterior, total)
    table = np.zeros((k, k))
    for label in range(k):
        table[:, label] = terms[part.labels == label].sum(axis=0)
    return Classification(table)
