"""Intervals against published formulas and their coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from comorb.profiles.intervals import (
    effective_size,
    mean_interval,
    median_interval,
    wilson_interval,
)


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (3, 10), (50, 100), (999, 1000), (7, 7)])
def test_wilson_is_that_of_scipy(hits: int, n: int) -> None:
    low, high = wilson_interval(np.array(hits / n), np.array(float(n)))
    expected = stats.binomtest(hits, n).proportion_ci(method="wilson")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_nothing_is_known_of_no_record() -> None:
    low, high = wilson_interval(np.array(0.0), np.array(0.0))
    assert (low, high) == (0, pytest.approx(1))
    assert effective_size(np.empty(0)) == 0


def test_hidden_stays_hidden() -> None:
    assert np.isnan(wilson_interval(np.array(np.nan), np.array(10.0))).all()
    assert np.isnan(wilson_interval(np.array(0.5), np.array(np.nan))).all()


def test_a_weight_of_two_is_two_records_in_mean_and_median() -> None:
    values, weights = np.array([1.0, 5.0, 9.0, 2.0]), np.array([2.0, 1.0, 1.0, 1.0])
    repeated = np.array([1.0, 1.0, 5.0, 9.0, 2.0])
    assert mean_interval(values, weights)[0] == mean_interval(repeated, np.ones(5))[0]
    assert median_interval(values, weights)[0] == median_interval(repeated, np.ones(5))[0] == 2


def test_mean_is_the_normal_interval() -> None:
    values = np.random.default_rng(0).normal(5, 2, 400)
    centre, low, high = mean_interval(values, np.ones(400))
    error = stats.sem(values) * 1.959964
    assert (centre, low, high) == pytest.approx((values.mean(), centre - error, centre + error))


def test_the_spread_of_one_value_is_unknown() -> None:
    centre, low, high = mean_interval(np.array([3.0]), np.array([2.0]))
    assert centre == 3
    assert np.isnan([low, high]).all()


def test_the_interval_of_the_median_covers_it() -> None:
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(400):
        _, low, high = median_interval(rng.exponential(1, 101), np.ones(101))
        hits += low <= np.log(2) <= high
    assert 0.92 < hits / 400 < 0.98
