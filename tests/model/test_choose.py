from __future__ import annotations

import numpy as np
import pytest

from comorb import BernoulliMixture, choose_k
from comorb.errors import InputError
from comorb.model.choose import Row, reason
from comorb.records.datasets import paper


@pytest.mark.compiled
@pytest.mark.parametrize("k", [2, 4, 7])
def test_the_number_of_clusters_is_recovered(k):
    choice = choose_k(paper(10_000, 99, k, seed=k).matrix, ks=range(1, 11))
    assert choice.best == k
    assert f"{k} groups are recommended" in choice.reason
    assert [row.k for row in choice.rows] == list(range(1, 11))
    best = choice.rows[k - 1]
    assert best.stability > 0.9
    assert best.held_out > choice.rows[0].held_out
    assert choice.models[k].n_components == k


@pytest.mark.compiled
def test_no_structure_is_one_group():
    rng = np.random.default_rng(0)
    matrix = (rng.random((2000, 20)) < rng.uniform(0.05, 0.5, size=20)).astype(int)
    model = BernoulliMixture().fit(matrix)
    assert model.weights_.size == 1
    assert "no groups of records" in model.choice_.reason


@pytest.mark.compiled
def test_the_rows_hold_the_criteria_of_their_model():
    matrix = paper(400, 12, 2, seed=1).matrix
    choice = choose_k(matrix, ks=[1, 2, 3])
    for row in choice.rows:
        model = BernoulliMixture(row.k, init=choice.models[row.k], max_iter=0).fit(matrix)
        assert row.bic * 400 == pytest.approx(model.bic(matrix))
        assert row.icl * 400 == pytest.approx(model.icl(matrix))
        assert row.smallest == pytest.approx(model.predict_proba(matrix).sum(axis=0).min())


@pytest.mark.compiled
def test_the_tree_leads_from_the_most_to_one():
    choice = choose_k(paper(400, 12, 2, seed=1).matrix, ks=range(1, 6))
    assert [merge.left for merge in choice.tree] == [4, 3, 2, 1]
    assert all(merge.first < merge.second <= merge.left for merge in choice.tree)


@pytest.mark.compiled
def test_auto_keeps_the_sweep_and_the_tree():
    matrix = paper(400, 12, 2, seed=1).matrix
    model = BernoulliMixture().fit(matrix)
    assert model.weights_.size == model.choice_.best
    assert model.tree_ == model.choice_.tree


@pytest.mark.compiled
def test_the_order_of_rows_and_columns_changes_nothing():
    matrix = paper(500, 6, 2, seed=3).matrix  # of 6 columns: many rows are the same
    rng = np.random.default_rng(1)
    weights = rng.integers(1, 3, size=500).astype(float)
    rows = rng.permutation(500)
    one = choose_k(matrix, ks=[1, 2, 3], sample_weight=weights)
    two = choose_k(matrix[rows], ks=[1, 2, 3], sample_weight=weights[rows])
    assert two.rows == one.rows
    turned = choose_k(matrix[rows][:, ::-1], ks=[1, 2, 3], sample_weight=weights[rows])
    assert [row.stability for row in turned.rows] == [row.stability for row in one.rows]


def test_a_sweep_of_little_data():
    choice = choose_k(paper(45, 6, 2, seed=1).matrix, ks=[1, 2])
    assert [row.k for row in choice.rows] == [1, 2]
    assert choice.best in (1, 2)
    assert [merge.left for merge in choice.tree] == [1]


@pytest.mark.parametrize("ks", [[0, 1], [1, 13], []])
def test_a_range_that_can_not_be_names_its_bound(ks):
    with pytest.raises(InputError, match="expected numbers of clusters from 1 to 12, for 400 rows"):
        choose_k(paper(400, 12, 2, seed=1).matrix, ks=ks)


def row(k, evidence, stability=0.93):
    return Row(k, evidence, 0, 0, 0, stability, 1234.0)


def test_the_reason_reads_well():
    rows = [row(2, -5.0), row(3, -4.0), row(4, -4.5)]
    assert reason(rows, rows[1]) == (
        "3 groups are recommended: of the numbers that come out again reliably (the groups "
        "found in two overlapping parts of the records agree at 0.93, where 1 is fully and 0 is by "
        "chance) they explain the records best once the complexity of the model is counted."
    )
    rows.append(row(9, -3.0, 0.5))
    assert reason(rows, rows[1]).endswith(
        "Finer groups, up to 9, describe the records more closely but come out less reliably."
    )
    assert reason(rows[:1], rows[0]).startswith("2 groups were asked for; the groups found in")
    shaky = [row(2, -5.0, 0.4), row(3, -4.0, 0.5)]
    assert reason(shaky, shaky[0]).startswith("2 groups are the fewest looked at; no number came")


@pytest.mark.compiled
def test_groups_that_do_not_come_out_again_are_not_recommended(monkeypatch):
    matrix = paper(600, 20, 2, seed=1).matrix
    assert choose_k(matrix, ks=[1, 2, 3]).best == 2
    monkeypatch.setattr("comorb.model.choose.STEADY", 1.0)
    assert choose_k(matrix, ks=[1, 2, 3]).best == 1
