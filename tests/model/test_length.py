"""Clusters given the number of codes, against sums over all records of a few codes."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from comorb.model.blocks import workers
from comorb.model.em import expect
from comorb.model.length import (
    LengthModel,
    expected_given_length,
    fit_given_length,
    length_chances,
    longest_record,
    start_given_length,
)
from comorb.model.mixture import Mixture
from comorb.model.moments import prevalence
from comorb.model.prior import Prior
from tests.model.conftest import dense_to_blocks, draw, random_mixture

EVERY = np.array(list(product([0, 1], repeat=6)))
LENGTHS = EVERY.sum(axis=1)


def densities(model: Mixture, rows: np.ndarray) -> np.ndarray:
    chances = np.where(rows[:, None, :] == 1, model.means, 1 - model.means)
    return np.prod(chances, axis=2)


@pytest.fixture
def found() -> LengthModel:
    model = random_mixture(3, 6, seed=4)
    return start_given_length(model, dense_to_blocks(draw(model, 400)[0]), 6)


def test_chances_of_lengths_are_sums_over_all_records(found):
    all_of_them = densities(found.model, EVERY)
    wanted = [all_of_them[s == LENGTHS].sum(axis=0) for s in range(7)]
    np.testing.assert_allclose(np.exp(length_chances(found.model, 6)), wanted, rtol=1e-10)


def test_expected_counts_are_sums_over_all_records(found):
    all_of_them = densities(found.model, EVERY)
    wanted = np.zeros((3, 6))
    for s in range(7):
        own = all_of_them[s == LENGTHS]
        wanted += (found.sizes[s] * own / own.sum(axis=0)).T @ EVERY[s == LENGTHS]
    np.testing.assert_allclose(expected_given_length(found.model, found.sizes), wanted, rtol=1e-10)


def test_the_likelihood_is_that_of_records_among_those_of_their_length(found):
    rows = draw(random_mixture(3, 6, seed=9), 50)[0]
    lengths, shares = rows.sum(axis=1), found.shares(6)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    chances = np.exp(length_chances(found.model, 6))
    each = (shares[lengths] * densities(found.model, rows) / chances[lengths]).sum(axis=1)
    value = found.expect(dense_to_blocks(rows)).log_likelihood
    assert value == pytest.approx(np.log(each).sum())
    of_all = np.array([(shares[s] * densities(found.model, EVERY)[at]) for at, s in
                       enumerate(LENGTHS)]) / chances[LENGTHS]  # fmt: skip
    by_length = np.bincount(LENGTHS, of_all.sum(axis=1))
    np.testing.assert_allclose(by_length, 1)


@pytest.mark.compiled
def test_em_gains_and_blocks_threads_and_order_change_no_bit():
    true = random_mixture(3, 12, seed=2)
    rows = draw(true, 900)[0]
    first = rows.mean(axis=0)
    prior = Prior.around(first, 1.0, 900)
    order = np.random.default_rng(1).permutation(900)
    results = []
    for matrix, block_rows, threads in ((rows, None, 1), (rows, 100, 2), (rows[order], 70, 1)):
        blocks = dense_to_blocks(matrix, block_rows=block_rows)
        with workers(threads) as pool:
            start = start_given_length(true, blocks, longest_record(blocks, pool), pool)
            end, expected = fit_given_length(start, blocks, prior, first, pool)
        assert expected.log_likelihood > start.expect(blocks).log_likelihood
        results.append((end.model.means.tobytes(), end.sizes.tobytes(), expected.log_likelihood))
    assert results[0] == results[1] == results[2]


@pytest.mark.compiled
def test_records_that_are_merely_longer_are_no_cluster():
    rng = np.random.default_rng(3)
    odds = rng.normal(-2, 1, size=30) + 1.2 * rng.normal(size=(6000, 1))
    rows = (rng.random((6000, 30)) < 1 / (1 + np.exp(-odds))).astype(int)
    blocks, new = dense_to_blocks(rows[:4000]), dense_to_blocks(rows[4000:])
    first = prevalence(blocks)
    prior = Prior.around(first, 1.0, 4000)
    longer = np.clip(first * np.array([[0.6], [2.0]]), 0.01, 0.9)
    values = []
    for model in (Mixture(np.ones(1), first[None]), Mixture(np.array([0.6, 0.4]), longer)):
        start = start_given_length(model, blocks, 30)
        values.append(fit_given_length(start, blocks, prior, first)[0].expect(new).log_likelihood)
    assert values[1] < values[0] + 0.0005 * 2000
    plain = [
        expect(model, new).log_likelihood
        for model in (Mixture(np.ones(1), first[None]), Mixture(np.array([0.6, 0.4]), longer))
    ]
    assert plain[1] > plain[0] + 0.1 * 2000


def test_longer_records_than_any_have_the_overall_shares(found):
    shares = replace(found, sizes=found.sizes[:4]).shares(6)
    overall = found.sizes[:4].sum(axis=0) / found.sizes[:4].sum()
    np.testing.assert_allclose(shares[5], overall)


def test_merged_clusters_keep_their_records(found):
    merged = found.merge(0, 2)
    assert merged.model.n_components == 2
    np.testing.assert_allclose(merged.sizes[:, 0], found.sizes[:, 0] + found.sizes[:, 2])
    np.testing.assert_allclose(merged.sizes[:, 1], found.sizes[:, 1])
