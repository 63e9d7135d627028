from __future__ import annotations

import numpy as np
import pytest

from comorb import BernoulliMixture, choose_k
from comorb.errors import InputError
from comorb.model.choice import Choice, Row, reason, recommended
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


def row(k, evidence, reliability, held_out=None, smallest=10.0):
    held_out = evidence if held_out is None else held_out
    return Row(k, evidence, 0, 0, held_out, 0.9, smallest, reliability, (1 / k,) * k)


ONE = row(1, -6.0, (1.0,))
TWO = row(2, -5.0, (0.9, 0.8))
THREE = row(3, -4.5, (0.9, 0.9, 0.76))
FOUR = row(4, -4.2, (0.9, 0.9, 0.7, 0.6))
LUCKY = row(5, -4.0, (0.9, 0.9, 0.9, 0.9, 0.7))
CLEAR = row(5, -4.0, (0.9,) * 5)
SIX = row(6, -3.9, (0.9, 0.9, 0.9, 0.7, 0.7, 0.6))
SHAKY = row(2, -5.0, (0.9, 0.3))
SHAKIER = row(3, -4.9, (0.2, 0.3, 0.1))


@pytest.mark.parametrize(
    ("rows", "best"),
    [
        ([ONE, TWO], TWO),
        ([ONE, TWO, THREE, FOUR], THREE),
        ([ONE, TWO, THREE, FOUR, LUCKY, SIX], THREE),  # 4 and 6 fail: 80% may be chance
        ([ONE, TWO, THREE, FOUR, CLEAR, SIX], CLEAR),
        ([ONE, TWO, THREE, FOUR, LUCKY], LUCKY),  # whether 6 fails isn't known
        ([ONE, row(2, -6.1, (0.5, 0.5)), row(3, -6.2, (0.9,) * 3)], ONE),
        ([ONE, row(2, -6.1, (0.9, 0.9), held_out=-5.9)], None),  # new records gain: groups
        ([ONE, row(2, -5.9, (0.2, 0.2), held_out=-6.1)], None),  # evidence gains: groups
        ([ONE, SHAKY, SHAKIER], SHAKY),
        ([ONE, row(2, -5.8, (0.1, 0.1)), SHAKIER], SHAKIER),
        ([ONE, row(2, -5.0, (0.9, 0.9), smallest=0.2)], ONE),
    ],
)
def test_the_number_follows_from_the_figures(rows, best):
    assert recommended(rows) == (best or rows[1])


@pytest.mark.parametrize(
    ("rows", "best", "words"),
    [
        (
            [ONE, TWO],
            TWO,
            "2 groups are recommended: of the numbers whose groups come out again they explain "
            "the records best once the complexity of the model is counted; all of them come out "
            "again when a third of the records is left out. It is the largest number that was "
            "looked at.",
        ),
        (
            [ONE, TWO, THREE, FOUR],
            THREE,
            "3 groups are recommended: of the numbers whose groups come out again they explain "
            "the records best once the complexity of the model is counted; all of them come out "
            "again when a third of the records is left out. Finer groups, up to 4, describe the "
            "records more closely but come out less reliably.",
        ),
        (
            [ONE, TWO, THREE, FOUR, LUCKY, SIX],
            THREE,
            "3 groups are recommended: of the numbers whose groups come out again they explain "
            "the records best once the complexity of the model is counted; all of them come out "
            "again when a third of the records is left out. 5 groups come out again too, but "
            "neither 4 nor 6 do, which may be chance. Other finer groups, up to 6, "
            "describe the records more closely but come out less reliably.",
        ),
        (
            [ONE, TWO, THREE, FOUR, LUCKY, row(6, -4.1, (0.9, 0.2, 0.2, 0.2, 0.2, 0.2))],
            THREE,
            "3 groups are recommended: of the numbers whose groups come out again they explain "
            "the records best once the complexity of the model is counted; all of them come out "
            "again when a third of the records is left out. 5 groups come out again too, but "
            "neither 4 nor 6 do, which may be chance.",
        ),
        (
            [ONE, row(2, -7.0, (0.5, 0.5))],
            ONE,
            "One group is recommended: the data show no groups of records that differ in their "
            "codes beyond chance; no other number that was looked at explains them, or new "
            "records, better.",
        ),
        (
            [ONE, SHAKY, SHAKIER],
            SHAKY,
            "2 groups are offered as a useful description: 1 of them, with 50% of the records, "
            "comes out again when a third of the records is left out, so that some would come "
            "out differently in another sample. They reach 91% of what any number that was "
            "looked at gains on new records.",
        ),
        (
            [ONE, row(2, -5.8, (0.1, 0.1)), SHAKIER],
            SHAKIER,
            "3 groups are offered as a useful description: none of them comes out again reliably "
            "when a third of the records is left out, so that some would come out differently in "
            "another sample. They reach 100% of what any number that was looked at gains on new "
            "records.",
        ),
        (
            [SHAKY, SHAKIER],
            SHAKIER,
            "3 groups are offered as a useful description: none of them comes out again reliably "
            "when a third of the records is left out, so that some would come out differently in "
            "another sample.",
        ),
        (
            [ONE, row(2, -5.0, (0.9, 0.9), smallest=0.2)],
            ONE,
            "One group is recommended: any other number that was looked at leaves a group empty.",
        ),
        (
            [FOUR],
            FOUR,
            "4 groups were asked for; 2 of them, with 50% of the records, come out again when a "
            "third of the records is left out.",
        ),
        ([ONE], ONE, "One group was asked for."),
    ],
)
def test_the_words_say_what_the_figures_bear_out(rows, best, words):
    assert reason(rows, best) == words


@pytest.mark.compiled
def test_the_figures_told_are_those_of_the_final_clusters():
    matrix = paper(600, 20, 2, seed=1).matrix
    model = BernoulliMixture().fit(matrix)
    told = model.choice_.row
    assert told.k == model.weights_.size
    assert told.shares == tuple(model.weights_)
    assert model.choice_.models[told.k].means.tobytes() == model.means_.tobytes()
    assert told.smallest == pytest.approx(model.predict_proba(matrix).sum(axis=0).min(), rel=0.02)
    assert min(told.reliability) > 0.75


@pytest.mark.compiled
def test_the_range_grows_when_its_edge_is_best(monkeypatch):
    monkeypatch.setattr("comorb.model.choose.MOST", 3)
    matrix = paper(4000, 60, 5, seed=2).matrix
    choice = choose_k(matrix)
    assert choice.best == 5
    assert [row.k for row in choice.rows] == [1, 2, 3, 4, 5, 6]
    assert choose_k(matrix, ks=[1, 2, 3]).best == 3


@pytest.mark.compiled
def test_every_merge_tells_whether_its_split_comes_out_again():
    choice = choose_k(paper(3000, 60, 4, seed=3).matrix, ks=range(1, 7))
    rows = {row.k: row for row in choice.rows}
    assert rows[4].covered == pytest.approx(1)
    for merge in choice.tree:
        assert merge.reliability == rows[merge.left].reliability[merge.first]
        above = rows[merge.left + 1].reliability
        assert merge.splits_reliably == (min(above[merge.first], above[merge.second]) >= 0.75)
    by_left = {merge.left: merge.splits_reliably for merge in choice.tree}
    assert by_left[3]
    assert not by_left[5]


def test_other_figures_of_the_clusters_change_the_words():
    rows = (row(1, -10, (1.0,)), row(2, -9, (0.9, 0.9)))
    choice = Choice(rows, 2, reason(rows, rows[1]), {}, ())
    assert "all of them come out again" in choice.reason
    judged = choice.judged((0.9, 0.2), (0.3, 0.7))
    assert judged.row.covered == pytest.approx(0.3)
    assert "useful description: 1 of them, with 30% of the records, comes out" in judged.reason
    assert choice.row.reliability == (0.9, 0.9)
