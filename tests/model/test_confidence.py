from __future__ import annotations

import numpy as np
import pytest

from comorb.model.confidence import collapsed, intervals, residuals, top_and_margin
from comorb.model.em import em
from comorb.model.mixture import Mixture
from comorb.model.moments import moments, prevalence
from comorb.model.prior import Prior, learn_strength
from comorb.records.datasets import paper, record_like
from tests.model.conftest import dense_to_blocks, draw
from tests.model.test_start import blocks_of


def test_the_top_and_its_lead():
    top, margin = top_and_margin(np.array([[0.7, 0.2, 0.1], [0.5, 0.0, 0.5]]))
    np.testing.assert_allclose(top, [0.7, 0.5])
    np.testing.assert_allclose(margin, [0.5, 0.0])
    top, margin = top_and_margin(np.ones((2, 1)))
    assert top.tolist() == margin.tolist() == [1.0, 1.0]


def coverage(drawn):
    blocks = blocks_of(drawn.matrix)
    first = prevalence(blocks)
    prior = Prior.around(first, 1.0, blocks.weight)
    result = em(blocks, Mixture(drawn.weights, drawn.means), prior)
    strength = learn_strength(result.expected.sums, first, blocks.weight)
    prior = Prior.around(first, strength, blocks.weight)
    model = em(blocks, result.model, prior).model
    low, high = intervals(model, blocks)
    return np.mean((low <= drawn.means) & (drawn.means <= high))


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["paper", "records"])
def test_95_percent_intervals_cover_93_to_97_percent(kind):
    if kind == "paper":
        found = [coverage(paper(3000, 40, 4, seed=s)) for s in range(8)]
    else:
        found = [coverage(record_like(8000, 5, seed=s)) for s in range(4)]
    assert 0.93 <= np.mean(found) <= 0.97


def test_intervals_hold_the_mean_and_narrow_with_more_records(truth):
    widths = []
    for n in (200, 800):
        matrix, _ = draw(truth, n)
        blocks = dense_to_blocks(matrix)
        prior = Prior.around(matrix.mean(axis=0), 1.0, n)
        model = em(blocks, truth, prior).model
        low, high = intervals(model, blocks)
        assert ((low < model.means + 0.02) & (model.means - 0.02 < high)).all()
        widths.append(np.mean(high - low))
    assert widths[1] < widths[0]


def test_the_pair_that_the_clusters_do_not_explain_is_found():
    rng = np.random.default_rng(0)
    matrix = (rng.random((600, 6)) < 0.3).astype(int)
    matrix[:, 4] = matrix[:, 1]
    blocks = dense_to_blocks(matrix)
    model = Mixture(np.ones(1), matrix.mean(axis=0)[None])
    worst = residuals(model, moments(blocks), top=3)
    assert (worst[0].first, worst[0].second) == (1, 4)
    assert worst[0].observed == pytest.approx(matrix[:, 1].sum())
    assert worst[0].expected == pytest.approx(600 * matrix[:, 1].mean() ** 2)
    assert worst[0].z > 10 > abs(worst[1].z)


def test_a_true_model_leaves_no_large_residual(truth):
    matrix, _ = draw(truth, 300)
    worst = residuals(truth, moments(dense_to_blocks(matrix)), top=1)
    assert abs(worst[0].z) < 5


def test_a_collapsed_model_is_named():
    apart = np.array([[0.1, 0.9], [0.9, 0.1]])
    assert collapsed(Mixture(np.array([0.5, 0.5]), apart), 100) is None
    alike = collapsed(Mixture(np.array([0.5, 0.5]), np.full((2, 2), 0.4)), 100)
    assert alike == "clusters 1 and 2 have the same profile; ask for fewer than 2 clusters"
    empty = collapsed(Mixture(np.array([0.999, 0.001]), apart), 100)
    assert empty == "cluster 2 holds less than one record; ask for fewer than 2 clusters"
