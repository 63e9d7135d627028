"""Intervals against published formulas and their coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from comorb.profiles.intervals import (
    effective_size,
    mean_above_p,
    mean_interval,
    median_interval,
    reject_by_holm,
    share_above_p,
    wilson_interval,
)
from comorb.profiles.noise import noise_odds


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


def test_shares_are_tested_as_fisher_does() -> None:
    events, size = np.array([14.0, 3.0, 40.0]), np.array([80.0, 90.0, 430.0])
    share = np.append(events / size, events.sum() / size.sum())
    p = share_above_p(share, np.append(size, size.sum()))
    for place in range(3):
        rest = events.sum() - events[place], size.sum() - size[place]
        table = [[events[place], size[place] - events[place]], [rest[0], rest[1] - rest[0]]]
        exact = stats.fisher_exact(table, alternative="greater").pvalue
        above = share[place] > share[-1]
        assert p[place] == pytest.approx(min(2 * exact, 1) if above else 1, rel=1e-9)


def test_the_noise_of_a_count_makes_a_share_less_sure() -> None:
    share, n = np.array([0.2, 0.1, 0.12]), np.array([200.0, 800.0, 1000.0])
    assert share_above_p(share, n)[0] < share_above_p(share, n, noise_odds())[0] < 0.05


def test_means_are_tested_as_welch_does() -> None:
    rng = np.random.default_rng(3)
    values, own = rng.normal(5, 2, 4000), np.arange(4000) < 300
    values[own] += 0.3
    parts = [mean_interval(values[rows], np.ones(rows.sum())) for rows in (own, ~own, own | ~own)]
    mean, low, high = np.array(parts).T
    p = mean_above_p(mean, (high - low) / 2, np.array([300.0, 3700.0, 4000.0]))
    welch = stats.ttest_ind(values[own], values[~own], equal_var=False).pvalue
    assert p[0] == pytest.approx(welch, rel=0.15)
    assert p[1] == 1


def test_holm_stops_at_the_first_that_chance_explains() -> None:
    p = np.array([[0.011, 0.0001], [0.06, 0.013]])
    assert reject_by_holm(p).tolist() == [[True, True], [False, True]]
    assert not reject_by_holm(np.array([0.013, 0.03, 0.5, 0.6])).any()


def test_shares_that_are_all_suppressed_have_no_p() -> None:
    hidden = np.full(4, np.nan)
    assert np.isnan(share_above_p(hidden, hidden)).all()
