"""Patterns with counts are their rows: in a choice, a fit, its intervals and its stability."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comorb import BernoulliMixture, LatentClassModel, Mixture, choose_k
from comorb.model import diagnostics
from comorb.model import start as starting
from comorb.model.diagnostics import intervals
from comorb.model.subsample import subsample, unit_records
from comorb.runs.stability import stability
from tests.model.conftest import dense_to_blocks
from tests.settings import patch_config

pytestmark = pytest.mark.compiled


def patterns(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found, counts = np.unique(matrix, axis=0, return_counts=True)
    return found, counts.astype(float)


def table(k: int, items: int, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng([k, items, seed])
    means = np.where(rng.random((k, items)) < 0.5, 0.85, 0.15)
    return Mixture(np.full(k, 1 / k), means).sample(n, seed)[0].toarray()


def same(one, other) -> None:
    """Compare two choices: all that depends on the records, and nothing of their order."""
    assert one.best == other.best
    assert one.reason == other.reason
    for mine, own in zip(one.rows, other.rows, strict=True):
        for name in (field.name for field in fields(mine)):
            assert getattr(mine, name) == pytest.approx(getattr(own, name), abs=1e-6), name


tables = st.builds(
    table,
    st.integers(1, 4),
    st.integers(3, 8),
    st.integers(12, 400),
    st.integers(0, 999),
)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(tables, st.randoms(use_true_random=False))
def test_a_table_of_patterns_gives_the_choice_of_its_rows(matrix, random):
    found, counts = patterns(matrix)
    order = random.sample(range(len(found)), len(found))
    same(choose_k(found[order], sample_weight=counts[order]), choose_k(matrix))


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(tables, st.integers(1, 3))
@pytest.mark.filterwarnings("ignore::comorb.errors.ComorbWarning")
def test_a_table_of_patterns_gives_the_clusters_of_its_rows(matrix, k):
    found, counts = patterns(matrix)
    one = BernoulliMixture(k).fit(matrix)
    other = BernoulliMixture(k).fit(found, sample_weight=counts)
    np.testing.assert_allclose(other.means_, one.means_, atol=1e-6)
    assert other.log_likelihood_ == pytest.approx(one.log_likelihood_, abs=1e-6)


@pytest.mark.parametrize("n", [40, 3000])
def test_parts_of_patterns_are_those_of_their_rows(n):
    matrix = table(2, 6, n, 1)
    found, counts = patterns(matrix)
    model = BernoulliMixture(2).fit(matrix).mixture_
    one, other = stability(matrix, model), stability(found, model, sample_weight=counts)
    assert other.aris == pytest.approx(one.aris)
    assert other.jaccard == pytest.approx(one.jaccard)


@pytest.mark.parametrize("largest", [0, 2500])  # parameters: beyond, intervals are bootstrapped
def test_intervals_of_patterns_are_those_of_their_rows(largest, monkeypatch):
    patch_config(monkeypatch, diagnostics, max_parameters=largest)
    matrix = table(2, 6, 900, 1)
    model = BernoulliMixture(2).fit(matrix).mixture_
    ends = intervals(model, dense_to_blocks(matrix))
    of_patterns = intervals(model, dense_to_blocks(*patterns(matrix)))
    np.testing.assert_allclose(of_patterns, ends, atol=1e-6)


@pytest.mark.parametrize("n", [17_000, 70_000, 250_000])
def test_many_rows_give_the_choice_of_a_few(n):
    rng = np.random.default_rng(4)
    means = np.array([[0.85] * 7, [0.15] * 7, [0.15] * 4 + [0.85] * 3])
    true = Mixture(np.array([0.45, 0.35, 0.2]), means)
    matrix = true.sample(n, rng)[0].toarray()
    choice = choose_k(matrix)
    assert choice.best == 3
    fitted = BernoulliMixture(3).fit(matrix)
    assert choice.rows[2].held_out == pytest.approx(fitted.score(matrix), abs=0.05)
    found, counts = patterns(matrix)
    same(choose_k(found, sample_weight=counts), choice)


def test_the_start_of_a_fit_counts_records(monkeypatch):
    patch_config(monkeypatch, starting, min_rows=50, final_rows=4)
    matrix = table(3, 8, 3000, 2)
    found, counts = patterns(matrix)
    one = BernoulliMixture(3, max_iter=0).fit(matrix)
    other = BernoulliMixture(3, max_iter=0).fit(found, sample_weight=counts)
    assert other.means_.tobytes() == one.means_.tobytes()


def test_features_and_codes_count_as_often_as_they_are_there():
    rng = np.random.default_rng(5)
    first = rng.random(900) < 0.4
    levels = np.where(rng.random(900) < 0.85, first, ~first).astype(int)
    items = np.where(rng.random((900, 4)) < 0.85, first[:, None], ~first[:, None]).astype(int)
    rows = np.column_stack([items, levels])
    found, counts = patterns(rows)
    kinds = {f"x{at}": "binary" for at in range(4)} | {"x4": "category"}
    one = LatentClassModel(kinds=kinds).fit(rows)
    other = LatentClassModel(kinds=kinds).fit(found, sample_weight=counts)
    same(other.choice_, one.choice_)
    assert one.choice_.best == 2


def test_a_row_without_weight_is_not_there():
    matrix = table(2, 6, 300, 3)
    found, counts = patterns(matrix)
    empty = np.array([[1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1]])
    more = np.concatenate([found, np.repeat(empty, 20, axis=0)])
    same(choose_k(more, sample_weight=[*counts, *[0] * 40]), choose_k(matrix))


def test_records_count_and_not_the_patterns_they_have():
    matrix = np.eye(5, dtype=int)[[0] * 30 + [1] * 25 + [2] * 20 + [3] * 10 + [4] * 9]
    found, counts = patterns(matrix)
    same(choose_k(found, sample_weight=counts), choose_k(matrix))


@pytest.mark.parametrize("scale", [0.07, 1.3, 1e9])
def test_weights_that_are_no_counts_have_a_choice(scale):
    choice = choose_k(table(2, 6, 200, 4), ks=[1, 2, 3], sample_weight=np.full(200, scale))
    assert [row.k for row in choice.rows] == [1, 2, 3]


def test_the_records_of_rows_weigh_what_the_rows_weigh():
    matrix, weights = np.eye(4, dtype=int), np.array([0.25, 1.0, 2.5, 7.0])
    blocks = dense_to_blocks(matrix, weights)
    first = weights / weights.sum()
    records = unit_records(blocks, first, blocks.records, None)
    assert np.bincount(records.rows).tolist() == [1, 1, 3, 7]
    assert np.bincount(records.rows, records.weights).tolist() == weights.tolist()
    assert records.part(records.uniforms >= 0, 4).tolist() == weights.tolist()


def test_a_subsample_of_patterns_is_that_of_their_rows():
    matrix = table(3, 8, 4000, 6)
    found, counts = patterns(matrix)
    first = matrix.mean(axis=0)
    one, other = (
        subsample(blocks, first, 100, None).loaders[0]()
        for blocks in (dense_to_blocks(matrix), dense_to_blocks(found, counts))
    )
    assert other.indices.tobytes() == one.indices.tobytes()
    assert other.weights.tobytes() == one.weights.tobytes()
