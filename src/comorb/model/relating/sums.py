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

    Terms lie on a grid on which their sums are exact. O(n·m): no record is of two categories.
    """
    k = part.posterior.shape[1]
    known = np.isfinite(part.columns[:, column])
    values = indicators(column, levels, reach, part.columns[known])
    ones = np.column_stack([np.ones(len(values)), values])
    weights, labels = part.weights[known], part.labels[known]
    m = values.shape[1]

    def by_label(terms: Floats, bound: float) -> Floats:
        return np.bincount(labels, rounded(terms, bound), k).astype(np.float64)

    once = [by_label(weights * ones[:, a], reach.total) for a in range(m + 1)]
    twice = [by_label(weights * ones[:, a] ** 2, reach.total) for a in range(1, m + 1)]
    second = np.zeros((k, m + 1, m + 1))
    for a in range(m + 1):
        for b in range(a, m + 1):
            if not levels or a in (0, b):
                products = weights**2 * ones[:, a] * ones[:, b]
                second[:, a, b] = by_label(products, reach.total * reach.largest)
                second[:, b, a] = second[:, a, b]
    counts = np.bincount(labels, minlength=k).astype(np.float64)
    categories = np.zeros((k, levels))
    for level in range(levels):
        categories[:, level] = np.bincount(labels, ones[:, 1 + level], k)
    return OutcomeSums(np.column_stack(once), np.column_stack(twice), second, counts, categories)


def indicators(column: int, levels: int, reach: Reach, columns: Floats) -> Floats:
    """Return a column as numbers between −1 and 1 (n, 1), or as categories of 0 and 1 (n, v)."""
    own = columns[:, column]
    if not levels:
        return np.asarray((own - reach.centre[column]) / reach.scale[column])[:, None]
    return np.asarray(own[:, None] == np.arange(levels)).astype(np.float64)
