"""Temperature, agreement of labels and lengths of descriptions, against their formulas."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from comorb import BernoulliMixture
from comorb.model import diagnostics
from comorb.model.diagnostics import (
    adjusted_rand,
    collapse_warning,
    contingency,
    information_share,
    intervals,
    lengths,
    out_of_bag,
    overlap,
    residuals,
    temper,
    temperature,
    top_and_margin,
)
from comorb.model.em import Stopping, em
from comorb.model.mixture import Mixture
from comorb.model.moments import moments, prevalence
from comorb.model.prior import Prior, learn_strength
from comorb.records.datasets import paper, record_like
from tests.model.conftest import dense_to_blocks, draw, random_mixture
from tests.model.test_start import blocks_of
from tests.settings import patch_config


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
    assert variance_share(truth, sample, temper(plain, tau)) == pytest.approx(tau, abs=1e-3)


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
    said = temper(plain, temperature(model, dense_to_blocks(matrix))).max(axis=1)
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
    said = temper(twice.posterior(blocks.loaders[0]())[0], tau).max(axis=1)
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
    cooler = temper(posterior, 0.5)
    assert cooler.argmax(axis=1).tolist() == [0, 2]
    np.testing.assert_allclose(cooler.sum(axis=1), 1)
    assert (cooler.max(axis=1) < posterior.max(axis=1)).all()
    np.testing.assert_allclose(temper(posterior, 1.0), posterior)


labels = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=60)


@given(labels)
def test_the_index_is_scikit_learn_s(pairs):
    one, other = np.array(pairs).T
    assert adjusted_rand(one, other) == pytest.approx(adjusted_rand_score(one, other), abs=1e-12)


def test_the_table_counts_records():
    table = contingency(np.array([0, 0, 1]), np.array([2, 2, 0]))
    assert table.tolist() == [[0, 0, 2], [1, 0, 0]]


def test_the_overlap_finds_the_match_whatever_its_number():
    one = np.array([0, 0, 0, 1, 1, 2])
    other = np.array([2, 2, 1, 1, 1, 0])
    np.testing.assert_allclose(overlap(contingency(one, other)), [2 / 3, 2 / 3, 1.0])


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


def test_the_top_and_its_lead():
    top, margin = top_and_margin(np.array([[0.7, 0.2, 0.1], [0.5, 0.0, 0.5]]))
    np.testing.assert_allclose(top, [0.7, 0.5])
    np.testing.assert_allclose(margin, [0.5, 0.0])
    top, margin = top_and_margin(np.ones((2, 1)))
    assert top.tolist() == margin.tolist() == [1.0, 1.0]


def coverage(drawn):
    blocks = blocks_of(drawn.matrix)
    first = prevalence(blocks)
    prior = Prior.around(first, 1.0, blocks.weight)
    result = em(blocks, Mixture(drawn.weights, drawn.means), prior)
    strength = learn_strength(result.expected.sums, first, blocks.weight)
    prior = Prior.around(first, strength, blocks.weight)
    model = em(blocks, result.model, prior).model
    low, high = intervals(model, blocks)
    return np.mean((low <= drawn.means) & (drawn.means <= high))


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["paper", "records"])
def test_95_percent_intervals_cover_93_to_97_percent(kind):
    if kind == "paper":
        found = [coverage(paper(3000, 40, 4, seed=s)) for s in range(8)]
    else:
        found = [coverage(record_like(8000, 5, seed=s)) for s in range(4)]
    assert 0.93 <= np.mean(found) <= 0.97


def test_intervals_hold_the_mean_and_narrow_with_more_records(truth):
    widths = []
    for n in (200, 800):
        matrix, _ = draw(truth, n)
        blocks = dense_to_blocks(matrix)
        prior = Prior.around(matrix.mean(axis=0), 1.0, n)
        model = em(blocks, truth, prior).model
        low, high = intervals(model, blocks)
        assert ((low < model.means + 0.02) & (model.means - 0.02 < high)).all()
        widths.append(np.mean(high - low))
    assert widths[1] < widths[0]


def test_the_pair_that_the_clusters_do_not_explain_is_found():
    rng = np.random.default_rng(0)
    matrix = (rng.random((600, 6)) < 0.3).astype(int)
    matrix[:, 4] = matrix[:, 1]
    blocks = dense_to_blocks(matrix)
    model = Mixture(np.ones(1), matrix.mean(axis=0)[None])
    worst = residuals(model, moments(blocks), top=3)
    assert (worst[0].first, worst[0].second) == (1, 4)
    assert worst[0].observed == pytest.approx(matrix[:, 1].sum())
    assert worst[0].expected == pytest.approx(600 * matrix[:, 1].mean() ** 2)
    assert worst[0].z > 10 > abs(worst[1].z)


def test_a_true_model_leaves_no_large_residual(truth):
    matrix, _ = draw(truth, 300)
    worst = residuals(truth, moments(dense_to_blocks(matrix)), top=1)
    assert abs(worst[0].z) < 5


def test_a_collapsed_model_is_named():
    apart = np.array([[0.1, 0.9], [0.9, 0.1]])
    assert collapse_warning(Mixture(np.array([0.5, 0.5]), apart), 100) is None
    alike = collapse_warning(Mixture(np.array([0.5, 0.5]), np.full((2, 2), 0.4)), 100)
    assert alike == "clusters 1 and 2 have the same profile; ask for fewer than 2 clusters"
    empty = collapse_warning(Mixture(np.array([0.999, 0.001]), apart), 100)
    assert empty == "cluster 2 holds less than one record; ask for fewer than 2 clusters"


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


def test_information_has_the_same_bits_in_any_order_and_blocks():
    matrix, _ = draw(APART, 500)
    one = information_share(APART, dense_to_blocks(matrix))
    rows = np.random.default_rng(0).permutation(500)
    other = information_share(APART, dense_to_blocks(matrix[rows], block_rows=70))
    assert one.tobytes() == other.tobytes()


@pytest.mark.compiled
def test_a_row_of_weight_two_is_two_records(monkeypatch):
    patch_config(monkeypatch, diagnostics, max_parameters=0)
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
    patch_config(monkeypatch, diagnostics, max_parameters=0)
    found = information_share(model, blocks)
    assert abs(np.log(found / exact).mean()) < 0.4
    rows = np.random.default_rng(0).permutation(3000)
    again = information_share(model, dense_to_blocks(matrix[rows], block_rows=700))
    np.testing.assert_allclose(again, found, rtol=1e-9)


def few_records(seed, n=1000):
    """Return records of three clusters, one of them with one in a hundred."""
    rng = np.random.default_rng(seed)
    means = rng.beta(1, 4, size=(3, 40)).clip(0.02, 0.8)
    return Mixture(np.array([0.6, 0.39, 0.01]), means).sample(n, seed)


@pytest.mark.compiled
def test_records_are_less_sure_of_clusters_that_they_made():
    said, without, right = [], [], []
    for seed in range(4):
        matrix, labels = few_records(seed)
        blocks = blocks_of(matrix)
        model = BernoulliMixture(3).fit(matrix).mixture_
        posterior = np.concatenate([model.posterior(load())[0] for load in blocks.loaders])
        own = posterior.argmax(axis=1)
        small = own == np.bincount(own, minlength=3).argmin()
        # the small cluster is right where most of its records are of the small one
        right.append((labels[small] == 2).mean())
        said.append(posterior.max(axis=1)[small].mean())
        without.append(out_of_bag(model, blocks)[small, own[small]].mean())
    assert np.mean(said) > np.mean(right) + 0.1
    assert abs(np.mean(without) - np.mean(right)) < np.mean(said) - np.mean(right)


@pytest.mark.compiled
def test_records_left_out_do_not_depend_on_their_order(truth):
    matrix = draw(truth, 300, seed=3)[0]
    order = np.random.default_rng(1).permutation(300)
    one = out_of_bag(truth, dense_to_blocks(matrix), 0.9)
    two = out_of_bag(truth, dense_to_blocks(matrix[order]), 0.9)
    np.testing.assert_allclose(one.sum(axis=1), 1)
    kinds = np.unique(matrix, axis=0, return_inverse=True)[1].ravel()
    for kind in range(kinds.max() + 1):  # equal rows may change places, and those alone
        mine, own = (
            np.sort(table, axis=0) for table in (one[kinds == kind], two[kinds[order] == kind])
        )
        np.testing.assert_array_equal(mine, own)
