"""Noise: what is added to a count, looked up by the key of the records that are counted."""

from __future__ import annotations

import numpy as np

from comorb.model.arrays import Floats, Ints, Keys
from comorb.storage import mixed

MOST = 5  # the largest noise of a count; its variance is 5.3
WIDE = 50  # that of an answer to a question, of which many can be asked; its variance is 488
_SHAPE = 2.0
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def noise(keys: Keys, most: int = MOST) -> Ints:
    """Return the noise of sets of records by their keys: whole numbers from −most to most.

    Their mean is 0; j has the probability exp(−2 (j / most)²), up to a constant.
    """
    steps = np.arange(-most, most + 1)
    odds = np.exp(-_SHAPE * (steps / most) ** 2)
    edges = np.cumsum(odds / odds.sum())
    drawn = mixed(keys + _GOLDEN)
    uniform = (drawn >> np.uint64(11)).astype(np.float64) / 2.0**53
    return np.asarray(steps[np.minimum(np.searchsorted(edges, uniform, "right"), 2 * most)])


def protected_counts(counts: Floats, keys: Keys, least: int) -> Floats:
    """Return counts with their noise, and NaN for those below ``least``, before the noise or after.

    >>> protected_counts(np.array([0.0, 4.0]), np.array([0, 7], dtype=np.uint64), 11)
    array([ 0., nan])
    """
    noisy = counts + noise(keys)
    told = np.where((counts < least) | (noisy < least), np.nan, noisy)
    return np.where(counts == 0, 0.0, told)


def parts_of(counts: Floats, keys: Keys, wholes: Floats, told: Floats, least: int) -> Floats:
    """Return the protected counts of parts of sets, of which ``told`` are the protected counts.

    A part that is not the whole leaves at least one record over, and fewer than ``least`` where it
    truly does; where the whole is not told, no part is.
    """
    parts = protected_counts(counts, keys, least)
    rest = wholes - counts
    fewest = np.where((rest > 0) & (rest < least), told - (least - 1), 0)
    most = np.where(rest > 0, told - 1, told)
    parts = np.where(parts > 0, np.clip(parts, np.maximum(fewest, 1), np.maximum(most, 1)), parts)
    return np.where(np.isnan(told), np.nan, parts)


def shares_of(
    shares: Floats, counts: Floats, parts: Floats, wholes: Floats, told: Floats
) -> Floats:
    """Return weighted shares moved as the counts of parts and wholes were, or NaN.

    A share is 0 or 1 only where the true one is.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = shares * changed(parts, counts) / changed(told, wholes)
    below = np.where(parts < told, 1 - 0.5 / np.maximum(told, 1), 1.0)
    return digits(np.where(counts == 0, parts, np.clip(moved, 0, below)))


def changed(told: Floats, true: Floats) -> Floats:
    """Return by how many times protection changed counts; NaN where they are not told."""
    return np.asarray(told / np.where(true > 0, true, 1))


def digits(values: Floats) -> Floats:
    """Return shares with the digits that a protected count supports."""
    return np.asarray(np.round(values, 4))
