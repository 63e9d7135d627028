"""Comparison of two runs, and flows that give nothing small away."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from comorb.errors import InputError
from comorb.model.diagnostics import adjusted_rand
from comorb.model.mixture import Mixture
from comorb.profiles.assignment import assign
from comorb.profiles.build import profile
from comorb.profiles.comparison import compare, likeness, likeness_word, match_clusters
from comorb.profiles.noise import MAX_HIDDEN_NOISE, MAX_NOISE, record_keys
from comorb.profiles.profile import Profile
from comorb.records.cohort import Cohort
from tests.small_cohort import MODEL, SECRET


def test_a_run_with_its_clusters_the_other_way_round(full: Profile, cohort: Cohort) -> None:
    other = Mixture(MODEL.weights[::-1], MODEL.means[::-1])
    turned = profile(other, cohort)
    labels = assign(MODEL, cohort).labels, assign(other, cohort).labels
    found = compare(full, turned, labels)
    assert found.pairs == match_clusters(full, turned) == ((0, 1), (1, 0))
    assert found.ari == 1
    assert np.allclose(found.differences, 0)
    sizes = [c.size for c in full.clusters]
    np.testing.assert_array_equal(found.flows, [[0, sizes[0]], [sizes[1], 0]])


def test_ari_is_that_of_scikit_learn(full: Profile) -> None:
    rng = np.random.default_rng(0)
    one, two = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    two[:150] = one[:150]
    assert compare(full, full, (one, two)).ari == pytest.approx(adjusted_rand_score(one, two))


def test_other_records_are_compared_by_prevalence(full: Profile) -> None:
    half = replace(full, prevalence=full.prevalence / 2)
    found = compare(full, half)
    assert found.flows is None
    assert found.ari is None
    np.testing.assert_allclose(found.differences, -full.prevalence / 2)


def test_a_match_is_as_good_as_its_codes_are_the_same(full: Profile) -> None:
    assert compare(full, full).likeness == (1.0, 1.0)
    half = compare(full, replace(full, prevalence=full.prevalence / 2))
    assert half.likeness == (0.5, 0.5)
    p, q = np.array([0.3, 0.9, 0.0]), np.array([0.6, 0.1, 0.2])
    assert likeness(p, q) == likeness(q, p) == round(0.4 / 1.7, 2)
    assert likeness(np.zeros(2), np.zeros(2)) == 1
    words = [likeness_word(one) for one in (1, 0.85, 0.84, 0.7, 0.6, 0.54, 0)]
    assert words == ["very good", "very good", "good", "good", "fair", "poor", "poor"]


def test_runs_must_have_something_in_common(full: Profile) -> None:
    with pytest.raises(InputError, match="on the same records, got 3 and 4; leave the labels out"):
        compare(full, full, (np.zeros(3, int), np.zeros(4, int)))
    other = replace(full, codes=tuple(f"x{code}" for code in full.codes))
    with pytest.raises(InputError, match="expected two runs with codes in common, got none"):
        compare(full, other)


def test_small_flows_are_protected_and_others_are_near(full: Profile, cohort: Cohort) -> None:
    labels = assign(MODEL, cohort).labels
    moved = labels.copy()
    moved[np.flatnonzero(labels == 0)[:4]] = 1
    keys = record_keys(cohort, SECRET)
    found = compare(full, full.protected(11), (labels, moved), keys)
    assert found.flows is not None
    true = np.array([[np.sum((labels == a) & (moved == b)) for b in (0, 1)] for a in (0, 1)])
    told = np.diag(found.flows)
    assert np.abs(told - np.diag(true)).max() <= MAX_NOISE + MAX_HIDDEN_NOISE
    assert np.isnan(found.flows[[0, 1], [1, 0]]).all()
    sizes = [cluster.size for cluster in full.protected(11).clusters]
    assert np.abs(told - sizes).max() <= 4 + MAX_NOISE + MAX_HIDDEN_NOISE
    assert found.ari == round(adjusted_rand(labels, moved), 2)
    with pytest.raises(InputError, match="expected the keys of the records of protected runs"):
        compare(full, full.protected(11), (labels, moved))


def test_a_comparison_is_a_table_of_matched_clusters(full: Profile, cohort: Cohort) -> None:
    other = Mixture(MODEL.weights[::-1], MODEL.means[::-1])
    labels = assign(MODEL, cohort).labels, assign(other, cohort).labels
    found = compare(full, profile(other, cohort), labels)
    frame = found.to_pandas()
    assert frame[["first", "second"]].to_numpy().tolist() == [[1, 2], [2, 1]]
    assert frame["records"].tolist() == [cluster.size for cluster in full.clusters]
    assert frame["match"].tolist() == ["very good", "very good"]
    assert found.to_polars().columns == found.to_arrow().column_names == list(frame)
    assert "<td>very good</td>" in found._repr_html_()


def test_a_comparison_names_the_codes_that_differ_most(full: Profile) -> None:
    moved = full.prevalence.copy()
    moved[0, 1] += 0.2
    moved[0, 0] -= 0.1
    found = compare(full, replace(full, prevalence=moved)).columns()
    assert found["more"][0] == full.codes[1]
    assert found["less"][0] == full.codes[0]
    assert found["more"][1] == found["less"][1] == ""
    assert found["records"] == [None] * full.k
