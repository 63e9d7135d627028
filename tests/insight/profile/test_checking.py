"""Checking: what is said with the clusters, against the model's own functions and against truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from comorb.insight.profile import checking
from comorb.insight.profile.checking import check_model
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.profiling import profile
from comorb.model.confidence import intervals
from comorb.model.mixture import Mixture
from comorb.records.cohort import Cohort
from tests.insight.conftest import MODEL, SECRET
from tests.model.conftest import dense_to_blocks, draw


def with_twins(cohort: Cohort) -> Cohort:
    """Return the cohort with its second code carried by all who carry its last."""
    matrix = cohort.matrix.toarray()
    matrix[:, 1] = np.maximum(matrix[:, 1], matrix[:, 2])
    return replace(cohort, matrix=sparse.csr_array(matrix))


def test_codes_that_come_together_are_told_and_make_the_model_less_sure(cohort: Cohort) -> None:
    plain, twins = (
        check_model(MODEL, cohort.blocks()),
        check_model(MODEL, with_twins(cohort).blocks()),
    )
    (first, *_) = twins.caveats.pairs
    x = with_twins(cohort).matrix.toarray()
    assert (first.first, first.second) == (1, 2)
    assert first.observed == (x[:, 1] * x[:, 2]).sum()
    assert first.expected < first.observed
    assert twins.caveats.temperature < plain.caveats.temperature <= 1


def test_intervals_are_for_the_effective_number_of_records(cohort: Cohort) -> None:
    plain = check_model(MODEL, cohort.blocks())
    np.testing.assert_array_equal(plain.low, intervals(MODEL, cohort.blocks())[0])
    even = check_model(MODEL, replace(cohort, weights=np.full(len(cohort), 50.0)).blocks())
    np.testing.assert_allclose(even.high - even.low, plain.high - plain.low, rtol=0.01)
    uneven = np.where(np.arange(len(cohort)) % 2, 99.0, 1.0)
    wide = check_model(MODEL, replace(cohort, weights=uneven).blocks())
    assert np.median((wide.high - wide.low) / (plain.high - plain.low)) > 1.2


def test_the_order_of_records_and_the_blocks_change_no_bit() -> None:
    model = Mixture(np.array([0.5, 0.5]), np.array([[0.6, 0.2, 0.1], [0.1, 0.5, 0.4]]))
    matrix, _ = draw(model, 400)
    rows = np.random.default_rng(0).permutation(400)
    one = check_model(model, dense_to_blocks(matrix))
    other = check_model(model, dense_to_blocks(matrix[rows], block_rows=90))
    assert one.caveats == other.caveats
    assert one.low.tobytes() == other.low.tobytes()
    assert one.lengths.tobytes() == other.lengths.tobytes()


def test_no_pairs_are_looked_for_among_very_many_codes(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "DENSE_COLUMNS", 7)
    assert check_model(MODEL, with_twins(cohort).blocks()).caveats.pairs == ()


def test_lengths_go_to_the_clusters_of_the_profile(full: Profile, cohort: Cohort) -> None:
    lengths = cohort.matrix.toarray().sum(axis=1)
    assert full.caveats.length == pytest.approx(lengths.mean(), abs=1e-3)
    assert all(cluster.length > 0 and 0 <= cluster.of_length <= 1 for cluster in full.clusters)


def test_pairs_are_told_in_protected_counts(cohort: Cohort) -> None:
    made = profile(MODEL, with_twins(cohort), secret=SECRET)
    least = sorted(pair.observed for pair in made.caveats.pairs)[0] + 1
    assert made.caveats.pairs
    shown = made.protected(least).caveats.pairs
    assert all(pair.observed >= least for pair in shown)
    assert len(shown) < len(made.caveats.pairs)
    weighted = replace(with_twins(cohort), weights=np.full(len(cohort), 2.0))
    assert profile(MODEL, weighted, secret=SECRET).protected(11).caveats.pairs == ()
