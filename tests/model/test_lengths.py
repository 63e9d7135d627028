from __future__ import annotations

import numpy as np
import pytest

from comorb.model.lengths import lengths
from comorb.model.mixture import Mixture
from tests.model.conftest import dense_to_blocks, draw


def test_the_share_of_the_variance_between_clusters(truth, sample):
    blocks = dense_to_blocks(sample, block_rows=70)
    found = lengths(truth, blocks)
    r, _ = truth.posterior(dense_to_blocks(sample).loaders[0]())
    counts = sample.sum(axis=1)
    means = r.T @ counts / r.sum(axis=0)
    np.testing.assert_allclose(found.means, means, rtol=1e-6)
    between = np.sum(r.sum(axis=0) * (means - counts.mean()) ** 2)
    assert found.explained == pytest.approx(between / (300 * counts.var()), rel=1e-6)
    assert found.overall == pytest.approx(counts.mean())


def test_a_cluster_of_short_records_is_told_from_one_with_other_codes():
    p = np.linspace(0.1, 0.5, 12)
    other = p[::-1].copy()
    model = Mixture(np.array([0.4, 0.3, 0.3]), np.vstack([p, p / 5, other]))
    found = lengths(model, dense_to_blocks(draw(model, 4000)[0]))
    assert found.mostly_length == (1,)
    assert found.of_profile[1] > 0.7 > 0.3 > found.of_profile[2]


def test_records_of_one_length_leave_nothing_to_explain():
    matrix = np.tile([[1, 0], [0, 1]], (20, 1))
    model = Mixture(np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]]))
    assert lengths(model, dense_to_blocks(matrix)).explained == 0


def test_weighted_records_are_worth_as_many_as_kish_says(truth, sample):
    assert lengths(truth, dense_to_blocks(sample)).records == 300
    weights = np.tile([1.0, 0.25, 2.0], 100)
    found = lengths(truth, dense_to_blocks(sample, weights=weights, block_rows=70))
    assert found.records == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
