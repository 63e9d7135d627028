"""Outcomes from protected counts: rare categories in one, means with noise and few digits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from comorb.insight.profile.contents import Corrected, Outcome, OutcomeCells
from comorb.insight.profile.corrected import corrected_again
from comorb.insight.profile.intervals import wilson
from comorb.insight.profile.noise import digits, noise, parts_of, shares_of
from comorb.insight.profile.outcomes import OTHER
from comorb.model.arrays import Floats, Keys
from comorb.model.relating.classification import SINGULAR

TOTALS = np.uint64(0x5851F42D4C957F2D)  # sets the noise of totals apart from that of counts


def protect_outcome(
    full: Outcome, cells: OutcomeCells, sizes: Floats, told: Floats, least: int
) -> Outcome:
    """Return an outcome from protected counts, of clusters whose sizes are told like this."""
    known = parts_of(full.known, cells.known, sizes, told, least)
    if full.kind == "number":
        return _with_noise(full, cells, known)
    full, keys = _united(full, cells.counts, least)
    counts = parts_of(full.counts, keys, full.known, known, least)
    shares = shares_of(full.estimate, full.counts, counts, full.known, known)
    moved = shares - full.estimate
    return replace(
        full,
        known=known,
        counts=counts,
        estimate=shares,
        low=digits(np.clip(full.low + moved, 0, shares)),
        high=digits(np.clip(full.high + moved, shares, 1)),
        cells=None,
        corrected=None,
    )


def protect_corrected(
    full: Outcome, made: Outcome, shares: Floats, taken: Floats, least: int
) -> Outcome:
    """Return a protected outcome with corrected figures, made of what is told of it and no more.

    ``shares`` is that of each cluster for one of its records, as told; ``taken`` how often records
    are taken for another cluster's. A share that isn't told, as its count is below ``least``, stays
    so; the others are corrected as if it were half of the most that it can be. Where it isn't told
    how many records of a cluster are known, none is corrected.
    """
    k = len(made.known) - 1
    known, rows = made.known[:k], slice(None) if made.kind == "share" else slice(0, 1)
    if full.corrected is None or taken.shape != (k, k) or not (known > 0).all():
        return replace(made, corrected=None)
    naive, half = made.estimate[rows, :k], np.nan_to_num(made.high - made.low)[rows, :k] / 2
    hidden, middle = np.isnan(naive), np.minimum(least / known, 1) / 2
    missing = hidden.any() if made.kind == "number" else hidden.all()
    if missing or np.linalg.cond(taken) > SINGULAR:
        return replace(made, corrected=None)
    naive, half = np.where(hidden, middle, naive), np.where(hidden, middle, half)
    means, wide = corrected_again(naive, half, known, shares * known, taken)
    figures = [made.estimate.copy(), made.low.copy(), made.high.copy()]
    for place, own in enumerate((means, means - wide, means + wide)):
        if made.kind == "share":
            own = digits(np.clip(own, 0, 1))
        else:
            step = _steps(wide, means)
            own = np.round(np.round(own / step) * step, 6)
        figures[place][rows, :k] = np.where(hidden, np.nan, own)
    return replace(made, corrected=Corrected(*figures))


def _united(full: Outcome, keys: Keys, least: int) -> tuple[Outcome, Keys]:
    """Return an outcome whose categories of fewer than ``least`` records are one, the others.

    Where these are too few themselves, the rarest of the categories joins them.
    """
    totals = full.counts[:, -1]
    rare = totals < least
    if len(full.values) < 3 or not rare.any():
        return full, keys
    rare |= np.array([value == OTHER for value in full.values])
    if totals[rare].sum() < least and not rare.all():
        rare[np.argmin(np.where(rare, np.inf, totals))] = True
    kept = ~rare
    shares = full.estimate[rare].sum(axis=0)
    low, high = wilson(shares, full.known)
    return replace(
        full,
        values=(*(value for value, stays in zip(full.values, kept, strict=True) if stays), OTHER),
        counts=np.vstack([full.counts[kept], full.counts[rare].sum(axis=0)]),
        estimate=np.vstack([full.estimate[kept], shares]),
        low=np.vstack([full.low[kept], low]),
        high=np.vstack([full.high[kept], high]),
    ), np.vstack([keys[kept], keys[rare].sum(axis=0, dtype=np.uint64)])


def _with_noise(full: Outcome, cells: OutcomeCells, known: Floats) -> Outcome:
    """Return means with as much noise as a few records could make, and no digits beyond intervals.

    The noise of a total is that of a count times what the record that is farthest from the mean
    adds to it.
    """
    drawn = noise(cells.known ^ TOTALS) * cells.reach
    moved = np.vstack([drawn, np.zeros_like(drawn)])
    step = _steps((full.high - full.low) / 2, full.estimate)

    def told(values: Floats) -> Floats:
        rounded = np.round((values + moved) / step) * step
        return np.where(np.isnan(known), np.nan, np.round(rounded, 6))

    return replace(
        full,
        known=known,
        estimate=told(full.estimate),
        low=told(full.low),
        high=told(full.high),
        cells=None,
        corrected=None,
    )


def _steps(half: Floats, centre: Floats) -> Floats:
    """Return the power of ten that half an interval supports: of 0.34, tenths.

    Without an interval, three digits of the value.
    """
    scale = np.where(half > 0, half, np.abs(centre) / 100)
    known = np.where(scale > 0, scale, 1.0)
    return np.asarray(10.0 ** np.floor(np.log10(known)))
