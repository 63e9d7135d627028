"""The noise of counts: of mean 0, the same for the same records, blind to what is counted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from comorb.insight.profile.noise import MOST, WIDE, noise, parts_of, protected_counts, shares_of

RNG = np.random.default_rng(11)
RECORDS = RNG.integers(0, 2**64, 20_000, dtype=np.uint64)


def sets(size: int, many: int) -> np.ndarray:
    """Return the keys of sets of so many records, drawn from the same ones."""
    drawn = np.array([RNG.choice(RECORDS, size, replace=False) for _ in range(many)])
    return drawn.sum(axis=1, dtype=np.uint64)


@pytest.mark.parametrize(("most", "variance"), [(MOST, 5.26), (WIDE, 488)])
def test_noise_has_mean_0_its_variance_and_bounds(most: int, variance: float) -> None:
    drawn = noise(RNG.integers(0, 2**64, 200_000, dtype=np.uint64), most)
    assert abs(drawn.mean()) < 4 * np.sqrt(variance / drawn.size)
    assert drawn.var() == pytest.approx(variance, rel=0.02)
    assert (drawn.min(), drawn.max()) == (-most, most)


def test_no_trace_of_a_small_count_is_in_the_noise() -> None:
    expected = np.bincount(noise(RNG.integers(0, 2**64, 400_000, dtype=np.uint64)) + MOST)
    shares = expected / expected.sum()
    for count in range(1, 11):
        drawn = np.bincount(noise(sets(count, 3000)) + MOST, minlength=11)
        assert chisquare(drawn, shares * drawn.sum()).pvalue > 1e-4, count


def test_nearly_equal_sets_have_unrelated_noise() -> None:
    wholes = sets(500, 4000)
    more = wholes + RNG.choice(RECORDS, 4000)
    one, two = noise(wholes), noise(more)
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.06
    assert (one - two).var() == pytest.approx(2 * 5.26, rel=0.1)


def test_zero_stays_few_are_not_told_and_others_are_near() -> None:
    counts = np.repeat(np.arange(41.0), 500)
    told = protected_counts(counts, RNG.integers(0, 2**64, counts.size, dtype=np.uint64), 11)
    assert (told[counts == 0] == 0).all()
    assert np.isnan(told[(counts > 0) & (counts < 11)]).all()
    many = counts >= 11
    assert np.nanmin(told[many]) == 11
    assert np.nanmax(np.abs(told - counts)[many]) == MOST
    assert not np.isnan(told[counts >= 11 + MOST]).any()
    assert np.isnan(told[counts == 11]).any()


def test_parts_leave_few_over_where_they_truly_do() -> None:
    wholes = np.full(2000, 500.0)
    keys = RNG.integers(0, 2**64, (3, 2000), dtype=np.uint64)
    told = protected_counts(wholes, keys[0], 11)
    most = parts_of(wholes - 4, keys[1], wholes, told, 11)
    assert (told - most).min() >= 1
    assert (told - most).max() <= 10
    every = parts_of(wholes, keys[0], wholes, told, 11)
    np.testing.assert_array_equal(every, told)
    assert np.isnan(parts_of(wholes - 4, keys[2], wholes, told * np.nan, 11)).all()


def test_shares_move_as_counts_do_and_reach_one_only_where_all_have_it() -> None:
    wholes, told = np.array([100.0, 100, 100, 0]), np.array([103.0, 98, 103, 0])
    counts, parts = np.array([100.0, 99, 0, 0]), np.array([103.0, 97, 0, 0])
    shares = shares_of(counts / 100, counts, parts, wholes, told)
    assert shares[0] == 1
    assert shares[1] == pytest.approx(97 / 98, abs=1e-3)
    assert shares[1] < 1
    assert (shares[2:] == 0).all()
