from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import betabinom

from comorb.model.decompose import asvtd
from comorb.model.em import em, expect
from comorb.model.mixture import Mixture
from comorb.model.prior import Prior, evidence, learn_strength
from tests.model.conftest import dense_to_blocks, draw, random_mixture


def test_the_prior_is_centred_on_the_prevalence_and_its_log_odds_have_variance_one_over_alpha():
    first = np.array([0.01, 0.3, 0.9])
    prior = Prior.around(first, 50.0, 1e6)
    centre = prior.present / (prior.present + prior.absent)
    np.testing.assert_allclose(centre, first)
    draws = np.random.default_rng(0).beta(prior.present, prior.absent, size=(20_000, 3))
    variance = np.log(draws / (1 - draws)).var(axis=0)
    np.testing.assert_allclose(variance, 1 / 50, rtol=0.05)


def test_a_code_that_nobody_or_everybody_carries_has_a_prior():
    prior = Prior.around(np.array([0.0, 1.0]), 1.0, 100.0)
    assert np.isfinite(prior.present).all()
    assert np.isfinite(prior.absent).all()


def test_the_marginal_is_the_beta_binomial():
    prior = Prior.around(np.array([0.2, 0.5]), 2.0, 100.0)
    sums = np.array([[3.0, 1.0], [4.0, 0.0], [10.0, 5.0]])
    expected = 0.0
    for j in range(2):
        for i in range(2):
            n, c = sums[-1, j], sums[i, j]
            density = betabinom(n, prior.present[i], prior.absent[i]).logpmf(c)
            expected += density - np.log(_choose(n, c))
    assert prior.log_marginal(sums) == pytest.approx(expected)


def _choose(n, c):
    from scipy.special import comb

    return comb(n, c)


@pytest.mark.compiled
@pytest.mark.parametrize("alpha", [0.3, 1.0, 5.0])
def test_the_strength_that_made_the_means_is_learned(alpha):
    rng = np.random.default_rng(1)
    first = rng.uniform(0.05, 0.5, size=400)
    prior = Prior.around(first, alpha, 1e5)
    means = rng.beta(prior.present, prior.absent, size=(8, 400))
    sizes = np.full(8, 2000.0)
    sums = np.vstack([rng.binomial(2000, means.T), sizes])
    assert learn_strength(sums, first, 16_000.0) == pytest.approx(alpha, rel=0.15)


def test_the_evidence_prefers_the_truth_to_a_split_cluster():
    means = np.full((2, 12), 0.1)
    means[0, :6] = 0.8
    means[1, 6:] = 0.8
    truth = Mixture(np.array([0.5, 0.5]), means)
    matrix, _ = draw(truth, 200)
    blocks = dense_to_blocks(matrix)
    prior = Prior.around(matrix.mean(axis=0), 1.0, 200.0)

    def value(start):
        result = em(blocks, start, prior)
        sums = result.expected.sums
        return evidence(result.model, sums, result.log_likelihood, prior)

    nudged = np.vstack([means[0] * 0.97, means[0] * 1.03, means[1]])
    split = Mixture(np.array([0.25, 0.25, 0.5]), nudged)
    assert value(truth) > value(split)
    assert value(truth) > value(Mixture(np.ones(1), matrix.mean(axis=0)[None]))


def test_the_evidence_holds_the_entropy_of_the_posteriors(truth, sample):
    blocks = dense_to_blocks(sample)
    prior = Prior.around(sample.mean(axis=0), 1.0, 300.0)
    expected = expect(truth, blocks)
    posterior, _ = truth.posterior(blocks.loaders[0]())
    entropy = -np.sum(posterior * np.log(posterior))
    from scipy.special import gammaln

    labels = gammaln(expected.sums[-1] + 1).sum() + gammaln(3) - gammaln(303)
    value = evidence(truth, expected.sums, expected.log_likelihood, prior)
    assert value == pytest.approx(prior.log_marginal(expected.sums) + labels + entropy, rel=1e-9)


@pytest.mark.compiled
def test_shrinkage_helps_new_records():
    truth = random_mixture(3, 60, 5)
    rare = Mixture(truth.weights, truth.means * 0.08)
    matrix, _ = draw(rare, 800, 1)
    fresh, _ = draw(rare, 4000, 2)
    blocks, new = dense_to_blocks(matrix), dense_to_blocks(fresh)
    start = asvtd(blocks, 3)
    first = matrix.mean(axis=0)
    plain = em(blocks, start).model
    strength = learn_strength(expect(plain, blocks).sums, first, 800.0)
    shrunk = em(blocks, start, Prior.around(first, strength, 800.0)).model
    gain = expect(shrunk, new).log_likelihood - expect(plain, new).log_likelihood
    assert gain / 4000 > 0.02
