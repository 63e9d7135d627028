"""Drift: the same records fit as they did, others don't, and what became common is told."""

from __future__ import annotations

import numpy as np
import pytest

from comorb.model.blocks import from_csr
from comorb.model.mixture import Mixture
from comorb.runs.drift import MIN_LOG_DENSITY, density, density_facts, drift
from comorb.storage import SavedModel
from tests.small_cohort import CODES, MODEL, NAMES, make_cohort


def saved(facts: dict[str, object] | None = None) -> SavedModel:
    blocks = make_cohort(4000, seed=8).blocks()
    own = density_facts(MODEL, blocks, None) if facts is None else facts
    return SavedModel(
        MODEL, CODES, NAMES, ("one", "two"), (1, 2), "icd9cm", "category", (), {}, "x",
        {"records": 4000, "shares": [0.6, 0.4], **own},
    )  # fmt: skip


def test_the_mean_and_spread_are_those_of_all_records() -> None:
    cohort = make_cohort(500, weighted=True)
    x = cohort.matrix.toarray().astype(float)
    mu = np.clip(MODEL.means, 1e-9, 1 - 1e-9)
    logs = np.log(MODEL.weights) + x @ np.log(mu).T + (1 - x) @ np.log(1 - mu).T
    expected = np.log(np.exp(logs).sum(axis=1))
    found, prevalence = density(MODEL, cohort.blocks(), None)
    mean = np.average(expected, weights=cohort.weights)
    spread = np.sqrt(np.average((expected - mean) ** 2, weights=cohort.weights))
    assert (found.mean, found.spread) == pytest.approx((mean, spread), abs=1e-4)
    assert prevalence == pytest.approx(np.average(x, axis=0, weights=cohort.weights))


def test_splits_change_no_bit() -> None:
    matrix = make_cohort(900).matrix
    parts = [
        density(MODEL, from_csr(matrix.indptr, matrix.indices, 8, None, size), None)[0]
        for size in (64, 900)
    ]
    assert parts[0] == parts[1]


def test_records_like_its_own_fit() -> None:
    found = drift(saved(), np.array([0.6, 0.4]), *density(MODEL, make_cohort(3000).blocks(), None))
    assert found.fits is True
    assert "fits these records as it did its own" in found.sentence
    assert found.codes == ()
    assert [one.then for one in found.clusters] == [0.6, 0.4]


def test_other_records_don_t_and_their_codes_are_told() -> None:
    means = MODEL.means.copy()
    means[:, 7] = 0.5
    other, _ = Mixture(MODEL.weights, means).sample(3000, 4)
    blocks = from_csr(other.indptr, other.indices, 8)
    found = drift(saved(), np.array([0.3, 0.7]), *density(MODEL, blocks, None))
    assert found.fits is False
    assert "no longer fits" in found.sentence
    assert "fit it again" in found.sentence
    assert found.codes[0].name == "038"
    assert found.codes[0].now == pytest.approx(0.5, abs=0.05)
    assert found.clusters[0].p < 1e-6


def test_a_model_of_an_earlier_version_says_that_it_can_t_tell() -> None:
    found = drift(saved({}), np.array([0.6, 0.4]), *density(MODEL, make_cohort().blocks(), None))
    assert (found.fits, found.then) == (None, None)
    assert "whether it still fits can't be told" in found.sentence


def test_records_that_are_all_alike_still_fit() -> None:
    cohort = make_cohort()
    best = int(MODEL.posterior(cohort.blocks().loaders[0]())[1].argmax())
    matrix = cohort.matrix[np.full(600, best)]
    found = density(MODEL, from_csr(matrix.indptr, matrix.indices, 8), None)
    told = drift(saved(), np.array([1.0, 0.0]), *found)
    assert told.fits is True
    assert "more like each other" in told.sentence


def test_an_impossible_record_counts_as_hardly_possible() -> None:
    sure = Mixture(np.array([1.0]), np.zeros((1, 3000)))
    indices = np.arange(3000, dtype=np.int32)
    found, _ = density(sure, from_csr(np.array([0, 3000]), indices, 3000), None)
    assert found.mean == MIN_LOG_DENSITY
