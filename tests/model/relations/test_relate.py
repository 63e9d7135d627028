"""Outcomes, predictors, regressions and survival, against published figures and by hand."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
import pytest
from scipy.special import expit

from comorb import relate_outcome, relate_predictors, relate_regression, relate_survival
from comorb.errors import InputError
from comorb.model.relations.classification import Part, bounds_of, classify, sum_outcome, wald
from comorb.model.relations.predictors import Design, _products, _step
from comorb.model.relations.survival import sum_times
from tests.model.relations.conftest import classes, table


def simulated(n=4000, seed=1, sure=0.8):
    """Return posteriors that are right, the true cluster, a predictor of it and an outcome."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    true = (rng.random(n) < expit(0.8 * z - 0.3)).astype(int)
    signal = rng.random(n) < sure
    seen = np.where(signal, true, 1 - true)
    base = true.mean()
    one = np.where(seen == 1, sure * base, (1 - sure) * base)
    other = np.where(seen == 1, (1 - sure) * (1 - base), sure * (1 - base))
    posterior = np.column_stack([other, one]) / (one + other)[:, None]
    return posterior, true, z, true * 2.0 + rng.normal(size=n)


def test_the_published_regression_of_the_class_on_grades(cheating):
    posterior, gpa = cheating
    found = relate_predictors(posterior, gpa)
    assert found.coefficients.shape == found.errors.shape == (1, 2)
    assert found.coefficients[0, 1] == pytest.approx(-0.698, abs=0.002)
    assert found.errors[0, 1] == pytest.approx(0.255, abs=0.01)
    assert found.naive[0, 1] == pytest.approx(-0.463, abs=0.002)
    assert found.notes == ("4 records without all predictors are left out",)
    assert found.odds_ratios[0, 1] == pytest.approx(np.exp(-0.698), abs=0.002)
    assert found.low[0, 1] < found.odds_ratios[0, 1] < found.high[0, 1] < 1


def test_the_published_means_of_grades(cheating):
    posterior, gpa = cheating
    bch = relate_outcome(posterior, gpa)
    np.testing.assert_allclose(bch.means, [2.463, 1.631], atol=0.005)
    ml = relate_outcome(posterior, gpa, method="ml")
    np.testing.assert_allclose(ml.means, [2.520, 1.355], atol=0.005)
    naive = relate_outcome(posterior, gpa, method="naive")
    np.testing.assert_array_equal(naive.means, bch.naive)
    gap = bch.means[0] - bch.means[1]
    assert (gap - (naive.means[0] - naive.means[1])) / gap == pytest.approx(0.257, abs=0.005)
    assert bch.overall.df == 1
    assert bch.overall.statistic == pytest.approx(bch.pairwise[0].statistic)


def test_the_published_regression_within_classes():
    plain = table("lsay.csv")
    plain = plain[np.isfinite(plain[:, :5]).any(axis=1)]
    start = np.array(
        [[0.9] * 5, [0.2, 0.2, 0.2, 0.2, 0.2], [0.3, 0.3, 0.4, 0.8, 0.8], [0.8, 0.8, 0.8, 0.3, 0.3]]
    )
    patterns, where, counts = np.unique(
        np.where(np.isfinite(plain[:, :5]), plain[:, :5], -1),
        axis=0,
        return_inverse=True,
        return_counts=True,
    )
    items = np.where(patterns < 0, np.nan, patterns)
    likelihood, posterior, *_ = classes(items, start, counts.astype(float))
    assert likelihood == pytest.approx(-7062.701, abs=0.01)
    found = relate_regression(posterior[where], plain[:, 6], plain[:, 7], names=["female"])
    order = np.argsort(found.coefficients[:, 0])
    np.testing.assert_allclose(
        found.coefficients[order, 0], [50.065, 55.323, 56.593, 62.854], atol=0.15
    )
    np.testing.assert_allclose(found.errors[order, 0], [1.110, 2.073, 0.943, 0.691], rtol=0.1)
    assert found.to_pandas().columns[1] == "covariate"
    assert found.tests[0].df == 3


@pytest.mark.parametrize("method", ["bch", "ml"])
def test_a_correction_finds_the_truth_where_the_naive_does_not(method):
    posterior, _, z, y = simulated()
    found = relate_outcome(posterior, y, method=method)
    np.testing.assert_allclose(found.means, [0, 2], atol=0.15)
    assert found.naive[1] - found.naive[0] < 1.4
    coefficients = relate_predictors(posterior, z, reference=0)
    assert coefficients.coefficients[0, 1] == pytest.approx(0.8, abs=0.15)
    assert coefficients.naive[0, 1] < 0.6


def test_sure_posteriors_need_no_correction():
    _, true, _, y = simulated()
    sure = np.eye(2)[true]
    for method in ("bch", "ml"):
        found = relate_outcome(sure, y, method=method)
        np.testing.assert_allclose(found.means, [y[true == 0].mean(), y[true == 1].mean()])
        expected = [y[true == c].std() / np.sqrt((true == c).sum()) for c in (0, 1)]
        np.testing.assert_allclose(found.errors, expected, rtol=1e-6)
    text = np.where(y > 1, "yes", "no")
    for method in ("bch", "ml"):
        shares = relate_outcome(sure, text, method=method)
        assert shares.values == ("no", "yes")
        p = np.array([(text[true == c] == "yes").mean() for c in (0, 1)])
        np.testing.assert_allclose(shares.means[:, 1], p, atol=1e-8)
        size = np.array([(true == c).sum() for c in (0, 1)])
        np.testing.assert_allclose(shares.errors[:, 1], np.sqrt(p * (1 - p) / size), rtol=1e-6)


def test_three_categories_are_shares_that_add_up():
    posterior, _, _, y = simulated()
    text = np.array(["low", "middle", "high"])[np.digitize(y, [0.5, 1.5])]
    for method in ("bch", "ml"):
        found = relate_outcome(posterior, text, method=method)
        np.testing.assert_allclose(found.means.sum(axis=1), 1)
        assert found.overall.df == 2
        assert (found.low >= 0).all()
        assert (found.high <= 1).all()
    frame = found.to_pandas()
    assert frame["value"].tolist() == [*sorted(set(text))] * 2


def test_a_share_outside_its_bounds_is_estimated_by_likelihood():
    posterior, true, _, _ = simulated(n=400, sure=0.65)
    rare = np.where((true == 1) & (np.arange(400) % 9 == 0) & (posterior[:, 1] > 0.5), "yes", "no")
    found = relate_outcome(posterior, rare)
    assert found.method == "ml"
    assert found.notes == (
        "the outcome is estimated by maximum likelihood, as its BCH weights give a share below 0 "
        "or above 1",
    )
    assert (found.means >= 0).all()


def test_a_negative_variance_is_said():
    posterior, *_ = simulated(n=400, sure=0.7)
    y = np.where((posterior[:, 1] > 0.5) & (np.arange(400) % 40 == 0), 100.0, 0.0)
    y += np.arange(400) % 2 / 100
    found = relate_outcome(posterior, y)
    assert found.method == "bch"
    assert "give a negative variance in cluster 1: its mean stands" in found.notes[0]


def test_clusters_that_can_hardly_be_told_apart():
    rng = np.random.default_rng(1)
    one = 0.5 + np.where(rng.random(400) < 0.5, 1e-5, -1e-5)
    posterior = np.column_stack([one, 1 - one])
    found = relate_outcome(posterior, rng.normal(size=400))
    assert found.method == "ml"
    assert "as the clusters can hardly be separated" in found.notes[0]
    with pytest.raises(InputError, match=r"can hardly be separated .* ask for fewer clusters"):
        relate_survival(posterior, np.arange(400), np.ones(400))


def test_order_weights_and_parts_change_no_bit(cheating):
    posterior, gpa = cheating
    order = np.random.default_rng(2).permutation(len(gpa))
    one, two = relate_outcome(posterior, gpa), relate_outcome(posterior[order], gpa[order])
    np.testing.assert_array_equal(one.means, two.means)
    np.testing.assert_array_equal(one.errors, two.errors)
    one, two = (relate_predictors(posterior[o], gpa[o]) for o in (slice(None), order))
    np.testing.assert_array_equal(one.coefficients, two.coefficients)
    np.testing.assert_array_equal(one.errors, two.errors)
    np.testing.assert_array_equal(one.marginal, two.marginal)
    weights = np.where(np.arange(len(gpa)) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(len(gpa)), weights.astype(int))
    one = relate_outcome(posterior, gpa, sample_weight=weights)
    two = relate_outcome(posterior[twice], gpa[twice])
    np.testing.assert_allclose(one.means, two.means, rtol=1e-12)


def test_statistics_add_up(cheating):
    posterior, gpa = cheating
    columns = np.column_stack([gpa, np.arange(len(gpa)) % 2])
    whole = Part(posterior.argmax(axis=1), posterior, np.ones(len(gpa)), columns)
    cut = [slice(0, 100), slice(100, None)]
    parts = [
        Part(whole.labels[c], whole.posterior[c], whole.weights[c], whole.columns[c]) for c in cut
    ]
    total = float(len(gpa))
    bounds = bounds_of(total, whole)
    statistics = [
        partial(classify, total),
        partial(bounds_of, total),
        partial(sum_outcome, 0, 0, bounds),
        partial(_step, Design((0,), ("gpa",)), np.eye(2) * 0.8 + 0.1, np.zeros((2, 2)), bounds),
        partial(sum_times, 0, 1, total, 1.0),
        partial(_products, 1, Design((0,), ("gpa",)), bounds),
    ]
    for statistic in statistics:
        one, two = statistic(whole), statistic(parts[0]) + statistic(parts[1])
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, two)
            continue
        for name, value in vars(one).items():
            np.testing.assert_array_equal(value, getattr(two, name))


def test_marginal_probabilities_and_reference(cheating):
    posterior, gpa = cheating
    other = relate_predictors(posterior, np.column_stack([gpa, gpa > 2]), reference=1)
    assert other.clusters == (0,)
    np.testing.assert_allclose(other.marginal.sum(axis=2), 1)
    np.testing.assert_array_equal(other.points[1], [0, 1])
    assert other.to_pandas()["predictor"].tolist() == ["intercept", "z1", "z2"]
    with pytest.raises(InputError, match="a cluster from 0 to 1, got 2"):
        relate_predictors(posterior, gpa, reference=2)


def test_survival_of_sure_clusters_is_kaplan_and_meier_s():
    time = np.array([1, 2, 2, 3, 4, 5, 1, 1, 2, 6, 6, 7], dtype=float)
    event = np.array([1, 1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 0], dtype=float)
    sure = np.eye(2)[np.repeat([0, 1], 6)]
    found = relate_survival(sure, time, event)
    np.testing.assert_array_equal(found.times, [1, 2, 3, 5, 6])
    np.testing.assert_allclose(
        found.survival[0], [5 / 6, 5 / 6 * 4 / 5, 5 / 6 * 4 / 5 * 2 / 3, 0, 0]
    )
    np.testing.assert_allclose(found.survival, found.naive)
    assert found.medians() == (3.0, 6.0)
    greenwood = 5 / 6 * np.sqrt(1 / 6 / 5)
    assert found.errors[0, 0] == pytest.approx(greenwood)
    assert len(found.to_pandas()) == 10


def test_survival_is_corrected():
    posterior, true, _, _ = simulated()
    rng = np.random.default_rng(3)
    time = np.ceil(rng.exponential(np.where(true == 1, 5.0, 20.0)))
    found = relate_survival(posterior, time, np.ones(len(time)))
    at = np.searchsorted(found.times, 10)
    truth = [(time[true == c] > found.times[at]).mean() for c in (0, 1)]
    np.testing.assert_allclose(found.survival[:, at], truth, atol=0.04)
    assert abs(found.naive[1, at] - truth[1]) > 0.05
    assert (np.diff(found.survival, axis=1) <= 0).all()


P = np.repeat([[0.9, 0.1], [0.1, 0.9]], 20, axis=0)
Y = np.tile([0.0, 1.0], 20)
HALF = np.repeat([0.0, 1.0], 20)
BAD = {
    r"expected a method out of bch, ml, naive, got 'wls'": (relate_outcome, P, Y, "wls"),
    "the outcome is missing in all records; give values": (relate_outcome, P, np.full(40, np.nan)),
    "the outcome has the same value in all records": (relate_outcome, P, np.ones(40)),
    "same value in all records that have one, so": (relate_outcome, P, np.array(["a"] * 40)),
    r"cluster 2 has \d.\d effective records with a value of the outcome, and 5 are needed": (
        *(relate_outcome, P, np.where(np.arange(40) < 23, Y, np.nan)),
    ),
    "cluster 2 is the most probable one of no record, so that nothing": (
        *(relate_predictors, np.tile([0.9, 0.1], (40, 1)), Y),
    ),
    "the predictor z1 has the same value in all": (relate_predictors, P, np.ones(40)),
    "the predictor z1 is missing in all records": (relate_predictors, P, np.full(40, np.nan)),
    "the predictor z1 separates cluster 2 from cluster 1 perfectly": (relate_predictors, P, HALF),
    "the predictors z1, z2 can be computed from each other": (
        *(relate_predictors, P, np.column_stack([Y, 1 - Y])),
    ),
    r"0 records have all predictors \(z1, z2\), and 5 are needed": (
        relate_predictors,
        P,
        np.column_stack([np.where(Y > 0, HALF, np.nan), np.where(Y > 0, np.nan, HALF)]),
    ),
    "expected two clusters or more": (relate_predictors, np.ones((40, 1)), Y),
    "expected numbers, got texts": (relate_predictors, P, np.array(["a", "b"] * 20)),
    "expected numbers in rows and columns": (relate_predictors, P, np.zeros((40, 1, 1))),
    "expected posteriors of shape": (relate_outcome, P[:, 0], Y),
    "not negative and add up to 1": (relate_outcome, P * 2, Y),
    "a value for each of the 40 records, got 39": (relate_outcome, P, Y[1:]),
    "expected one outcome for each record": (relate_outcome, P, P),
    "z1 has the same value in all records; leave": (relate_regression, P, Y, np.ones(40)),
    "cluster 1 has too few records, or the covariates": (relate_regression, P, Y, HALF),
    "expected times that are not negative": (relate_survival, P, Y - 3, Y),
    "expected events of 0 and 1": (relate_survival, P, Y, Y + 3),
    "no record has had the event": (relate_survival, P, Y, np.zeros(40)),
    "no record has a time and an event": (relate_survival, P, Y, np.full(40, np.nan)),
    "effective records with a time, and 5": (
        *(relate_survival, P, np.where(np.arange(40) < 23, Y, np.nan), Y),
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_a_sentence(message):
    function, *words = BAD[message]
    method = {"method": words.pop()} if isinstance(words[-1], str) else {}
    with pytest.raises(InputError, match=message):
        function(*words, **method)


@pytest.mark.parametrize(
    ("weights", "message"),
    [(-np.ones(40), "a weight that is not negative"), (np.zeros(40), "weights that add up to")],
)
def test_bad_weights(weights, message):
    with pytest.raises(InputError, match=message):
        relate_outcome(P, Y, sample_weight=weights)


def test_a_test_of_no_direction_says_nothing():
    assert wald(np.zeros(1), np.zeros((1, 1))).p == 1


def test_a_frame_needs_pandas(monkeypatch):
    found = relate_outcome(P, Y)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="a frame needs pandas, which is not installed"):
        found.to_pandas()  # by comorb.model.frames
