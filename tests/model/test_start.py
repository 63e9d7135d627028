from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betaln, gammaln

from comorb.errors import ComorbWarning
from comorb.model import kernels
from comorb.model.agglomeration import (
    agglomerate,
    cheapest_merge,
    merge_sums,
    merge_sums_to,
    short_run_em,
)
from comorb.model.blocks import from_csr, take_rows
from comorb.model.decompose import asvtd, joint_diagonal
from comorb.model.diagnostics import adjusted_rand
from comorb.model.em import Stopping, em, expect
from comorb.model.mixture import Mixture
from comorb.model.moments import prevalence
from comorb.model.prior import Prior
from comorb.model.start import (
    CandidateRace,
    best_start,
    hash_uniforms,
    join_models,
    random_start,
    reseed_empty_clusters,
    split_clusters,
)
from comorb.model.subsample import column_keys, distinct_rows, thin_rows
from comorb.model.sweep import hard_labels
from comorb.records.datasets import paper, record_like
from tests.model.conftest import dense_to_blocks, draw, random_mixture


def blocks_of(matrix):
    return from_csr(matrix.indptr, matrix.indices, matrix.shape[1])


def fitted_ari(drawn, start, strength):
    blocks = blocks_of(drawn.matrix)
    prior = Prior.around(prevalence(blocks), strength, blocks.weight)
    result = em(blocks, start, prior)
    return adjusted_rand(drawn.labels, hard_labels(result.model, blocks))


@pytest.mark.compiled
@pytest.mark.parametrize("point", [(1000, 99, 12), (3000, 99, 12), (10_000, 99, 4)])
def test_the_start_is_as_good_as_the_truth_on_the_paper_s_data(point):
    gaps = []
    for seed in (1, 2, 3):
        drawn = paper(*point, seed=seed)
        blocks = blocks_of(drawn.matrix)
        found = best_start(blocks, point[2], prevalence(blocks))
        truth = Mixture(drawn.weights, drawn.means)
        ours = fitted_ari(drawn, found.model, found.strength)
        gaps.append(fitted_ari(drawn, truth, found.strength) - ours)
    assert np.mean(gaps) < (0.04 if point[0] < 3000 else 0.01)


@pytest.mark.compiled
def test_the_start_is_as_good_as_the_truth_on_data_like_records():
    drawn = record_like(20_000, 8, seed=3)
    blocks = blocks_of(drawn.matrix)
    found = best_start(blocks, 8, prevalence(blocks))
    ours = fitted_ari(drawn, found.model, found.strength)
    truth = fitted_ari(drawn, Mixture(drawn.weights, drawn.means), found.strength)
    plain = fitted_ari(drawn, asvtd(blocks, 8), found.strength)
    assert truth - ours < 0.005
    assert ours >= plain


def test_joint_diagonalisation_is_exact_on_exact_slices():
    rng = np.random.default_rng(3)
    rotation, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    means = rng.uniform(size=(9, 4))
    slices = np.einsum("aj,ij,bj->iab", rotation, means, rotation)
    found = joint_diagonal(slices)
    order = np.argsort(found[:, 0])
    np.testing.assert_allclose(found[order].T, means[:, np.argsort(means[0])], atol=1e-5)


def test_log_gamma_is_exact_to_rounding():
    values = np.concatenate([np.geomspace(1e-4, 1e6, 200), [1.0, 2.0, 0.5]])
    found = values.copy()
    n = values.size
    shifts = np.empty(2 * n)
    kernels.log_gamma_all(found, shifts, shifts.view(np.int64), np.empty(2 * n, np.int64), n)
    np.testing.assert_allclose(found, gammaln(values), rtol=1e-12, atol=1e-10)


def test_the_cheapest_merge_loses_the_least_evidence(truth, sample):
    prior = Prior.around(sample.mean(axis=0), 1.0, 300.0)
    sums = expect(truth, dense_to_blocks(sample)).sums

    def f(column):
        c, n = column[:-1], column[-1]
        return betaln(c + prior.present, n - c + prior.absent).sum() + gammaln(n + 1)

    pairs = [(0, 1), (0, 2), (1, 2)]
    losses = [f(sums[:, a]) + f(sums[:, b]) - f(sums[:, a] + sums[:, b]) for a, b in pairs]
    assert cheapest_merge(sums, prior) == pairs[int(np.argmin(losses))]


def test_the_way_down_loses_one_cluster_at_a_time(sample):
    blocks = dense_to_blocks(sample)
    prior = Prior.around(sample.mean(axis=0), 1.0, 300.0)
    stage = short_run_em(blocks, random_mixture(5, 12, 0), prior, None)
    stages = list(agglomerate(blocks, stage, 1, prior, None))
    assert [s.model.n_components for s in stages] == [5, 4, 3, 2, 1]
    assert stages[0].merged is None
    assert all(s.merged[0] < s.merged[1] for s in stages[1:])
    np.testing.assert_allclose(
        stages[-1].model.means[0],
        (300 * sample.mean(axis=0) + prior.present) / (300 + prior.present + prior.absent),
        atol=1e-9,
    )


@pytest.mark.compiled
def test_rows_columns_and_threads_do_not_change_the_start():
    drawn = paper(600, 20, 3, seed=4)
    first = drawn.matrix.mean(axis=0)
    blocks = blocks_of(drawn.matrix)
    one = best_start(blocks, 3, prevalence(blocks))
    rows = np.random.default_rng(0).permutation(600)
    shuffled = blocks_of(drawn.matrix[rows])
    other = best_start(shuffled, 3, prevalence(shuffled))
    assert one.model.means.tobytes() == other.model.means.tobytes()
    assert one.strength == other.strength
    columns = np.random.default_rng(1).permutation(20)
    turned = blocks_of(drawn.matrix[:, columns].sorted_indices())
    third = best_start(turned, 3, prevalence(turned))
    np.testing.assert_allclose(
        third.model.ordered().means, one.model.ordered().means[:, columns], atol=1e-5
    )
    assert first.shape == (20,)


@pytest.mark.filterwarnings("ignore:overflow encountered in scalar add")
def test_thinning_keeps_the_moments_and_forgets_the_order():
    matrix, _ = draw(random_mixture(3, 12, 1), 3000)
    blocks = dense_to_blocks(matrix)
    first = prevalence(blocks)
    small = thin_rows(blocks, first, 500, None)
    assert 300 < small.n_rows < 1500
    np.testing.assert_allclose(prevalence(small), first, atol=0.06)
    assert small.weight == pytest.approx(3000, rel=0.1)
    again = dense_to_blocks(matrix[np.random.default_rng(0).permutation(3000)])
    other = thin_rows(again, prevalence(again), 500, None)
    model = random_mixture(2, 12, 0)
    assert expect(model, small).sums.tobytes() == expect(model, other).sums.tobytes()


@pytest.mark.filterwarnings("ignore:overflow encountered in scalar add")
def test_few_different_rows_are_kept_with_their_weight():
    matrix = np.tile([[1, 0, 1], [0, 1, 0], [1, 1, 1]], (400, 1))
    small = thin_rows(dense_to_blocks(matrix), matrix.mean(axis=0), 300, None)
    assert small.n_rows == 3
    assert small.weight == 1200
    np.testing.assert_allclose(prevalence(small), matrix.mean(axis=0))


def test_little_data_are_not_thinned(sample):
    blocks = dense_to_blocks(sample)
    same = thin_rows(blocks, sample.mean(axis=0), 200, None)
    assert same.n_rows == blocks.n_rows
    assert prevalence(same).tolist() == prevalence(blocks).tolist()


def test_rows_can_be_taken_with_their_weights(sample):
    weights = np.arange(1.0, 301.0)
    blocks = dense_to_blocks(sample, weights, block_rows=70)
    chosen = np.array([0, 5, 69, 70, 299])
    part = take_rows(blocks, chosen)
    assert part.weight == weights[chosen].sum()
    np.testing.assert_allclose(
        prevalence(part), weights[chosen] @ sample[chosen] / weights[chosen].sum()
    )


def test_a_fixed_strength_is_kept():
    matrix, _ = draw(random_mixture(2, 6, 0), 50)
    blocks = dense_to_blocks(matrix)
    assert best_start(blocks, 2, prevalence(blocks), 3.0).strength == 3.0


def test_less_rank_than_clusters_falls_back_on_the_paper_s_start():
    blocks = dense_to_blocks(np.tile([[1, 0, 0, 0], [0, 1, 1, 0]], (20, 1)))
    with pytest.warns(ComorbWarning, match="rank 2, so only 2 of the 3 clusters"):
        found = best_start(blocks, 3, prevalence(blocks))
    assert found.model.n_components == 3


@pytest.mark.compiled
def test_em_from_the_start_needs_few_passes(sample):
    blocks = dense_to_blocks(sample)
    found = best_start(blocks, 3, prevalence(blocks))
    prior = Prior.around(prevalence(blocks), found.strength, 300.0)
    assert em(blocks, found.model, prior, Stopping()).n_iter < 60


def test_merging_down_weighs_every_pair_at_every_merge(sample):
    blocks = dense_to_blocks(sample)
    prior = Prior.around(sample.mean(axis=0), 1.0, 300.0)
    sums = expect(random_mixture(6, 12, 3), blocks).sums
    expected = sums
    while expected.shape[1] > 2:
        expected = merge_sums(expected, *cheapest_merge(expected, prior))
    np.testing.assert_allclose(merge_sums_to(sums, 2, prior), expected)


def test_the_hash_of_a_column_follows_its_rows_and_not_their_order(sample):
    blocks = dense_to_blocks(sample)
    keys = column_keys(blocks, prevalence(blocks))
    assert np.unique(keys).size == 12
    rows, columns = np.random.default_rng(2).permutation(300), np.arange(12)[::-1]
    turned = dense_to_blocks(sample[rows][:, columns], block_rows=70)
    assert column_keys(turned, prevalence(turned)).tolist() == keys[columns].tolist()


def test_different_rows_are_kept_once_with_their_weight():
    matrix = np.array([[1, 0], [0, 1], [1, 0], [1, 1]])
    found = distinct_rows(
        dense_to_blocks(matrix, np.array([1.0, 0.0, 2.0, 5.0])), np.ones(2) / 2, None
    )
    assert found.n_rows == 2
    assert found.weight == 8
    np.testing.assert_allclose(prevalence(found), [1.0, 5 / 8])


def test_noise_is_even_and_differs_by_turn_place_and_column():
    keys = np.arange(200, dtype=np.uint64)
    draws = hash_uniforms(keys, 1, 50)
    assert np.unique(draws).size == draws.size
    assert abs(draws.mean() - 0.5) < 0.01
    assert abs(draws.std() - 12**-0.5) < 0.01
    assert not np.isin(hash_uniforms(keys, 2, 50), draws).any()


def test_a_scattered_start_keeps_to_the_prevalences():
    first = np.linspace(0.01, 0.4, 500)
    model = random_start(first, 20, np.arange(500, dtype=np.uint64), 0, 1e-4)
    assert model.weights.tolist() == [1 / 20] * 20
    ratio = model.means / first
    assert abs(ratio.mean() - 1) < 0.03
    assert abs(ratio.std() - 0.5**0.5) < 0.05


def test_halves_lie_on_both_sides_of_their_cluster(truth):
    both = split_clusters(truth, np.arange(12, dtype=np.uint64), 0)
    assert both.n_components == 6
    np.testing.assert_allclose(both.weights[:3] + both.weights[3:], truth.weights)
    assert ((both.means[:3] - truth.means) * (both.means[3:] - truth.means) < 0).all()


def test_two_models_side_by_side(truth):
    both = join_models(truth, random_mixture(3, 12, 5))
    np.testing.assert_allclose(both.weights[:3], truth.weights / 2)
    assert both.weights.sum() == pytest.approx(1)


@pytest.mark.compiled
def test_an_empty_cluster_loses_to_any_start_without():
    drawn = paper(300, 30, 3, seed=1)
    blocks = blocks_of(drawn.matrix)
    found = best_start(blocks, 6, prevalence(blocks), 0.0)
    assert found.model.weights.min() * 300 >= 1


@pytest.mark.compiled
def test_without_a_prior_the_likelihood_is_the_judge():
    drawn = paper(300, 20, 3, seed=2)
    blocks = blocks_of(drawn.matrix)
    found = best_start(blocks, 3, prevalence(blocks), 0.0)
    assert found.strength == 0
    assert found.evidence == pytest.approx(expect(found.model, blocks).log_likelihood)
    for seed in range(10):
        other = em(blocks, random_mixture(3, 20, seed))
        assert found.evidence > other.log_likelihood - 0.05


def test_halves_of_the_largest_clusters_take_the_places_of_empty_ones():
    model = Mixture(np.array([0.5, 0.0, 0.3, 0.2]), random_mixture(4, 6, 2).means)
    keys = np.arange(6, dtype=np.uint64)
    found = reseed_empty_clusters(model, np.array([1]), keys, 0)
    np.testing.assert_allclose(found.weights, [0.25, 0.25, 0.3, 0.2])
    np.testing.assert_array_equal(found.means[[2, 3]], model.means[[2, 3]])
    halves = split_clusters(model, keys, 0).means
    np.testing.assert_array_equal(found.means[[0, 1]], halves[[0, 4]])


@pytest.mark.compiled
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_cluster_of_the_start_is_empty_where_fewer_would_explain_the_records(seed):
    drawn = paper(1500, 30, 4, seed=seed)
    blocks = blocks_of(drawn.matrix)
    found = best_start(blocks, 16, prevalence(blocks))
    assert found.model.weights.min() * 1500 >= 1


def test_finalists_that_are_far_behind_or_have_empty_clusters_are_left_out(sample):
    race = CandidateRace(dense_to_blocks(sample), sample.mean(axis=0), 1.0)
    ends = [race.run(random_mixture(3, 12, seed), steps) for seed, steps in
            ((0, 60), (0, 61), (1, 1))]  # fmt: skip
    ranked = sorted(ends, key=race.score, reverse=True)
    assert len(race.finalists(ranked)) == 2
    assert race.finalists(ranked)[0] is ranked[0]
