from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comorb.model import moments as module
from comorb.model.moments import Moments, bias_bounds, moments, third_moments
from tests.model.conftest import dense_to_blocks, draw, random_mixture


def test_the_second_moment_is_the_dense_product(sample):
    found = moments(dense_to_blocks(sample, block_rows=64))
    x = sample.astype(float)
    np.testing.assert_array_equal(found.second, x.T @ x / 300)
    np.testing.assert_array_equal(found.first, x.mean(axis=0))


def test_many_columns_are_counted_sparsely_to_the_same_numbers(sample, monkeypatch):
    weights = np.random.default_rng(0).integers(1, 4, size=300).astype(float)
    blocks = dense_to_blocks(sample, weights, block_rows=64)
    dense = moments(blocks)
    monkeypatch.setattr(module, "DENSE_COLUMNS", 0)
    sparse = moments(blocks)
    np.testing.assert_array_equal(sparse.second.toarray(), dense.second)
    np.testing.assert_array_equal(sparse.first, dense.first)
    span = dense.whiten(2) @ dense.whiten(2).T
    np.testing.assert_allclose(sparse.whiten(2) @ sparse.whiten(2).T, span, atol=1e-9)


def test_the_whitener_whitens(sample):
    found = moments(dense_to_blocks(sample))
    whitener = found.whiten(3)
    np.testing.assert_allclose(whitener.T @ found.second @ whitener, np.eye(3), atol=1e-10)


def test_lanczos_and_the_full_decomposition_agree():
    matrix, _ = draw(random_mixture(4, 300, seed=2), 400)
    found = moments(dense_to_blocks(matrix))
    whitener = found.whiten(4)
    values, vectors = np.linalg.eigh(found.second)
    top = vectors[:, -4:] / np.sqrt(values[-4:])
    np.testing.assert_allclose(whitener @ whitener.T, top @ top.T, atol=1e-8)


def test_directions_beyond_the_rank_are_zero():
    found = Moments(np.ones(3), np.ones((3, 3)), 1.0)
    whitener = found.whiten(3)
    assert np.count_nonzero(whitener.any(axis=0)) == 1


def test_all_slices_at_once_are_the_paper_s_slices_one_by_one(sample):
    blocks = dense_to_blocks(sample, block_rows=50)
    whitener = moments(blocks).whiten(3)
    slices = third_moments(blocks, whitener)
    projected = sample @ whitener
    for i in range(12):
        one = projected.T @ np.diag(sample[:, i]) @ projected / 300
        np.testing.assert_allclose(slices[i], one, atol=1e-11)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 1000), st.integers(1, 100))
def test_order_and_blocks_do_not_change_a_bit(seed, block_rows):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 2, size=(100, 6))
    weights = rng.gamma(1.0, size=100)
    order = rng.permutation(100)
    one = dense_to_blocks(matrix, weights)
    other = dense_to_blocks(matrix[order], weights[order], block_rows)
    first, second = moments(one), moments(other)
    assert first.second.tobytes() == second.second.tobytes()
    whitener = first.whiten(2)
    assert third_moments(one, whitener).tobytes() == third_moments(other, whitener).tobytes()


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(5))
def test_theorem_b1_holds_on_simulated_data(seed):
    model = random_mixture(4, 10, seed)
    matrix, _ = draw(model, 20_000, seed)
    found = moments(dense_to_blocks(matrix))
    bounds = bias_bounds(found)
    w, m = model.weights, model.means
    noise = 5 / np.sqrt(20_000)
    true_second = np.einsum("j,ji->i", w, m**2)
    assert (np.abs(true_second - found.first) <= bounds.second + noise).all()
    true_third = np.einsum("j,ji->i", w, m**3)
    assert (np.abs(true_third - found.first) <= bounds.third + noise).all()
    true_mixed = np.einsum("j,ji,jl->il", w, m**2, m)
    off = ~np.eye(10, dtype=bool)
    bias = np.abs(true_mixed - found.second)
    assert (bias <= bounds.mixed + noise)[off].all()
    assert (bounds.second > 0).all()


def test_bounds_of_a_code_nobody_carries_are_zero():
    bounds = bias_bounds(moments(dense_to_blocks([[1, 0], [0, 0]])))
    assert bounds.second[1] == bounds.third[1] == bounds.mixed[0, 1] == 0
