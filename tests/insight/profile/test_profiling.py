"""Profiling against dense re-derivations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from comorb import BernoulliMixture
from comorb.errors import InputError
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.profiling import profile
from comorb.model.mixture import Mixture
from comorb.model.tempering import tempered
from comorb.records.cohort import Cohort
from tests.insight.conftest import MODEL, SECRET, dense, make_cohort


@pytest.mark.parametrize("weighted", [False, True])
def test_sizes_shares_and_prevalence(weighted: bool) -> None:
    cohort = make_cohort(weighted=weighted)
    made = profile(MODEL, cohort)
    x, posterior = dense(cohort)
    w = np.ones(len(cohort)) if cohort.weights is None else cohort.weights
    hard = posterior.argmax(axis=1)
    for j, cluster in enumerate(made.clusters):
        rows = hard == j
        assert cluster.size == rows.sum()
        assert cluster.share == pytest.approx(w[rows].sum() / w.sum())
        assert cluster.soft_share == pytest.approx((w @ posterior)[j] / w.sum(), abs=1e-8)
        assert cluster.effective == pytest.approx(w[rows].sum() ** 2 / (w[rows] ** 2).sum(), 1e-6)
        cooler = tempered(posterior, made.caveats.temperature)[rows, j]
        assert cluster.top == pytest.approx(np.average(cooler, weights=w[rows]), 1e-5)
        np.testing.assert_array_equal(made.counts[j], x[rows].sum(axis=0))
        np.testing.assert_allclose(made.prevalence[j], np.average(x[rows], axis=0, weights=w[rows]))
    np.testing.assert_allclose(made.overall, np.average(x, axis=0, weights=w))
    np.testing.assert_allclose(made.lift, made.prevalence / made.overall)
    assert made.source.weight == (w.sum() if weighted else None)


def test_a_fitted_estimator_stands_for_its_mixture(cohort: Cohort) -> None:
    fitted = BernoulliMixture(2).fit(cohort)
    assert profile(fitted, cohort).to_json() == profile(fitted.mixture_, cohort).to_json()
    for model, records in ((BernoulliMixture(2), cohort), (fitted, cohort.matrix)):
        with pytest.raises(InputError, match="fit the estimator first, and give the Cohort"):
            profile(model, records)  # type: ignore[arg-type]


def test_a_single_cluster_has_no_doubts(cohort: Cohort) -> None:
    made = profile(Mixture(np.ones(1), cohort.matrix.toarray().mean(axis=0)[None]), cohort)
    (only,) = made.clusters
    assert (only.size, only.top, only.margin, only.entropy) == (len(cohort), 1, 1, 0)


def test_source_says_what_was_clustered(full: Profile, cohort: Cohort) -> None:
    source = full.source
    assert (source.records, source.features) == (600, 8)
    assert (source.title, source.reason, source.command) == (
        "Test",
        "asked for",
        "comorb fit x.csv",
    )
    assert source.lines == cohort.ledger.lines
    assert source.digest == profile(MODEL, make_cohort()).source.digest
    assert source.digest != profile(MODEL, make_cohort(weighted=True)).source.digest


def test_the_order_of_the_records_does_not_matter(cohort: Cohort) -> None:
    order = np.random.default_rng(3).permutation(len(cohort))
    shuffled = replace(
        cohort,
        matrix=cohort.matrix[order],
        ids=cohort.ids.take(pa.array(order)),
        covariates=cohort.covariates.take(pa.array(order)),
    )
    one, two = profile(MODEL, cohort), profile(MODEL, shuffled)
    assert one.heatmap == two.heatmap
    assert one.clusters == two.clusters
    np.testing.assert_array_equal(one.prevalence, two.prevalence)


def test_an_empty_cluster_has_no_confidence_and_no_lines(cohort: Cohort) -> None:
    weights, means = np.append(MODEL.weights, 0), np.vstack([MODEL.means, np.full(8, 0.5)])
    made = profile(Mixture(weights, means), cohort, secret=SECRET)
    empty = made.clusters[2]
    assert (empty.name, empty.size, empty.share, empty.top) == ("Cluster 3", 0, 0, None)
    assert made.heatmap.lines[2] == 0
    assert made.protected(11).clusters[2].size == 0
    assert Profile.from_json(made.to_json()).clusters == made.clusters
