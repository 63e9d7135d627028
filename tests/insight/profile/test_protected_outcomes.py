"""Outcomes from protected counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from comorb.insight.profile.outcomes import OTHER
from comorb.insight.profile.profiling import profile
from comorb.records.cohort import Cohort
from tests.insight.conftest import MODEL, SECRET, make_cohort


def with_column(cohort: Cohort, name: str, values: object) -> Cohort:
    return replace(cohort, covariates=pa.table({name: pa.array(values)}))


def test_one_rare_category_blanks_nothing_large() -> None:
    cohort = make_cohort(3000)
    ways = np.array(["home", "ward", "died", "abroad"])
    drawn = ways[np.random.default_rng(1).choice(4, 3000, p=[0.6, 0.3, 0.097, 0.003])]
    full = profile(MODEL, with_column(cohort, "discharge", drawn), secret=SECRET)
    shown = full.protected()
    (was,), (now,) = full.outcomes, shown.outcomes
    assert was.counts[list(was.values).index("abroad"), -1] < 11
    assert now.values == ("home", "ward", OTHER)
    assert not np.isnan(now.estimate).any()
    kept = [was.values.index(value) for value in now.values[:-1]]
    assert np.abs(now.estimate[:-1] - was.estimate[kept]).max() < 0.01
    assert np.all((now.low <= now.estimate) & (now.estimate <= now.high))


def test_two_values_of_which_one_is_rare_are_told_as_few() -> None:
    cohort = make_cohort(3000)
    rare = np.arange(3000) < 6
    (now,) = profile(MODEL, with_column(cohort, "moved", rare), secret=SECRET).protected().outcomes
    assert now.values == ("true",)
    assert np.isnan(now.estimate[:, -1]).all()
    often = ~rare
    (now,) = profile(MODEL, with_column(cohort, "moved", often), secret=SECRET).protected().outcomes
    left = now.known[-1] - now.counts[0, -1]
    assert 1 <= left <= 10
    assert now.estimate[0, -1] < 1


@pytest.mark.parametrize("extreme", [0.0, 1e6])
def test_means_have_noise_as_large_as_a_few_records_make(extreme: float) -> None:
    cohort = make_cohort(900)
    values = np.random.default_rng(2).normal(60, 8, 900)
    values[0] += extreme
    full = profile(MODEL, with_column(cohort, "cost", values), secret=SECRET)
    (was,), (now,) = full.outcomes, full.protected().outcomes
    assert was.cells is not None
    step = 10.0 ** np.floor(np.log10((was.high - was.low) / 2))
    reach = np.vstack([5 * was.cells.reach, np.zeros(3)])
    assert np.all(np.abs(now.estimate - was.estimate) <= reach + step / 2 + 1e-6)
    np.testing.assert_allclose(now.estimate / step, np.round(now.estimate / step), atol=1e-6)
    assert now.cells is None


def test_a_mean_of_few_is_not_told_and_one_of_equals_is() -> None:
    cohort = make_cohort(600)
    some = [float(i) if i < 9 else None for i in range(600)]
    (now,) = profile(MODEL, with_column(cohort, "cost", some), secret=SECRET).protected().outcomes
    assert np.isnan(now.estimate[:, -1]).all()
    assert np.isnan(now.known[-1])
    same = profile(MODEL, with_column(cohort, "cost", np.full(600, 3.0)), secret=SECRET)
    np.testing.assert_array_equal(same.protected().outcomes[0].estimate, 3.0)
