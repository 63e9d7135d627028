"""Slices of a saved run: in memory, in parts, protected, alone, with models of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array, vstack

from comorb.errors import InputError, RecordsError
from comorb.model.mixture import Mixture
from comorb.profiles.slices import By, cut
from comorb.records.cohort import Cohort
from comorb.records.datasets import region
from comorb.records.features import parse_features
from comorb.records.layouts.layout import Layout
from comorb.records.ledger import Ledger
from comorb.records.spec import CohortSpec
from comorb.runs.assign import assign_records
from comorb.runs.folder import load_profile
from comorb.runs.run import Request, fit_records
from comorb.runs.run import run as fit_cohort
from comorb.runs.slices import (
    SliceRequest,
    SplitRecords,
    Strata,
    check_invariance,
    fit_strata,
    parse_slices,
    slice_run,
)

SECRET = bytes(range(32))


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.Table.from_batches(list(region(2500)))


@pytest.fixture(scope="module")
def run(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("slices") / "run"
    fit_records(table, path, Request(2, CohortSpec(drop_rare=5), repeats=0, secret=SECRET))
    return path


def test_the_run_s_own_records_have_the_slices_of_its_profile(table: pa.Table, run: Path) -> None:
    own = next(one for one in load_profile(run).slices if one.by == "age")
    for way in ({}, {"memory": "1GB"}):
        sliced = slice_run(run, table, SliceRequest(parse_slices(["age"])), **way)  # type: ignore[arg-type]
        (found,) = sliced.slices
        assert found.counts.tolist() == own.counts.tolist()
        assert found.standardised.tobytes() == own.standardised.tobytes()
        assert sliced.strata == ()


def test_protected_slices_tell_no_small_count(table: pa.Table, run: Path) -> None:
    request = SliceRequest(parse_slices(["age:q20", "sex"]), min_cell=11, secret=SECRET)
    for one in slice_run(run, table, request).slices:
        counts = one.counts[~np.isnan(one.counts)]
        assert not ((counts > 0) & (counts < 11)).any()


def test_models_of_their_own_are_matched(table: pa.Table, run: Path) -> None:
    request = SliceRequest(parse_slices(["sex"]), refit=True, draws=3)
    sliced = slice_run(run, table, request)
    (strata,) = sliced.strata
    assert [one.label for one in strata.strata] == list(sliced.slices[0].labels)
    assert strata.test is not None
    assert strata.test.p in (0.25, 0.5, 0.75, 1.0)


def test_a_run_with_features_is_sliced_but_not_fitted_again(
    table: pa.Table, tmp_path: Path
) -> None:
    request = Request(2, CohortSpec(features=parse_features(["age"])), repeats=0, secret=SECRET)
    made = fit_records(table.slice(0, 900), tmp_path / "run", request)
    signs = range(made.n_codes, len(made.codes))
    assert len(signs) > 0
    asked = parse_slices(["sex"])
    (found,) = slice_run(tmp_path / "run", table.slice(0, 900), SliceRequest(asked)).slices
    assert found.counts[:, -1].sum() == made.source.records
    with pytest.raises(InputError, match="models of slices are of codes alone"):
        slice_run(tmp_path / "run", table, SliceRequest(asked, refit=True))
    tally = assign_records(tmp_path / "run", table.slice(0, 900), tmp_path / "again.csv")
    assert tally.drift.now.mean == pytest.approx(tally.drift.then.mean)  # type: ignore[union-attr]


def test_a_column_that_isn_t_there_is_said(table: pa.Table, run: Path) -> None:
    with pytest.raises(InputError, match="to slice by, got 'ward'"):
        slice_run(run, table, SliceRequest(parse_slices(["ward"])))


def test_weights_can_be_named_for_new_records(table: pa.Table, run: Path) -> None:
    weighted = table.append_column("w", pa.array([1 + i % 3 for i in range(len(table))]))
    reading = CohortSpec(layout=Layout(weight="w"))
    sliced = slice_run(run, weighted, SliceRequest(parse_slices(["sex"]), reading=reading))
    (found,) = sliced.slices
    assert (found.effective < found.counts[:, -1]).all()


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return CohortSpec(drop_rare=5).cohort(pa.Table.from_batches(list(region(1500))))


@pytest.fixture(scope="module")
def folder(cohort: Cohort, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("split") / "run"
    fit_cohort(cohort, Request(3, repeats=0, secret=SECRET), path)
    return path


def test_slices_are_those_of_the_run_s_own_profile(cohort: Cohort, folder: Path) -> None:
    own = next(one for one in load_profile(folder).slices if one.by == "sex")
    found, half = SplitRecords(folder, cohort, SECRET).slices("sex")
    assert found.labels == own.labels
    assert found.counts.tolist() == own.counts.tolist()
    assert found.standardised.tolist() == own.standardised.tolist()
    assert ((half > 0) & (half < 0.1)).all()
    assert np.allclose(half, (found.high - found.low) / 2, rtol=0.35)


def test_protected_slices_tell_no_small_count_and_the_same_each_time(
    cohort: Cohort, folder: Path
) -> None:
    told = [SplitRecords(folder, cohort, SECRET, 11).slices("age") for _ in range(2)]
    assert told[0][0].counts.tobytes() == told[1][0].counts.tobytes()
    counts = told[0][0].counts
    assert not ((counts > 0) & (counts < 11)).any()
    full = SplitRecords(folder, cohort, SECRET).slices("age")[0]
    assert counts.tolist() != full.counts.tolist()


def test_the_slices_of_one_column_make_up_the_whole(cohort: Cohort, folder: Path) -> None:
    split, whole = SplitRecords(folder, cohort, SECRET), load_profile(folder)
    parts = [split.profile("sex", label) for label in ("female", "male")]
    sizes = np.sum([[one.size for one in part.clusters] for part in parts], axis=0)
    assert sizes.tolist() == [one.size for one in whole.clusters]
    assert np.array_equal(np.sum([part.counts for part in parts], axis=0), whole.counts)
    assert {part.cluster_names for part in parts} == {whole.cluster_names}
    assert parts[0].source.lines[-1].rule == "sex: female"
    assert whole.burden is not None
    shared = [part.burden.totals[:, -1] for part in parts if part.burden is not None]
    assert np.allclose(np.sum(shared, axis=0), whole.burden.totals[:, -1])
    assert parts[0].protected(11).min_cell == 11


def test_what_is_not_there_is_refused(cohort: Cohort, folder: Path) -> None:
    with pytest.raises(InputError, match="no such slice"):
        SplitRecords(folder, cohort, SECRET).profile("sex", "unknown")
    other = CohortSpec(drop_rare=5).cohort(pa.Table.from_batches(list(region(1600))))
    with pytest.raises(RecordsError, match="run it again"):
        SplitRecords(folder, other, SECRET).slices("sex")


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
    one = check_invariance(cohort, SAME, groups[0], 5)
    two = check_invariance(mixed, SAME, groups[1], 5)
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
