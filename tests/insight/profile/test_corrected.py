"""Corrected outcomes: what they are, how they are written, and that protection adds nothing."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from comorb import relate_outcome
from comorb.insight.profile.corrected import (
    classification_of,
    classification_rows,
    corrected_again,
    corrected_shares,
    outcome_rows,
)
from comorb.insight.profile.outcomes import summarise
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.profiling import profile
from comorb.model.tempering import tempered
from tests.insight.conftest import MODEL, SECRET, dense, make_cohort


@pytest.fixture(scope="module")
def told():
    """Return a cohort with an outcome that differs between clusters, and its profile."""
    cohort = make_cohort(3000)
    posterior = dense(cohort)[1]
    rng = np.random.default_rng(5)
    one = rng.random(3000) < posterior[:, 1]
    days = np.where(one, 12.0, 4.0) + rng.normal(size=3000)
    died = rng.random(3000) < np.where(one, 0.3, 0.1)
    cohort = replace(cohort, covariates=pa.table({"days": days, "died": died}))
    return cohort, posterior, profile(MODEL, cohort, secret=SECRET)


def test_they_are_bch_s(told):
    cohort, posterior, made = told
    posterior = tempered(posterior, made.caveats.temperature)
    days, died = made.outcomes
    expected = relate_outcome(posterior, cohort.covariates["days"].to_numpy())
    np.testing.assert_allclose(days.corrected.estimate[0, :2], expected.means, atol=1e-4)
    half = (days.corrected.high - days.corrected.low)[0, :2] / 2
    np.testing.assert_allclose(half, 1.959964 * expected.errors, atol=1e-4)
    np.testing.assert_array_equal(days.corrected.estimate[1], days.estimate[1])
    np.testing.assert_array_equal(days.corrected.estimate[:, -1], days.estimate[:, -1])
    text = np.array(cohort.covariates["died"].to_pylist()).astype(str)
    shares = relate_outcome(posterior, text)
    np.testing.assert_allclose(died.corrected.estimate[0, :2], shares.means[:, 1], atol=1e-4)
    low, p, high = died.corrected.low, died.corrected.estimate, died.corrected.high
    assert ((low <= p) & (p <= high) & (low >= 0)).all()
    assert np.abs(np.diff(days.corrected.estimate[0, :2])) > np.abs(np.diff(days.estimate[0, :2]))


def test_where_both_differ_is_marked(told):
    rows = outcome_rows(told[2])
    means = [row for row in rows if row["value"] == "mean"]
    assert all(row["corrected"] for row in means)
    assert all(row["differs"] == (not row["low"] <= row["naive"] <= row["high"]) for row in means)
    assert any(row["differs"] for row in means)
    assert not any(row["corrected"] for row in rows if row["value"] == "median")


def test_they_are_written_and_read_again(told):
    made = told[2]
    again = Profile.from_json(made.to_json())
    assert again.caveats.classification == made.caveats.classification
    for one, two in zip(made.outcomes, again.outcomes, strict=True):
        np.testing.assert_array_equal(one.corrected.estimate, two.corrected.estimate)
        np.testing.assert_array_equal(one.corrected.high, two.corrected.high)


def test_a_protected_view_has_them_of_what_it_tells_alone(told):
    made = told[2]
    shown = made.protected()
    taken = np.array(shown.caveats.classification)
    np.testing.assert_allclose(taken.sum(axis=1), 1)
    np.testing.assert_allclose(taken, np.round(taken, 2))
    sizes = np.array([cluster.size for cluster in shown.clusters], dtype=float)
    for was, now in zip(made.outcomes, shown.outcomes, strict=True):
        known, naive = now.known[:2], now.estimate[:1, :2]
        half = (now.high - now.low)[:1, :2] / 2
        shares = shown.weights / sizes * known
        means, _ = corrected_again(naive, half, known, shares, taken)
        off = np.abs(now.corrected.estimate[0, :2] - means[0])
        assert (off <= np.maximum(half[0], 1e-4)).all()
        assert np.abs(now.corrected.estimate - was.corrected.estimate)[0].max() < 0.5


def test_a_hidden_cluster_leaves_nothing_corrected():
    cohort = make_cohort(3000)
    rare = np.arange(3000) < 6
    cohort = replace(cohort, covariates=pa.table({"moved": rare}))
    made = profile(MODEL, cohort, secret=SECRET)
    (now,) = made.protected().outcomes
    assert now.corrected is None
    huge = made.protected(1500)
    assert huge.caveats.classification == ()
    assert huge.outcomes[0].corrected is None


def test_a_share_of_few_stays_hidden_and_the_others_are_corrected_without_it():
    cohort = make_cohort(3000)
    second = np.flatnonzero(dense(cohort)[1].argmax(axis=1) == 1)
    first = np.setdiff1d(np.arange(3000), second)
    told = []
    for few in (2, 7):
        died = np.zeros(3000, dtype=bool)
        died[first[:200]] = died[second[:few]] = True
        made = profile(MODEL, replace(cohort, covariates=pa.table({"died": died})), secret=SECRET)
        (now,) = made.protected().outcomes
        assert np.isnan(now.estimate[0, 1])
        assert np.isnan(now.corrected.estimate[0, 1])
        told.append(now.corrected.estimate[0, 0])
        assert now.estimate[0, 0] < told[-1] < now.estimate[0, 0] + 0.03
    assert told[0] == pytest.approx(told[1], abs=0.005)


@pytest.mark.parametrize("values", [[5.0] * 6, [1.0, None, None, 2.0, None, None]])
def test_what_can_not_be_corrected_stands_as_it_is(values):
    labels = np.array([0, 0, 0, 1, 1, 1])
    table = np.array([[2.7, 0.3], [0.3, 2.7]])
    column = pa.table({"days": pa.array(values, pa.float64())})
    sure = classification_of(table)
    (found,) = summarise(column, labels, 2, np.ones(6), classification=sure)
    assert found.corrected is None
    assert found.shown is found
    assert not found.differs(0, 0)


def test_an_empty_cluster_has_no_classification():
    assert classification_rows(np.array([[3.0, 0.0], [0.0, 0.0]])) == ()
    assert classification_rows(np.array([[3.0]])) == ()


def test_a_share_near_nothing_is_not_told_by_few_records():
    relation = SimpleNamespace(
        means=np.array([[0.0005, 0.9995], [0.2, 0.8]]),
        errors=np.full((2, 2), 0.004),
        effective=np.array(2000.0),
    )
    made = corrected_shares(relation, np.array([[0.1], [0.09], [0.11]]), 1)
    assert made.high[0, 0] < 0.02
    np.testing.assert_allclose(made.high[0, 1] - made.low[0, 1], 2 * 1.96 * 0.004, rtol=0.01)
