from __future__ import annotations

import numpy as np
import pytest

from comorb.model.mixture import Mixture
from comorb.model.tempering import temperature, tempered
from tests.model.conftest import dense_to_blocks, draw, random_mixture


def test_the_temperature_is_the_expected_over_the_actual_variance(truth, sample):
    blocks = dense_to_blocks(sample)
    r, _ = truth.posterior(blocks.loaders[0]())
    logits = np.log(truth.means / (1 - truth.means))
    scores = sample @ logits.T
    weights, ratios = [], []
    for j in range(3):
        for m in range(3):
            if j == m:
                continue
            contrast = scores[:, j] - scores[:, m]
            mean = np.average(contrast, weights=r[:, j])
            actual = np.average((contrast - mean) ** 2, weights=r[:, j])
            spread = truth.means[j] * (1 - truth.means[j])
            ratios.append(actual / np.sum(spread * (logits[j] - logits[m]) ** 2))
            weights.append(np.sum(r[:, j] * r[:, m]))
    expected = min(1 / np.average(ratios, weights=weights), 1.0)
    assert temperature(truth, blocks) == pytest.approx(expected, rel=1e-6)


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


def test_tempering_keeps_labels_and_sums():
    posterior = np.array([[0.7, 0.2, 0.1], [0.0, 0.4, 0.6]])
    cooler = tempered(posterior, 0.5)
    assert cooler.argmax(axis=1).tolist() == [0, 2]
    np.testing.assert_allclose(cooler.sum(axis=1), 1)
    assert (cooler.max(axis=1) < posterior.max(axis=1)).all()
    np.testing.assert_allclose(tempered(posterior, 1.0), posterior)
