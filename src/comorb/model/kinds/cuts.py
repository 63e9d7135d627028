"""Cuts: 0/1 columns in the place of numbers, where a start is sought."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from comorb.model.arrays import Floats

PARTS = 4


def cut(values: Floats) -> list[Any]:
    """Return a column for each quarter of the values, fewer where many are the same.

    A value that is missing is in none.
    """
    there = values[~np.isnan(values)]
    if not there.size:
        return []
    shares = np.arange(1, PARTS) / PARTS
    edges = np.unique(np.quantile(there, shares, method="inverted_cdf"))
    bounds = [-np.inf, *edges[edges < there.max()].tolist(), np.inf]
    return [(values > low) & (values <= high) for low, high in pairwise(bounds)]
