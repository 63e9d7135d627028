from __future__ import annotations

import numpy as np
import pytest

from comorb.model import information
from comorb.model.confidence import intervals
from comorb.model.em import Stopping, em
from comorb.model.information import information_share
from comorb.model.mixture import Mixture
from comorb.model.prior import Prior
from tests.model.conftest import dense_to_blocks, draw

APART = Mixture(np.array([0.6, 0.4]), np.array([[0.2, 0.3, 0.1, 0.6], [0.7, 0.6, 0.5, 0.3]]))


def log_densities(theta, matrix):
    means = 1 / (1 + np.exp(-theta[:-1].reshape(2, -1)))
    share = 1 / (1 + np.exp(-theta[-1]))
    joint = matrix @ np.log(means).T + (1 - matrix) @ np.log1p(-means).T
    return np.log(np.exp(joint) @ [share, 1 - share])


def test_the_share_is_that_of_the_sandwich_by_differences():
    matrix, _ = draw(APART, 2000)
    blocks = dense_to_blocks(matrix, block_rows=700)
    model = em(blocks, APART, None, Stopping(tol=1e-13, max_iter=20_000)).model
    odds = np.log(model.means / (1 - model.means)).ravel()
    theta = np.append(odds, np.log(model.weights[0] / model.weights[1]))
    steps = np.eye(theta.size) * 1e-4

    def slope(at, step):
        return (log_densities(at + step, matrix) - log_densities(at - step, matrix)) / 2e-4

    scores = np.array([slope(theta, step) for step in steps])
    hessian = np.array(
        [[(slope(theta + a, b) - slope(theta - a, b)).sum() / 2e-4 for b in steps] for a in steps]
    )
    inverse = np.linalg.inv(-hessian)
    variance = np.diag(inverse @ (scores @ scores.T) @ inverse)[:-1].reshape(2, 4)
    known = variance * model.means * (1 - model.means) * model.weights[:, None] * 2000
    np.testing.assert_allclose(information_share(model, blocks), 1 / known, rtol=0.01)


def test_certain_labels_leave_all_of_the_information():
    truth = Mixture(np.array([0.5, 0.5]), np.array([[0.95] * 20, [0.05] * 20]))
    matrix, _ = draw(truth, 1000)
    blocks = dense_to_blocks(matrix)
    model = em(blocks, truth).model
    assert np.abs(information_share(model, blocks) - 1).max() < 0.2


SMALL = Mixture(np.array([0.84, 0.16]), np.array([[0.02, 0.03, 0.04, 0.2], [0.6, 0.6, 0.2, 0.4]]))


def test_a_mean_at_the_edge_is_as_unsure_as_that_of_the_model_beside_it():
    matrix, _ = draw(SMALL, 319, seed=1)
    blocks = dense_to_blocks(matrix)
    exact = Stopping(tol=1e-9, max_iter=1000)
    model = em(blocks, SMALL, None, exact).model
    assert model.means.min() * 319 < 0.01
    half = np.full(4, 0.5)
    beside = em(blocks, model, Prior(half, half), exact).model
    share = information_share(model, blocks)
    np.testing.assert_allclose(share, information_share(beside, blocks), rtol=1e-6)
    assert share.ravel()[model.means.argmin()] < 0.1


@pytest.mark.compiled
def test_intervals_cover_in_a_small_sample_whose_means_often_are_at_the_edge():
    inside, at_the_edge = [], 0
    for seed in range(60):
        matrix, _ = draw(SMALL, 319, seed)
        blocks = dense_to_blocks(matrix)
        model = em(blocks, SMALL, None, Stopping(tol=1e-9, max_iter=2000)).model
        low, high = intervals(model, blocks)
        inside.append((low <= SMALL.means) & (high >= SMALL.means))
        at_the_edge += np.minimum(model.means, 1 - model.means).min() < 1e-5
    assert at_the_edge >= 20
    assert np.mean(inside) >= 0.88  # 0.82 by the curvature at the edge itself


def test_one_cluster_is_known_from_all_its_records(sample):
    model = Mixture(np.ones(1), sample.mean(axis=0)[None])
    assert (information_share(model, dense_to_blocks(sample)) == 1).all()


def test_the_order_of_rows_and_the_blocks_change_no_bit():
    matrix, _ = draw(APART, 500)
    one = information_share(APART, dense_to_blocks(matrix))
    rows = np.random.default_rng(0).permutation(500)
    other = information_share(APART, dense_to_blocks(matrix[rows], block_rows=70))
    assert one.tobytes() == other.tobytes()


@pytest.mark.compiled
def test_a_row_of_weight_two_is_two_records(monkeypatch):
    monkeypatch.setattr(information, "LARGEST", 0)
    matrix, _ = draw(APART, 2000)
    model = em(dense_to_blocks(matrix), APART, None, Stopping(tol=1e-10)).model
    twice = information_share(model, dense_to_blocks(np.repeat(matrix, 2, axis=0)))
    heavy = information_share(model, dense_to_blocks(matrix, weights=np.full(2000, 2.0)))
    assert abs(np.log(heavy / twice).mean()) < 0.4


@pytest.mark.compiled
def test_the_bootstrap_agrees_with_the_sandwich_and_forgets_the_order(monkeypatch):
    matrix, _ = draw(APART, 3000)
    blocks = dense_to_blocks(matrix)
    model = em(blocks, APART, None, Stopping(tol=1e-10)).model
    exact = information_share(model, blocks)
    monkeypatch.setattr(information, "LARGEST", 0)
    found = information_share(model, blocks)
    assert abs(np.log(found / exact).mean()) < 0.4
    rows = np.random.default_rng(0).permutation(3000)
    again = information_share(model, dense_to_blocks(matrix[rows], block_rows=700))
    np.testing.assert_allclose(again, found, rtol=1e-9)
