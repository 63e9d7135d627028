"""Sums of an outcome over the records taken for each cluster: all that its correction needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from comorb.model.arrays import Floats
from comorb.model.blocks import rounded
from comorb.model.relating.classification import Part, Reach


@dataclass(frozen=True, eq=False)
class OutcomeSums:
    """Over the records with a value, by the cluster they are taken for.

    Y has m columns: the number itself between −1 and 1, or a column of 0 and 1 for each category.
    """

    first: Floats  # (k, m + 1): Σ w and Σ w·y
    squares: Floats  # (k, m): Σ w·y²
    second: Floats  # (k, m + 1, m + 1): Σ w²·(1, y)(1, y)ᵀ
    counts: Floats  # (k,): records
    categories: Floats  # (k, v): records of each category; v = 0 for a number

    def __add__(self, other: Self) -> OutcomeSums:
        return OutcomeSums(
            self.first + other.first,
            self.squares + other.squares,
            self.second + other.second,
            self.counts + other.counts,
            self.categories + other.categories,
        )


def sum_outcome(column: int, levels: int, reach: Reach, part: Part) -> OutcomeSums:
    """Return the sums of one column, a number or a category of so many ``levels``.

    Terms lie on a grid on which their sums are exact. O(n·m²).
    """
    k = part.posterior.shape[1]
    values = indicators(column, levels, reach, part.columns)
    known = np.isfinite(part.columns[:, column])
    ones = np.column_stack([np.ones(known.sum()), values[known]])
    weights, labels = part.weights[known], part.labels[known]
    m = values.shape[1]
    first, squares = np.zeros((k, m + 1)), np.zeros((k, m))
    second, counts = np.zeros((k, m + 1, m + 1)), np.zeros(k)
    categories = np.zeros((k, levels))
    once = rounded(weights[:, None] * ones, reach.total)
    twice = rounded(weights[:, None] * ones[:, 1:] ** 2, reach.total)
    crossed = [
        rounded(weights**2 * ones[:, a] * ones[:, b], reach.total * reach.largest)
        for a in range(m + 1)
        for b in range(m + 1)
    ]
    for label in range(k):
        here = labels == label
        counts[label] = here.sum()
        categories[label] = ones[here, 1:].sum(axis=0) if levels else 0
        first[label], squares[label] = once[here].sum(axis=0), twice[here].sum(axis=0)
        second[label] = np.reshape([term[here].sum() for term in crossed], (m + 1, m + 1))
    return OutcomeSums(first, squares, second, counts, categories)


def indicators(column: int, levels: int, reach: Reach, columns: Floats) -> Floats:
    """Return a column as numbers between −1 and 1 (n, 1), or as categories of 0 and 1 (n, v)."""
    own = columns[:, column]
    if not levels:
        return np.asarray((own - reach.centre[column]) / reach.scale[column])[:, None]
    return np.asarray(own[:, None] == np.arange(levels)).astype(np.float64)
