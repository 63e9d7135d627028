"""Models of strata are matched, and the test finds profiles that differ and none that don't."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array, vstack

from comorb.errors import InputError
from comorb.insight.profile.cutting import By, cut
from comorb.insight.runs.strata import Strata, fit_strata, invariance
from comorb.model.mixture import Mixture
from comorb.records.cohort import Cohort
from comorb.records.ledger import Ledger

RNG = np.random.default_rng(1)
MEANS = np.where(RNG.random((2, 20)) < 0.4, 0.6, 0.08)
SAME = Mixture(np.array([0.5, 0.5]), MEANS)


def two_sites(other: Mixture, n: int = 700) -> Cohort:
    """Return records of a site by one mixture and of a second by another."""
    parts = [SAME.sample(n, 1)[0], other.sample(n, 2)[0]]
    codes = tuple(f"c{i}" for i in range(20))
    return Cohort(
        csr_array(vstack(parts, "csr")), pa.array([str(i) for i in range(2 * n)]), codes, codes,
        "opaque", "full", pa.table({"site": ["a"] * n + ["b"] * n}), Ledger.start(2 * n, 20),
    )  # fmt: skip


def strata(cohort: Cohort) -> Strata:
    return fit_strata(cohort, SAME, cut(cohort.covariates, By("site")), 19)


def test_the_same_profiles_in_other_sizes_don_t_differ() -> None:
    found = strata(two_sites(Mixture(np.array([0.2, 0.8]), MEANS)))
    assert found.test is not None
    assert found.test.p > 0.05
    assert [sorted(map(str, one.matches)) for one in found.strata] == [["0", "1"]] * 2
    assert found.notes == ()


def test_other_profiles_differ_and_what_has_no_match_is_said() -> None:
    means = MEANS.copy()
    means[0] = np.where(MEANS[1] > 0.3, 0.75, 0.3)
    found = strata(two_sites(Mixture(np.array([0.5, 0.5]), means)))
    assert found.test is not None
    assert found.test.p == 0.05
    assert found.test.statistic > 2 * found.test.usual
    assert found.test.a_record > 0


def test_the_order_of_records_changes_no_bit() -> None:
    cohort = two_sites(SAME)
    order = np.random.default_rng(3).permutation(len(cohort))
    mixed = replace(
        cohort, matrix=cohort.matrix[order], covariates=cohort.covariates.take(pa.array(order))
    )
    groups = [
        [np.flatnonzero(np.asarray(one.covariates["site"]) == site) for site in ("a", "b")]
        for one in (cohort, mixed)
    ]
    one = invariance(cohort, SAME, groups[0], 5)
    two = invariance(mixed, SAME, groups[1], 5)
    assert one == two


def test_strata_of_few_records_are_said_or_refused() -> None:
    cohort = two_sites(SAME, 260)
    sites = ["a"] * 400 + ["b"] * 120
    some = replace(cohort, covariates=pa.table({"site": sites}))
    found = strata(some)
    assert found.notes == (
        "b has 120 records, and a model of its own needs 200",
        "one slice alone has enough records, so nothing is compared",
    )
    assert found.test is None
    few = replace(cohort, covariates=pa.table({"site": [str(i % 4) for i in range(520)]}))
    with pytest.raises(InputError, match="expected slices of 200 records or more"):
        strata(few)
