"""Intervals of shares, means and medians, and tests of groups against all records."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, stdtr

from comorb.model.arrays import Floats, Ints, Mask

Z = 1.959964


def effective_size(weights: Floats) -> float:
    """Return Kish's effective number of records, (Σw)² / Σw²; 0 for none."""
    squares = float(np.sum(weights**2))
    return float(np.sum(weights)) ** 2 / squares if squares else 0.0


def wilson_interval(share: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Return Wilson's interval of a share; NaN where the share is NaN, 0 to 1 where n is 0.

    (p + z²/2n ± z·√(p(1 − p)/n + z²/4n²)) / (1 + z²/n)

    >>> low, high = wilson_interval(np.array(0.5), np.array(100.0))
    >>> round(float(low), 3), round(float(high), 3)
    (0.404, 0.596)
    """
    p, size = np.broadcast_arrays(np.asarray(share, float), np.asarray(n, float))
    square = Z * Z
    # Multiplied through by n, so that n = 0 needs no case of its own.
    centre = p * size + square / 2
    half = Z * np.sqrt(p * (1 - p) * size + square / 4)
    low, high = (centre - half) / (size + square), (centre + half) / (size + square)
    return np.clip(low, 0, p), np.clip(high, p, 1)


def mean_interval(values: Floats, weights: Floats) -> tuple[float, float, float]:
    """Return the weighted mean and its normal interval; the spread of one value is unknown."""
    n = effective_size(weights)
    centre = float(np.average(values, weights=weights))
    if n <= 1:
        return centre, float("nan"), float("nan")
    variance = float(np.average((values - centre) ** 2, weights=weights)) * n / (n - 1)
    half = Z * float(np.sqrt(variance / n))
    return centre, centre - half, centre + half


def median_interval(values: Floats, weights: Floats) -> tuple[float, float, float]:
    """Return the weighted median and the quantiles ½ ± z/(2√n), its order-statistic interval."""
    order = np.argsort(values, kind="stable")
    heaped = np.cumsum(weights[order])
    half = Z / (2 * np.sqrt(effective_size(weights)))
    levels = np.clip(np.array([0.5, 0.5 - half, 0.5 + half]), 0, 1) * heaped[-1]
    places = np.minimum(np.searchsorted(heaped, levels * (1 - 1e-12)), values.size - 1)
    centre, low, high = values[order][places].astype(float)
    return float(centre), float(low), float(high)


def share_above_p(share: Floats, n: Floats, noise: tuple[Ints, Floats] | None = None) -> Floats:
    """Return the two-sided p of each group's share above that of all, (k,): Fisher's exact test.

    The last of ``share`` and ``n`` is of all records. ``n`` are effective numbers, rounded. With
    the ``noise`` of a protected count, and how probable each is, p is that of both together.
    """
    size = np.round(n)
    events, whole = np.round(share * size), float(np.nanmax(size, initial=0))
    steps, odds = noise or (np.zeros(1), np.ones(1))
    p = np.full(share.size - 1, np.nan)
    for j in np.flatnonzero(np.isfinite(events[:-1])):
        of_all = max(np.round(share[-1] * whole), events[j])
        tails = [_draw_at_least(events[j] - step, whole, of_all, size[j]) for step in steps]
        p[j] = min(2 * odds @ tails, 1)
    return p


def _draw_at_least(x: float, whole: float, marked: float, drawn: float) -> float:
    """Return the probability of at least x marked ones among those drawn from a whole."""
    mean = drawn * marked / whole
    if x <= mean:
        return 1.0
    # Terms fall faster than those of a normal tail: 20 standard deviations are all of them.
    last = min(drawn, marked, np.ceil(x + 20 * np.sqrt(mean) + 50))
    i = np.arange(x, last + 1)

    def log_choose(of: float, some: Floats | float) -> Floats:
        return np.asarray(gammaln(of + 1) - gammaln(some + 1) - gammaln(of - some + 1))

    i = i[drawn - i <= whole - marked]
    terms = log_choose(marked, i) + log_choose(whole - marked, drawn - i)
    return float(np.exp(terms - log_choose(whole, drawn)).sum())


def mean_above_p(mean: Floats, half: Floats, n: Floats) -> Floats:
    """Return the two-sided p of each group's mean above that of all, (k,): Welch's t.

    The last of each is of all records: d = m_j − m = (1 − w)(m_j − m_others), w = n_j / n, and the
    others have the spread of all. The degrees of freedom are those of the group.
    """
    rest = np.maximum(1 - n[:-1] / n[-1], 1e-9)
    error = np.hypot(half[:-1], half[-1] / np.sqrt(rest)) / Z * rest
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (mean[:-1] - mean[-1]) / error
    return np.asarray(np.minimum(2 * stdtr(np.maximum(n[:-1] - 1, 1), -t), 1))


def reject_by_holm(p: Floats, level: float = 0.05) -> Mask:
    """Return which hypotheses are rejected: with any of them wrongly in ``level`` of runs at most.

    Holm (1979): the i-th smallest of m values of p is compared with level / (m − i + 1), up to the
    first that is above; whatever the dependence of the tests, and whichever hypotheses are true.

    >>> reject_by_holm(np.array([0.04, 0.01, 0.02, np.nan])).tolist()
    [True, True, True, False]
    """
    rejected = np.zeros(p.shape, dtype=bool)
    order = [place for place in np.argsort(p, axis=None) if not np.isnan(p.flat[place])]
    for passed, place in enumerate(order):
        if p.flat[place] > level / (len(order) - passed):
            break
        rejected.flat[place] = True
    return rejected


def round_nine_digits(values: Floats) -> Floats:
    """Round to nine significant digits, as many as the JSON of a profile has."""
    with np.errstate(divide="ignore"):
        places = np.where(values > 0, np.floor(np.log10(np.abs(values))), 0)
    scale = 10.0 ** (8 - places)
    return np.asarray(np.round(values * scale) / scale)
