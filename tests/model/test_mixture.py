from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from comorb.errors import InputError
from comorb.model.mixture import Mixture
from tests.model.conftest import dense_to_blocks, random_mixture


def dense_log_joint(model, matrix):
    """Paper eq. 1, entry by entry."""
    m = np.clip(model.means, 1e-9, 1 - 1e-9)
    return np.log(model.weights) + matrix @ np.log(m).T + (1 - matrix) @ np.log(1 - m).T


def test_the_posterior_is_equation_1(truth, sample):
    rows = dense_to_blocks(sample).loaders[0]()
    posterior, log_density = truth.posterior(rows)
    joint = dense_log_joint(truth, sample)
    np.testing.assert_allclose(log_density, logsumexp(joint, axis=1), rtol=1e-12)
    expected = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(posterior, expected, atol=1e-13)


@pytest.mark.parametrize("k", [1, 2, 7, 33])
def test_the_posterior_is_equation_1_for_any_number_of_clusters(k):
    model = random_mixture(k, 40, seed=k)
    matrix = np.random.default_rng(0).integers(0, 2, size=(70, 40))
    posterior, _ = model.posterior(dense_to_blocks(matrix).loaders[0]())
    joint = dense_log_joint(model, matrix)
    expected = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(posterior, expected, atol=1e-12)


def test_certain_codes_and_empty_clusters_give_numbers_not_nan():
    model = Mixture(np.array([1.0, 0.0]), np.array([[1.0, 0.0], [0.5, 0.5]]))
    rows = dense_to_blocks([[1, 0], [0, 1], [0, 0]]).loaders[0]()
    posterior, log_density = model.posterior(rows)
    assert np.isfinite(posterior).all()
    assert np.isfinite(log_density).all()
    np.testing.assert_allclose(posterior[:, 0], 1.0)


@pytest.mark.compiled
def test_a_large_sample_has_the_frequencies_of_the_model(truth):
    n = 40_000
    matrix, labels = truth.sample(n, seed=3)
    assert matrix.shape == (n, 12)
    np.testing.assert_allclose(np.bincount(labels) / n, truth.weights, atol=0.01)
    for j in range(3):
        np.testing.assert_allclose(matrix[labels == j].mean(axis=0), truth.means[j], atol=0.02)


def test_a_sample_is_canonical_and_repeatable(truth):
    (first, labels), (second, again) = truth.sample(50, seed=9), truth.sample(50, seed=9)
    assert np.array_equal(labels, again)
    assert np.array_equal(first.toarray(), second.toarray())
    assert first.has_canonical_format
    assert set(first.data) == {1}


def test_clusters_are_ordered_by_size_then_by_content():
    means = np.array([[0.1, 0.2], [0.9, 0.3], [0.3, 0.8], [0.5, 0.5]])
    ordered = Mixture(np.array([0.2, 0.2, 0.2, 0.4]), means).ordered()
    assert ordered.weights.tolist() == [0.4, 0.2, 0.2, 0.2]
    assert ordered.means.tolist() == [[0.5, 0.5], [0.9, 0.3], [0.3, 0.8], [0.1, 0.2]]


@pytest.mark.parametrize(
    ("weights", "means", "message"),
    [
        ([1.0], [0.5], r"weights of shape \(k,\) and means of shape \(k, d\)"),
        ([0.5, 0.6], [[0.5], [0.5]], "add up to 1, got a sum of 1.1"),
        ([1.5, -0.5], [[0.5], [0.5]], "not negative and add up to 1"),
        ([1.0], [[1.5]], r"expected means in \[0, 1\]"),
        ([1.0], [[np.nan]], r"expected means in \[0, 1\]"),
    ],
)
def test_what_is_not_a_mixture_is_refused(weights, means, message):
    with pytest.raises(InputError, match=message):
        Mixture(np.array(weights), np.array(means))
