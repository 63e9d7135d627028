"""Shares, tests and standardised shares against plain NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2_contingency

from comorb.insight.profile.cutting import By
from comorb.insight.profile.intervals import wilson
from comorb.insight.profile.keys import keys_of
from comorb.insight.profile.slices import Slices, default_cuts, slice_records, standardise, trend

N = 900


def made(weighted: bool = False, order: np.ndarray | None = None) -> Slices:
    rng = np.random.default_rng(5)
    age = rng.integers(20, 90, N)
    site = np.where(rng.random(N) < age / 100, "old town", "new town")
    labels = (rng.random(N) < age / 120).astype(int)
    weights = rng.integers(1, 6, N).astype(float) if weighted else None
    table = pa.table({"age": age, "sex": np.where(rng.random(N) < 0.5, "f", "m"), "site": site})
    keys = keys_of(map(str, range(N)), b"k" * 32)
    rows = np.arange(N) if order is None else order
    return slice_records(
        table.take(rows), labels[rows], 2, By("site"),
        weights=None if weights is None else weights[rows], keys=keys[rows],
    )  # fmt: skip


def test_shares_intervals_and_the_test_of_difference() -> None:
    found = made()
    assert found.labels == ("new town", "old town")
    assert found.counts.sum() == 2 * N
    table = found.counts[:, :2]
    assert found.share == pytest.approx(table / table.sum(axis=1, keepdims=True), abs=1e-6)
    low, _ = wilson(found.share, table.sum(axis=1)[:, None])
    assert found.low == pytest.approx(low, abs=1e-6)
    expected = chi2_contingency(table, correction=False).pvalue
    assert found.p == pytest.approx([expected, expected], rel=1e-3, abs=1e-8)
    assert np.isnan(found.z).all()


def test_a_trend_is_that_of_cochran_and_armitage() -> None:
    yes, n = np.array([5.0, 12, 30]), np.array([50.0, 60, 80])
    share = np.column_stack([yes / n, 1 - yes / n])
    z, p = trend(share, n, ordered=True)
    scores = np.repeat(np.arange(3), n.astype(int))
    outcome = np.concatenate(
        [np.r_[np.ones(int(a)), np.zeros(int(b - a))] for a, b in zip(yes, n, strict=True)]
    )
    expected = np.corrcoef(scores, outcome)[0, 1] * np.sqrt(n.sum())
    assert z == pytest.approx([expected, -expected], abs=1e-6)
    assert 0 < p[0] < 0.01


def test_what_can_t_be_tested_is_not_told() -> None:
    share = np.array([[0.0, 1.0], [0.0, 1.0]])
    assert np.isnan(trend(share, np.array([50.0, 60.0]), ordered=True)[1]).all()
    assert np.isnan(trend(share, np.array([50.0, 2.0]), ordered=False)[1]).all()


def test_standardised_shares_are_sums_over_the_mix() -> None:
    share = np.array([[[0.2], [0.6]], [[0.4], [0.9]]])
    found, covered = standardise(share, np.array([[1.0, 1.0], [1.0, 0.0]]), np.array([0.75, 0.25]))
    assert found[0, 0] == pytest.approx(0.75 * 0.2 + 0.25 * 0.6)
    assert np.isnan(found[1, 0])
    assert covered.tolist() == [1.0, 0.75]


def test_standardising_takes_the_age_out_of_two_sites() -> None:
    found = made()
    crude = abs(found.share[0, 0] - found.share[1, 0])
    even = abs(found.standardised[0, 0] - found.standardised[1, 0])
    assert found.mix == ("age", "sex")
    assert crude > 0.1 > even


@pytest.mark.parametrize("weighted", [False, True])
def test_the_order_of_records_changes_no_bit(weighted: bool) -> None:
    one = made(weighted)
    two = made(weighted, np.random.default_rng(1).permutation(N))
    for name in ("counts", "share", "low", "high", "p", "standardised", "covered"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes(), name
    assert one.cells is not None
    assert two.cells is not None
    assert one.cells.strata_keys.tobytes() == two.cells.strata_keys.tobytes()


def test_records_of_no_slice_and_slices_that_lack_ages_are_said() -> None:
    table = pa.table({"age": [20] * 30 + [70] * 30, "site": ["a"] * 30 + ["b"] * 28 + [None] * 2})
    found = slice_records(table, np.arange(60) % 2, 2, By("site"))
    assert found.notes == (
        "2 records have no site and are in no slice",
        "no standardised shares for a, b: fewer than 80% of all records are of an age that it has",
    )
    assert np.isnan(found.standardised).all()
    assert found.cells is None


def test_slices_that_can_t_be_made_are_left_out_when_nobody_asked() -> None:
    table = pa.table({"site": [str(i) for i in range(60)], "sex": ["f", "m"] * 30})
    assert default_cuts(table, [By("site"), By("sex"), By("age")]) == [By("sex")]
