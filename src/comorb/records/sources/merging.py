"""Merging: how what two parts of a table answer to a query becomes the answer of both."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

Rows = list[tuple[Any, ...]]


def first(one: Any, _two: Any) -> Any:
    """Return the answer of the first part."""
    return one


def either(one: Rows, two: Rows) -> Rows:
    """Return what any part has found."""
    return one or two


def together(one: Rows, two: Rows) -> Rows:
    """Return the rows of both, each once."""
    return list(dict.fromkeys((*one, *two)))


def every(one: Rows, two: Rows) -> Rows:
    """Return whether both say yes, column by column; nothing is no answer."""
    return _columns(one, two, lambda a, b: a and b)


def largest(one: Rows, two: Rows) -> Rows:
    """Return the larger value of each column."""
    return _columns(one, two, max)


def histograms(one: Rows, two: Rows) -> Rows:
    """Return the counts of the values of each column."""
    return _columns(one, two, lambda a, b: dict(Counter(a) + Counter(b)))


def summed(one: Rows, two: Rows, keys: int = 0) -> Rows:
    """Return rows with the same ``keys`` first columns as one, their other columns added up."""
    sums: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in (*one, *two):
        key, counts = row[:keys], row[keys:]
        before = sums.get(key)
        sums[key] = counts if before is None else tuple(map(sum, zip(before, counts, strict=True)))
    return [(*key, *counts) for key, counts in sums.items()]


summed_by_first = partial(summed, keys=1)
summed_by_two = partial(summed, keys=2)


def _columns(one: Rows, two: Rows, join: Any) -> Rows:
    pairs = zip(one[0], two[0], strict=True)
    return [tuple(b if a is None else a if b is None else join(a, b) for a, b in pairs)]
