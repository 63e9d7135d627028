"""Rules that were planted are found, in any order of the records, and judged on the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from comorb.profiles.assignment import Assignment, assign
from comorb.profiles.rules import Condition, RuleList, learn_rules
from comorb.records.cohort import Cohort
from tests.small_cohort import MODEL, make_cohort


def planted(cohort: Cohort) -> Assignment:
    """Return the cluster 1 for whoever has code 2 or else lacks code 3."""
    x = cohort.matrix.toarray().astype(bool)
    labels = (x[:, 2] | ~x[:, 3]).astype(np.int64)
    even = np.full(len(cohort), 0.9)
    sizes = np.bincount(labels).astype(float)
    return Assignment(labels, even, even, even, sizes, np.diag(sizes))


def shuffled(cohort: Cohort, order: np.ndarray) -> Cohort:
    return replace(
        cohort,
        matrix=cohort.matrix[order],
        ids=cohort.ids.take(pa.array(order)),
        covariates=cohort.covariates.take(pa.array(order)),
        weights=None if cohort.weights is None else cohort.weights[order],
    )


def test_a_planted_rule_is_found_and_right() -> None:
    cohort = make_cohort(2000)
    for rules in learn_rules(cohort, planted(cohort), 2):
        assert {one.code for one in rules.conditions} == {2, 3}
        assert (rules.precision, rules.recall) == (1.0, 1.0)
        assert rules.matched == rules.right == rules.members
        assert rules.review == 0


@pytest.mark.parametrize("weighted", [False, True])
def test_the_order_of_records_changes_nothing(weighted: bool) -> None:
    cohort = make_cohort(1500, weighted)
    order = np.random.default_rng(2).permutation(1500)
    mixed = shuffled(cohort, order)
    one = learn_rules(cohort, assign(MODEL, cohort), 2)
    two = learn_rules(mixed, assign(MODEL, mixed), 2)
    for a, b in zip(one, two, strict=True):
        assert (a.conditions, a.otherwise) == (b.conditions, b.otherwise)
        assert (a.precision, a.recall, a.members) == (b.precision, b.recall, b.members)


def test_figures_are_of_the_half_that_was_not_learned_from() -> None:
    cohort = make_cohort(1500)
    assigned = assign(MODEL, cohort)
    found = learn_rules(cohort, assigned, 2)
    members = sum(one.members for one in found)
    assert 600 < members < 900
    assert all(0.5 < one.precision <= 1 and 0.5 < one.recall <= 1 for one in found)
    assert all(one.right <= min(one.matched, one.members) for one in found)


def test_a_cluster_of_few_records_has_no_rule() -> None:
    cohort = make_cohort(300)
    labels = np.zeros(300, dtype=np.int64)
    labels[:20] = 1
    even = np.full(300, 0.5)
    found = learn_rules(cohort, Assignment(labels, even, even, even, even[:2], np.eye(2)), 2)
    assert [one.conditions for one in found] == [found[0].conditions, ()]
    assert np.isnan([found[1].precision, found[1].recall]).all()
    assert found[1].review == found[1].members


def test_one_cluster_needs_no_rule() -> None:
    cohort = make_cohort(200)
    even = np.full(200, 1.0)
    all_in_one = Assignment(np.zeros(200, int), even, even, even, even[:1], np.eye(1))
    (only,) = learn_rules(cohort, all_in_one, 1)
    assert only.conditions == ()


def test_the_first_condition_that_is_met_decides() -> None:
    cohort = make_cohort(50)
    x = cohort.matrix.toarray().astype(bool)
    conditions = (Condition(1, True, False), Condition(2, False, True))
    rules = RuleList(conditions, False, 0, 0, 0, 0, 0, 0)
    assert rules.holds(cohort.matrix.tocsc()).tolist() == (~x[:, 1] & ~x[:, 2]).tolist()
