"""Slices of a saved run: in memory, in parts, protected, and with models of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from comorb.errors import InputError
from comorb.insight.runs.assign import assign_records
from comorb.insight.runs.folder import load_profile
from comorb.insight.runs.run import Request, fit_records
from comorb.insight.runs.slicing import SliceRequest, asked_slices, slice_run
from comorb.records.asked import as_asked
from comorb.records.datasets import region
from comorb.records.layouts.description import Layout
from comorb.records.preparation import Preparation

SECRET = bytes(range(32))


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.Table.from_batches(list(region(2500)))


@pytest.fixture(scope="module")
def run(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("slices") / "run"
    fit_records(table, path, Request(2, Preparation(drop_rare=5), repeats=0, secret=SECRET))
    return path


def test_the_run_s_own_records_have_the_slices_of_its_profile(table: pa.Table, run: Path) -> None:
    own = next(one for one in load_profile(run).slices if one.by == "age")
    for way in ({}, {"memory": "1GB"}):
        sliced = slice_run(run, table, SliceRequest(asked_slices(["age"])), **way)  # type: ignore[arg-type]
        (found,) = sliced.slices
        assert found.counts.tolist() == own.counts.tolist()
        assert found.standardised.tobytes() == own.standardised.tobytes()
        assert sliced.strata == ()


def test_protected_slices_tell_no_small_count(table: pa.Table, run: Path) -> None:
    request = SliceRequest(asked_slices(["age:q20", "sex"]), min_cell=11, secret=SECRET)
    for one in slice_run(run, table, request).slices:
        counts = one.counts[~np.isnan(one.counts)]
        assert not ((counts > 0) & (counts < 11)).any()


def test_models_of_their_own_are_matched(table: pa.Table, run: Path) -> None:
    request = SliceRequest(asked_slices(["sex"]), refit=True, draws=3)
    sliced = slice_run(run, table, request)
    (strata,) = sliced.strata
    assert [one.label for one in strata.strata] == list(sliced.slices[0].labels)
    assert strata.test is not None
    assert strata.test.p in (0.25, 0.5, 0.75, 1.0)


def test_a_run_with_features_is_sliced_but_not_fitted_again(
    table: pa.Table, tmp_path: Path
) -> None:
    request = Request(2, Preparation(features=as_asked(["age"])), repeats=0, secret=SECRET)
    made = fit_records(table.slice(0, 900), tmp_path / "run", request)
    signs = range(made.n_codes, len(made.codes))
    assert len(signs) > 0
    asked = asked_slices(["sex"])
    (found,) = slice_run(tmp_path / "run", table.slice(0, 900), SliceRequest(asked)).slices
    assert found.counts[:, -1].sum() == made.source.records
    with pytest.raises(InputError, match="models of slices are of codes alone"):
        slice_run(tmp_path / "run", table, SliceRequest(asked, refit=True))
    tally = assign_records(tmp_path / "run", table.slice(0, 900), tmp_path / "again.csv")
    assert tally.drift.now.mean == pytest.approx(tally.drift.then.mean)  # type: ignore[union-attr]


def test_a_column_that_isn_t_there_is_said(table: pa.Table, run: Path) -> None:
    with pytest.raises(InputError, match="to slice by, got 'ward'"):
        slice_run(run, table, SliceRequest(asked_slices(["ward"])))


def test_weights_can_be_named_for_new_records(table: pa.Table, run: Path) -> None:
    weighted = table.append_column("w", pa.array([1 + i % 3 for i in range(len(table))]))
    reading = Preparation(layout=Layout(weight="w"))
    sliced = slice_run(run, weighted, SliceRequest(asked_slices(["sex"]), reading=reading))
    (found,) = sliced.slices
    assert (found.effective < found.counts[:, -1]).all()
