"""Profile against dense re-derivations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from comorb.errors import InputError
from comorb.insight.profile.assignment import assign
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.profiling import profile
from comorb.model.mixture import Mixture
from comorb.records.cohort import Cohort
from tests.insight.conftest import CODES, MODEL, make_cohort


def dense(cohort: Cohort) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix and the posterior, worked out the long way."""
    x = cohort.matrix.toarray().astype(float)
    mu = np.clip(MODEL.means, 1e-9, 1 - 1e-9)
    logs = np.log(MODEL.weights) + x @ np.log(mu).T + (1 - x) @ np.log(1 - mu).T
    p = np.exp(logs - logs.max(axis=1, keepdims=True))
    return x, p / p.sum(axis=1, keepdims=True)


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
        assert cluster.top == pytest.approx(np.average(posterior[rows, j], weights=w[rows]), 1e-5)
        np.testing.assert_array_equal(made.counts[j], x[rows].sum(axis=0))
        np.testing.assert_allclose(made.prevalence[j], np.average(x[rows], axis=0, weights=w[rows]))
    np.testing.assert_allclose(made.overall, np.average(x, axis=0, weights=w))
    np.testing.assert_allclose(made.lift, made.prevalence / made.overall)
    assert made.source.weight == (w.sum() if weighted else None)


def test_confidence_is_that_of_the_posterior(cohort: Cohort) -> None:
    _, posterior = dense(cohort)
    found = assign(MODEL, cohort, n_jobs=1)
    ordered = np.sort(posterior, axis=1)
    np.testing.assert_allclose(found.top, ordered[:, -1])
    np.testing.assert_allclose(found.margin, ordered[:, -1] - ordered[:, -2])
    safe = np.where(posterior > 0, posterior, 1)
    np.testing.assert_allclose(found.entropy, -(posterior * np.log(safe)).sum(1) / np.log(2), 1e-6)


def test_a_single_cluster_has_no_doubts(cohort: Cohort) -> None:
    made = profile(Mixture(np.ones(1), cohort.matrix.toarray().mean(axis=0)[None]), cohort)
    (only,) = made.clusters
    assert (only.size, only.top, only.margin, only.entropy) == (len(cohort), 1, 1, 0)


def test_the_code_of_every_record_is_left_out(full: Profile) -> None:
    assert [full.codes[i] for i in full.universal] == ["428"]
    assert full.codes.index("428") not in full.common(20)
    assert full.codes.index("428") not in full.heatmap.columns
    assert np.all(np.diff(full.overall[full.common(20)]) <= 0)
    assert len(full.common(3)) == 3


def test_top_is_the_order_of_relevance_above_the_floor(full: Profile) -> None:
    low, _ = full.intervals()
    for cluster in (0, 1):
        for lam in (0.0, 0.6, 1.0):
            picks = full.top(cluster, lam, n=4)
            scores = full.relevance(lam)[cluster]
            able = [i for i in range(8) if low[cluster, i] >= 0.02 and CODES[i] != "428"]
            assert picks.tolist() == sorted(able, key=lambda i: -scores[i])[:4]


def test_a_rare_code_never_wins(full: Profile) -> None:
    assert full.codes.index("038") not in full.top(1, lam=0.0, n=8)
    with pytest.raises(InputError, match="expected a cluster from 0 to 1, got 2"):
        full.top(2)


def test_names_come_from_the_relevant_codes_and_can_be_replaced(full: Profile) -> None:
    assert [c.name for c in full.clusters] == [
        "Diabetes, chronic kidney disease",
        "Hypertension, lipid disorders",
    ]
    again = full.renamed({1: "Metabolic"})
    assert [c.name for c in again.clusters] == ["Diabetes, chronic kidney disease", "Metabolic"]
    with pytest.raises(InputError, match="expected names that are not empty, for clusters from"):
        full.renamed({2: "Too many"})
    with pytest.raises(InputError, match="expected names that are not empty"):
        full.renamed({0: " "})


def test_intervals_hold_the_prevalence(full: Profile) -> None:
    low, high = full.intervals()
    assert np.all((low <= full.prevalence) & (full.prevalence <= high))
    low, high = full.overall_intervals()
    assert np.all((low <= full.overall) & (full.overall <= high))


def test_stability_is_filled_in(full: Profile, cohort: Cohort) -> None:
    stable = full.with_stability((0.9, 0.8))
    assert [c.stability for c in stable.clusters] == [0.9, 0.8]
    made = profile(MODEL, cohort, stability=(0.9, 0.8))
    assert made.clusters == stable.clusters
    with pytest.raises(InputError, match="expected the stability of 2 clusters, got that of 1"):
        full.with_stability((0.9,))


def test_explain_takes_codes_as_they_are_written(full: Profile) -> None:
    why = full.explain(["250.00", "58500", "428", "nonsense"])
    assert why.codes == ("250", "585", "428")
    assert why.unknown == ("nonsense",)
    with pytest.raises(InputError, match="a suppressed profile does not hold the whole model"):
        full.suppressed(11).explain(["250"])


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


def test_no_id_is_in_the_document(full: Profile) -> None:
    assert "patient-" not in full.to_json()


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


def test_a_model_of_other_codes_is_an_error(cohort: Cohort) -> None:
    other = Mixture(np.ones(1), np.full((1, 3), 0.5))
    with pytest.raises(InputError, match="expected a model over the 8 codes of the cohort, got"):
        profile(other, cohort)


def test_an_empty_cluster_has_no_confidence_and_no_lines(cohort: Cohort) -> None:
    weights, means = np.append(MODEL.weights, 0), np.vstack([MODEL.means, np.full(8, 0.5)])
    made = profile(Mixture(weights, means), cohort)
    empty = made.clusters[2]
    assert (empty.name, empty.size, empty.share, empty.top) == ("Cluster 3", 0, 0, None)
    assert made.heatmap.lines[2] == 0
    assert made.suppressed(11).clusters[2].size == 0
    assert Profile.from_json(made.to_json()).clusters == made.clusters


def test_clusters_go_by_their_numbers(full: Profile) -> None:
    clusters = tuple(replace(c, number=n) for c, n in zip(full.clusters, (2, 7), strict=True))
    numbered = replace(full, clusters=clusters).renamed({0: "First", 1: "Second"})
    assert numbered.cluster_names == ("First", "Second")
    assert (numbered.place_of(2), numbered.place_of(7)) == (0, 1)
    assert numbered.places_of(np.array([7, 2, 7])).tolist() == [1, 0, 1]
    with pytest.raises(InputError, match="expected one of the clusters 2, 7, got 3"):
        numbered.place_of(3)
