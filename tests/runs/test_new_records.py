"""A new file in the clusters of a run: counts, drift, a worklist, and what is told to others."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pytest

from comorb.errors import RecordsError
from comorb.records.datasets import region
from comorb.records.spec import CohortSpec
from comorb.runs.folder import load_profile
from comorb.runs.new_records import NewRecordsRequest, compare_new_records
from comorb.runs.run import Request, fit_records

SECRET = bytes([7]) * 32


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.Table.from_batches(list(region(1600)))


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    request = Request(3, CohortSpec(having=("428",)), repeats=0, secret=SECRET)
    fit_records(table, path, request)
    return path


def test_the_run_s_own_records_have_not_changed(table, folder, tmp_path):
    path = tmp_path / "worklist.csv"
    found, profile = (
        compare_new_records(folder, table, None, NewRecordsRequest(path)),
        load_profile(folder),
    )
    assert found.records == profile.source.records
    assert found.left_out == len(table) - found.records
    assert [one.records for one in found.groups] == [one.size for one in profile.clusters]
    assert [one.share for one in found.groups] == pytest.approx(
        [one.then for one in found.groups], abs=1e-3
    )
    assert [one.doubtful for one in found.groups] == profile.uncertain.doubtful.tolist()
    assert (found.fits, found.codes, found.unknown) == (True, (), ())
    assert not any(one.changed for one in found.groups)
    rows = pa_csv.read_csv(path)
    assert rows.column_names == ["id", "cluster", "name", "probability", "doubtful"]
    own = pa_csv.read_csv(folder / "assignments.csv")
    assert rows["cluster"].equals(own["cluster"])
    doubtful = pc.equal(pc.cast(rows["doubtful"], pa.string()), "yes")
    assert pc.sum(doubtful).as_py() == sum(one.doubtful for one in found.groups)


def test_a_file_with_other_patients_has_drifted(table, folder):
    largest = pc.mode(table["true_cluster"])[0]["mode"]
    found = compare_new_records(
        folder, table.filter(pc.equal(table["true_cluster"], largest)), None, NewRecordsRequest()
    )
    assert any(one.changed for one in found.groups)
    assert found.codes
    moved = [abs(one.now - one.then) for one in found.codes]
    assert moved == sorted(moved, reverse=True)


def test_others_are_told_protected_counts(table, folder):
    full = compare_new_records(folder, table, None, NewRecordsRequest())
    told = compare_new_records(folder, table, None, NewRecordsRequest(min_cell=11, secret=SECRET))
    shown = load_profile(folder).protected(11)
    assert [one.records for one in told.groups] == [one.size for one in shown.clusters]
    assert [one.then for one in told.groups] == [one.share for one in shown.clusters]
    assert told.left_out % 10 == 0
    assert told.left_out != full.left_out
    for one, exact in zip(told.groups, full.groups, strict=True):
        assert one.doubtful is None or one.doubtful >= 11
        assert exact.doubtful >= 11 or not one.doubtful


def test_a_file_whose_codes_do_not_fit_is_refused_in_a_line(folder):
    codes = pa.array(["I50.9", "E11.9", "N18.3"] * 20)
    columns = {f"dx{i}": codes[i : i + 20] for i in (1, 2, 3)}
    strange = pa.table({"id": pa.array(range(20)), **columns})
    with pytest.raises(RecordsError, match="hold no usable code of icd9cm"):
        compare_new_records(folder, strange, None, NewRecordsRequest())


def test_too_few_records_are_refused(table, folder):
    with pytest.raises(RecordsError, match="too few records; the least that can be shown is 5,000"):
        compare_new_records(folder, table, None, NewRecordsRequest(fewest=5000))


def test_codes_that_the_model_does_not_know_are_told(table, folder):
    rng = np.random.default_rng(0)
    name = next(one for one in table.column_names if one.startswith("dx"))
    at = table.column_names.index(name)
    new = np.where(rng.random(len(table)) < 0.5, "E985", np.array(table[name].to_pylist(), object))
    found = compare_new_records(
        folder, table.set_column(at, name, pa.array(new, pa.string())), None, NewRecordsRequest()
    )
    assert "E985" in [one.code for one in found.unknown]
    assert found.strange > 0.01
