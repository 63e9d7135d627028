from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from comorb.errors import InputError
from comorb.model.blocks import workers
from comorb.model.decompose import asvtd
from comorb.model.em import Stopping, em, expect, maximise, squarem_step
from comorb.model.mixture import Mixture
from comorb.model.prior import Prior
from tests.model.conftest import dense_to_blocks, draw, random_mixture
from tests.model.test_mixture import dense_log_joint


def dense_step(model, x, weights, present=0.0, absent=0.0):
    joint = dense_log_joint(model, x)
    density = logsumexp(joint, axis=1)
    r = np.exp(joint - density[:, None]) * weights[:, None]
    sizes = r.sum(axis=0)
    means = (r.T @ x + present) / (sizes[:, None] + present + absent)
    return Mixture(sizes / sizes.sum(), np.clip(means, 1e-9, 1 - 1e-9)), weights @ density


def test_one_step_is_the_dense_step(truth, sample):
    weights = np.random.default_rng(5).gamma(2.0, size=300)
    expected = expect(truth, dense_to_blocks(sample, weights, block_rows=77))
    dense, log_likelihood = dense_step(truth, sample, weights)
    assert expected.log_likelihood == pytest.approx(log_likelihood, rel=1e-11)
    np.testing.assert_allclose(maximise(expected).weights, dense.weights, atol=1e-11)
    np.testing.assert_allclose(maximise(expected).means, dense.means, atol=1e-11)


def test_a_prior_adds_its_pseudo_counts(truth, sample):
    prior = Prior.around(sample.mean(axis=0), 7.0, 300.0)
    expected = expect(truth, dense_to_blocks(sample))
    dense, _ = dense_step(truth, sample, np.ones(300), prior.present, prior.absent)
    np.testing.assert_allclose(maximise(expected, prior).means, dense.means, atol=1e-11)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 5), st.sampled_from([0.0, 0.5, 20.0]))
def test_the_objective_never_falls(seed, k, strength):
    rng = np.random.default_rng(seed)
    matrix = (rng.random((80, 7)) < rng.random(7)).astype(int)
    weights = rng.gamma(1.0, size=80)
    blocks = dense_to_blocks(matrix, weights)
    prior = Prior.around(matrix.mean(axis=0), strength, 80.0) if strength else None
    result = em(blocks, random_mixture(k, 7, seed), prior, Stopping(tol=0.0, max_iter=60))
    assert (np.diff(result.history) >= 0).all()


def test_the_history_belongs_to_the_model_that_is_returned(truth, sample):
    blocks = dense_to_blocks(sample)
    for stopping in (Stopping(), Stopping("weights"), Stopping(max_iter=3)):
        result = em(blocks, truth, None, stopping)
        again = expect(result.model, blocks).log_likelihood
        assert result.log_likelihood == again
        assert result.history[-1] == again / 300
        assert len(result.history) <= result.n_iter + 1


def test_the_leaps_reach_the_optimum_of_plain_steps_in_fewer_passes():
    matrix, _ = draw(random_mixture(3, 10, 3), 400)
    blocks = dense_to_blocks(matrix)
    start = asvtd(blocks, 3)
    quick = em(blocks, start, None, Stopping(tol=1e-9, max_iter=5000))
    plain = em(blocks, start, None, Stopping("weights", tol=1e-9, max_iter=5000))
    assert quick.history[-1] == pytest.approx(plain.history[-1], abs=1e-6)
    assert quick.n_iter < plain.n_iter / 2


def test_a_leap_of_length_one_is_the_second_step():
    models = [random_mixture(3, 5, seed) for seed in range(3)]
    length, target = squarem_step(*models, step_limit=1.0)
    assert length == 1.0
    np.testing.assert_allclose(target.means, models[2].means, atol=1e-12)
    np.testing.assert_allclose(target.weights, models[2].weights, atol=1e-12)


def test_converged_is_said_only_when_it_is(truth, sample):
    blocks = dense_to_blocks(sample)
    assert not em(blocks, truth, None, Stopping(max_iter=2)).converged
    result = em(blocks, truth)
    assert result.converged
    assert result.history[-1] - result.history[-2] < 1e-6


def test_the_paper_s_rule_stops_when_the_weights_stand_still(truth, sample):
    blocks = dense_to_blocks(sample)
    result = em(blocks, random_mixture(3, 12, 8), None, Stopping("weights", tol=0.01))
    steps = Stopping("weights", tol=0.0, max_iter=result.n_iter - 1)
    before = em(blocks, random_mixture(3, 12, 8), None, steps)
    assert result.converged
    assert np.abs(result.model.weights - before.model.weights).sum() < 0.01


def test_a_row_of_weight_two_is_two_rows(truth, sample):
    once = em(dense_to_blocks(sample, np.full(300, 2.0)), truth)
    twice = em(dense_to_blocks(np.repeat(sample, 2, axis=0)), truth)
    np.testing.assert_allclose(once.model.means, twice.model.means, atol=1e-9)
    assert once.log_likelihood == pytest.approx(twice.log_likelihood, rel=1e-10)


def test_an_empty_cluster_stays_a_model():
    blocks = dense_to_blocks([[1, 0], [0, 1]] * 5)
    start = Mixture(np.array([1.0, 0.0]), np.full((2, 2), 0.5))
    result = em(blocks, start)
    assert result.model.weights.tolist() == [1.0, 0.0]
    np.testing.assert_allclose(result.model.means, 0.5)


def test_every_step_is_watched(truth, sample):
    seen = []
    result = em(
        dense_to_blocks(sample), truth, watch=lambda step, value: seen.append((step, value))
    )
    assert [step for step, _ in seen] == list(range(result.n_iter + 1))
    assert set(result.history) <= {value for _, value in seen}


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 1000), st.integers(1, 200))
def test_threads_blocks_and_row_order_do_not_change_a_bit(seed, block_rows):
    rng = np.random.default_rng(seed)
    matrix, _ = draw(random_mixture(3, 10, seed), 200, seed)
    weights = rng.gamma(1.0, size=200)
    order = rng.permutation(200)
    one = dense_to_blocks(matrix, weights)
    other = dense_to_blocks(matrix[order], weights[order], block_rows)
    stopping = Stopping(max_iter=5, tol=0.0)
    plain = em(one, asvtd(one, 3), None, stopping)
    for jobs in (1, 2, 4):
        with workers(jobs) as pool:
            again = em(other, asvtd(other, 3, pool), None, stopping, pool)
        assert again.model.means.tobytes() == plain.model.means.tobytes()
        assert again.history == plain.history


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rule": "never"}, "expected stop to be 'likelihood' or 'weights', got 'never'"),
        ({"tol": -1.0}, "expected tol to be zero or more, got -1.0"),
        ({"max_iter": -1}, "expected max_iter to be zero or more, got -1"),
    ],
)
def test_a_stopping_rule_that_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Stopping(**arguments)


def test_the_number_of_threads_must_make_sense():
    with (
        pytest.raises(InputError, match="expected n_jobs to be a positive whole number or -1"),
        workers(0),
    ):
        pass
