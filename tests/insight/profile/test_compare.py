"""Comparison of two runs, and flows that give nothing small away."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.metrics import adjusted_rand_score

from comorb.errors import InputError
from comorb.insight.profile.assignment import assign
from comorb.insight.profile.compare import compare, match
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.profiling import profile
from comorb.insight.profile.suppression import hide_table
from comorb.model.agreement import adjusted_rand
from comorb.model.mixture import Mixture
from comorb.records.cohort import Cohort
from tests.insight.conftest import MODEL


def test_a_run_with_its_clusters_the_other_way_round(full: Profile, cohort: Cohort) -> None:
    other = Mixture(MODEL.weights[::-1], MODEL.means[::-1])
    turned = profile(other, cohort)
    labels = assign(MODEL, cohort).labels, assign(other, cohort).labels
    found = compare(full, turned, labels)
    assert found.pairs == match(full, turned) == ((0, 1), (1, 0))
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


def test_runs_must_have_something_in_common(full: Profile) -> None:
    with pytest.raises(InputError, match="on the same records, got 3 and 4; leave the labels out"):
        compare(full, full, (np.zeros(3, int), np.zeros(4, int)))
    other = replace(full, codes=tuple(f"x{code}" for code in full.codes))
    with pytest.raises(InputError, match="expected two runs with codes in common, got none"):
        compare(full, other)


def test_small_flows_are_suppressed(full: Profile, cohort: Cohort) -> None:
    labels = assign(MODEL, cohort).labels
    moved = labels.copy()
    moved[np.flatnonzero(labels == 0)[:4]] = 1
    found = compare(full, full.suppressed(11), (labels, moved))
    assert found.flows is not None
    np.testing.assert_array_equal(np.isnan(found.flows), [[False, True], [True, False]])
    assert found.step == 30
    np.testing.assert_array_equal(found.flows[[0, 1], [0, 1]] % 30, 0)
    assert found.ari == round(adjusted_rand(labels, moved), 2)


@pytest.mark.parametrize("seed", range(20))
def test_no_hidden_flow_follows_from_the_margins(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.poisson(rng.choice([0, 3, 40, 400], (4, 5))).astype(float)
    hidden = hide_table(table, 11)
    assert not np.any((table > 0) & (table < 11) & ~hidden)
    rows, columns = np.nonzero(hidden)
    if not rows.size or hidden.all():
        return
    equations = np.vstack([rows == r for r in range(4)] + [columns == c for c in range(5)]).astype(
        float
    )
    known = equations @ table[hidden]
    for cell in range(rows.size):
        goal = np.eye(rows.size)[cell]
        low = linprog(goal, A_eq=equations, b_eq=known, bounds=(None, None)).fun
        assert low is None, "a hidden cell is not bounded by the margins alone"
