"""Intervals of shares, means and medians."""

from __future__ import annotations

import numpy as np

from comorb.model.arrays import Floats

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


def round_nine_digits(values: Floats) -> Floats:
    """Round to nine significant digits, as many as the JSON of a profile has."""
    with np.errstate(divide="ignore"):
        places = np.where(values > 0, np.floor(np.log10(np.abs(values))), 0)
    scale = 10.0 ** (8 - places)
    return np.asarray(np.round(values * scale) / scale)
