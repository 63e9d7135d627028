"""Splitting a saved run: slices of its own records, protected ones, and one slice alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from comorb.errors import InputError, RecordsError
from comorb.insight.runs.folder import load_profile
from comorb.insight.runs.run import Request, run
from comorb.insight.runs.splitting import SplitRecords
from comorb.records.cohort import Cohort
from comorb.records.datasets import region
from comorb.records.preparation import Preparation

SECRET = bytes(range(32))


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return Preparation(drop_rare=5).cohort(pa.Table.from_batches(list(region(1500))))


@pytest.fixture(scope="module")
def folder(cohort: Cohort, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("split") / "run"
    run(cohort, Request(3, repeats=0, secret=SECRET), path)
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
    other = Preparation(drop_rare=5).cohort(pa.Table.from_batches(list(region(1600))))
    with pytest.raises(RecordsError, match="run it again"):
        SplitRecords(folder, other, SECRET).slices("sex")
