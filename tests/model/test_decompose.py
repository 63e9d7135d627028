from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comorb.errors import ComorbWarning, InputError
from comorb.model.decompose import asvtd, repair_mixture, svtd
from tests.model.conftest import dense_to_blocks, draw, random_mixture


def exact_moments(model):
    w, m = model.weights, model.means
    return (
        w @ m,
        np.einsum("j,ja,jb->ab", w, m, m),
        np.einsum("j,ja,jb,jc->abc", w, m, m, m),
    )


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 6), st.integers(0, 10_000))
def test_svtd_is_exact_on_exact_moments(k, seed):
    model = random_mixture(k, 15, seed).ordered()
    found = svtd(*exact_moments(model), k).ordered()
    np.testing.assert_allclose(found.weights, model.weights, atol=1e-8)
    np.testing.assert_allclose(found.means, model.means, atol=1e-8)


@pytest.mark.parametrize("k", [0, 4])
def test_svtd_refuses_a_k_that_can_not_be(k):
    model = random_mixture(2, 3, 0)
    with pytest.raises(InputError, match=f"expected 1 <= k <= d = 3, got k = {k}"):
        svtd(*exact_moments(model), k)


def plain_asvtd(x, k):
    """Algorithm 2 as printed: dense, one slice at a time."""
    n, d = x.shape
    u, s, _ = np.linalg.svd(x.T @ x / n)
    projected = x @ u[:, :k] / np.sqrt(s[:k])
    best, rotation, slices = -np.inf, np.eye(k), []
    for i in range(d):
        h = projected.T @ (x[:, i : i + 1] * projected) / n
        left, values, _ = np.linalg.svd(h)
        slices.append(h)
        gap = np.min(np.abs(np.diff(values))) if k > 1 else 0.0
        if gap > best:
            best, rotation = gap, left
    return np.array([np.diag(rotation.T @ h @ rotation) for h in slices]).T


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_asvtd_is_algorithm_2_as_written(k):
    matrix, _ = draw(random_mixture(3, 12, seed=4), 500)
    found = asvtd(dense_to_blocks(matrix), k)
    plain = repair_mixture(plain_asvtd(matrix.astype(float), k), matrix.mean(axis=0), 0.5 / 501)
    np.testing.assert_allclose(found.ordered().means, plain.ordered().means, atol=1e-7)
    np.testing.assert_allclose(found.ordered().weights, plain.ordered().weights, atol=1e-7)


@pytest.mark.filterwarnings("ignore::comorb.errors.ComorbWarning")
@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_what_leaves_asvtd_is_always_a_model(seed, k):
    rng = np.random.default_rng(seed)
    matrix = (rng.random((20, 6)) < rng.random(6)).astype(int)
    found = asvtd(dense_to_blocks(matrix), k)
    assert (found.means > 0).all()
    assert (found.means < 1).all()
    assert (found.weights > 0).all()
    assert found.weights.sum() == pytest.approx(1)


def test_more_clusters_than_the_rank_are_said():
    matrix = np.array([[1, 0, 1], [0, 1, 0]] * 10)
    with pytest.warns(ComorbWarning, match="rank 2, so only 2 of the 3 clusters"):
        found = asvtd(dense_to_blocks(matrix), 3)
    assert np.isfinite(found.means).all()


def test_weights_are_non_negative_and_no_cluster_starts_dead():
    means = np.array([[0.9, 0.1, 0.2], [0.1, 0.8, 0.3]])
    model = repair_mixture(means, means[0] * 1.1 - means[1] * 0.1, 1e-6)
    assert model.weights[0] > 0.99
    assert model.weights[1] > 0
