from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from comorb.model.mixture import Mixture
from comorb.model.tempering import temperature, tempered
from tests.model.conftest import dense_to_blocks, draw, random_mixture


def variance_share(model, matrix, r):
    """The expected over the actual variance of log-ratios, dense and pair by pair."""
    logits = np.log(model.means / (1 - model.means))
    scores = matrix @ logits.T
    weights, ratios = [], []
    for j, m in permutations(range(model.n_components), 2):
        contrast = scores[:, j] - scores[:, m]
        mean = np.average(contrast, weights=r[:, j])
        actual = np.average((contrast - mean) ** 2, weights=r[:, j])
        spread = model.means[j] * (1 - model.means[j])
        ratios.append(actual / np.sum(spread * (logits[j] - logits[m]) ** 2))
        weights.append(np.sum(r[:, j] * r[:, m]))
    return 1 / np.average(ratios, weights=weights)


def test_the_temperature_is_the_expected_over_the_actual_variance_by_what_it_tempers(truth, sample):
    blocks = dense_to_blocks(sample)
    plain, _ = truth.posterior(blocks.loaders[0]())
    tau = temperature(truth, blocks)
    assert tau < variance_share(truth, sample, plain) < 1
    assert variance_share(truth, sample, tempered(plain, tau)) == pytest.approx(tau, abs=1e-3)


@pytest.mark.compiled
def test_with_pairs_that_go_together_what_is_said_is_right_in_every_bin():
    rng = np.random.default_rng(6)
    means = np.clip(rng.beta(2, 6, size=(3, 40)), 0.02, 0.9)
    means[:, 20:] = means[:, :20]
    model = Mixture(np.array([0.5, 0.3, 0.2]), means)
    matrix, labels = draw(model, 30_000, seed=1)
    copied = rng.random((30_000, 20)) < 0.6
    matrix[:, 20:][copied] = matrix[:, :20][copied]
    plain = np.concatenate([model.posterior(load())[0] for load in dense_to_blocks(matrix).loaders])
    right = plain.argmax(axis=1) == labels
    said = tempered(plain, temperature(model, dense_to_blocks(matrix))).max(axis=1)
    assert plain.max(axis=1).mean() - right.mean() > 0.03
    for low in (0.5, 0.6, 0.7, 0.8, 0.9):
        some = (said >= low) & (said < low + 0.1)
        assert said[some].mean() == pytest.approx(right[some].mean(), abs=0.025)


def test_independent_codes_are_left_alone_and_copies_are_not():
    model = random_mixture(2, 20, 3)
    matrix, labels = draw(model, 6000)
    assert temperature(model, dense_to_blocks(matrix)) > 0.9
    doubled = np.hstack([matrix, matrix])
    twice = Mixture(model.weights, np.hstack([model.means, model.means]))
    tau = temperature(twice, dense_to_blocks(doubled))
    assert 0.4 < tau < 0.65  # every code counts twice, so half of it is evidence
    blocks = dense_to_blocks(doubled)
    said = tempered(twice.posterior(blocks.loaders[0]())[0], tau).max(axis=1)
    right = twice.posterior(blocks.loaders[0]())[0].argmax(axis=1) == labels
    assert said.mean() == pytest.approx(right.mean(), abs=0.02)


def test_the_order_of_rows_and_the_blocks_change_no_bit(truth, sample):
    one = temperature(truth, dense_to_blocks(sample))
    rows = np.random.default_rng(0).permutation(300)
    assert temperature(truth, dense_to_blocks(sample[rows], block_rows=70)) == one


def test_one_cluster_needs_no_temper(sample):
    assert temperature(Mixture(np.ones(1), sample.mean(axis=0)[None]), dense_to_blocks(sample)) == 1


def test_clusters_that_do_not_differ_need_none(sample):
    same = Mixture(np.array([0.5, 0.5]), np.tile(sample.mean(axis=0), (2, 1)))
    nearly = Mixture(same.weights, np.nextafter(same.means, [[0.0], [1.0]]))
    assert temperature(same, dense_to_blocks(sample)) == 1
    assert temperature(nearly, dense_to_blocks(sample)) == 1


def test_tempering_keeps_labels_and_sums():
    posterior = np.array([[0.7, 0.2, 0.1], [0.0, 0.4, 0.6]])
    cooler = tempered(posterior, 0.5)
    assert cooler.argmax(axis=1).tolist() == [0, 2]
    np.testing.assert_allclose(cooler.sum(axis=1), 1)
    assert (cooler.max(axis=1) < posterior.max(axis=1)).all()
    np.testing.assert_allclose(tempered(posterior, 1.0), posterior)
