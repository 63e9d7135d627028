"""New records go the way of the training records, in memory, in parts and on an engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from comorb.engines import block_files
from comorb.engines.base import Engine
from comorb.errors import RecordsError, StorageError
from comorb.profiles.assignment import assign
from comorb.profiles.build import RecordAccumulator
from comorb.profiles.noise import record_keys
from comorb.records.codes.code_map import read_map
from comorb.records.cohort_file import CohortFile, save_cohort
from comorb.records.datasets import region
from comorb.records.layouts.layout import Layout
from comorb.records.read import read_records
from comorb.records.spec import CohortSpec
from comorb.runs.assign import Scorer, assign_records, assign_run
from comorb.runs.folder import RunFolder, load_profile
from comorb.runs.run import Request, fit_records
from comorb.storage import load_model
from tests.small_cohort import MODEL, SECRET, make_cohort

WAYS = [{}, {"memory": "1GB"}, {"engine": "threads"}]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.Table.from_batches(list(region(1500)))


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    rules = CohortSpec(having=("428",), drop_rare=5)
    fit_records(table, path, Request(3, rules, repeats=0))
    return path


@pytest.mark.parametrize("way", WAYS)
def test_the_training_records_go_where_they_were(table, folder, tmp_path, way):
    tally = assign_records(folder, table, tmp_path / "again.csv", **way)
    assert (tmp_path / "again.csv").read_bytes() == (folder / "assignments.csv").read_bytes()
    assert tally.unknown == ()
    assert tally.clusters == load_model(folder / "model.comorb").clusters
    rows = pa_csv.read_csv(tmp_path / "again.csv")
    assert tally.sizes.sum() == len(rows) == tally.ledger.left("records")
    assert tally.sure.sum() == pytest.approx(sum(rows["confidence"].to_pylist()), abs=1e-3)


@pytest.mark.parametrize("way", WAYS)
def test_the_model_s_rules_hold_unless_every_record_is_wanted(table, folder, tmp_path, way):
    chosen = assign_records(folder / "model.comorb", table, tmp_path / "chosen.parquet", **way)
    every = assign_records(folder, table, tmp_path / "every.parquet", every=True, **way)
    assert chosen.sizes.sum() < every.sizes.sum() == 1500
    assert len(pq.read_table(tmp_path / "every.parquet")) == 1500
    assert every.unknown != ()


def test_unknown_codes_are_counted_the_same_way_everywhere(table, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("comorb.records.stream.PART_ROWS", 400)
    tallies = [
        assign_records(folder, table, tmp_path / f"{i}.csv", every=True, **way)
        for i, way in enumerate(WAYS)
    ]
    assert tallies[0].unknown == tallies[1].unknown == tallies[2].unknown
    files = {(tmp_path / f"{i}.csv").read_bytes() for i in range(3)}
    assert len(files) == 1


def test_a_few_records_are_read_in_the_model_s_coding_system(folder, tmp_path):
    few = pa.table({"id": ["a"], "dx1": ["428"], "dx2": ["403"], "dx3": ["V45"]})
    assert assign_records(folder, few, tmp_path / "few.csv").sizes.sum() == 1


def test_another_layout_can_be_named(folder, tmp_path):
    long = pa.table({"who": ["a", "a", "a"], "what": ["428.0", "403.91", "585.9"]})
    reading = CohortSpec(layout=Layout(kind="long", record="who", codes=("what",)))
    assign_records(folder, long, tmp_path / "long.parquet", reading)
    assert pq.read_table(tmp_path / "long.parquet")["id"].to_pylist() == ["a"]


@pytest.mark.parametrize("way", WAYS)
def test_records_that_the_rules_leave_out_altogether_are_an_error(folder, tmp_path, way):
    other = pa.table({"id": ["a"], "dx1": ["250.00"], "dx2": ["401.9"], "dx3": ["585.9"]})
    with pytest.raises(RecordsError, match="No record has the code '428'"):
        assign_records(folder, other, tmp_path / "none.csv", **way)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_nothing(table, folder, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_batch", full)
    with pytest.raises(StorageError, match="can't be written: No space left on device"):
        assign_records(folder, table, tmp_path / "stream.parquet")
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_is_replaced_only_by_force(table, folder, tmp_path):
    (tmp_path / "old.csv").write_text("old")
    with pytest.raises(StorageError, match=r"old\.csv is there already"):
        assign_records(folder, table, tmp_path / "old.csv")
    assign_records(folder, table, tmp_path / "old.csv", force=True)


def test_a_model_has_its_map_whatever_became_of_the_file(table, tmp_path):
    file = tmp_path / "map.csv"
    groups = ["428,hf,Failure", "4*,heart", "250,dm", "5*,lung", "2*,blood", "585,kidney"]
    file.write_text("\n".join(line if line.count(",") > 1 else f"{line}," for line in groups))
    rules = CohortSpec(code_map=read_map(file), at_least=2)
    fit_records(table, tmp_path / "run", Request(2, rules, repeats=0))
    file.write_text("428,another\n")
    assign_records(tmp_path / "run", table, tmp_path / "again.csv")
    written = (tmp_path / "run" / "assignments.csv").read_bytes()
    assert (tmp_path / "again.csv").read_bytes() == written
    saved = CohortSpec.from_dict(load_model(tmp_path / "run" / "model.comorb").preparation)
    assert saved == rules


class Elsewhere(Engine):
    """An engine whose workers are this process."""

    map_items = map_partitions = head = None  # not used here

    def map_blocks(self, function, loaders):
        return (function(load()) for load in loaders)


@pytest.mark.parametrize("executor", [None, Elsewhere()])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("step", [1, 7, 250])
@pytest.mark.parametrize("secret", [SECRET, None])
def test_the_described_records_have_their_own_clusters(
    tmp_path, monkeypatch, executor, weighted, step, secret
):
    monkeypatch.setattr(block_files, "ROWS_A_GROUP", 110)
    save_cohort(make_cohort(weighted=weighted), tmp_path / "cohort.parquet")
    file = CohortFile.open(tmp_path / "cohort.parquet")
    assert file.starts.tolist() == [0, 110, 220, 330, 440, 550]
    scorer = Scorer(MODEL, 0.9, (1, 2))
    with RunFolder.write(tmp_path / "run", False) as folder:
        accumulator = RecordAccumulator(2, secret)
        found = assign_run(file, scorer, folder, accumulator, executor, step)
        assert [one.name for one in folder.assignments.parent.iterdir()] == ["assignments.csv"]
    sample = file.load(step)
    wanted, whole = (assign(MODEL, one, temperature=0.9) for one in (sample, file.load()))
    for name in ("labels", "top", "margin", "entropy", "second"):
        assert getattr(found, name).tolist() == getattr(wanted, name).tolist()
    np.testing.assert_allclose(found.soft * step, whole.soft, rtol=1e-6)
    np.testing.assert_allclose(found.table * step, whole.table, rtol=1e-6)
    if secret is None:
        assert found.keys is None
    else:
        assert found.keys.tolist() == record_keys(sample, SECRET).tolist()


@pytest.fixture(scope="module")
def region_rows() -> pa.Table:
    return pa.Table.from_batches(list(region(1200)))


@pytest.fixture(scope="module")
def region_run(region_rows, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    fit_records(read_records(region_rows), path, Request(3, repeats=0))
    return path


@pytest.fixture(scope="module")
def file(region_rows, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("cohorts") / "cohort.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_files, "ROWS_A_GROUP", 300)
        save_cohort(read_records(region_rows), path)
    return path


@pytest.mark.parametrize("way", [{}, {"memory": "1GB"}])
def test_a_folder_of_parts_holds_what_a_file_does(region_rows, region_run, tmp_path, way):
    assign_records(region_run, region_rows, tmp_path / "all.parquet", **way)
    tally = assign_records(region_run, region_rows, tmp_path / "parts", **way)
    assert pq.read_table(tmp_path / "parts") == pq.read_table(tmp_path / "all.parquet")
    assert tally.sizes.sum() == len(pq.read_table(tmp_path / "parts"))
    assert {one.name for one in tmp_path.iterdir()} == {"all.parquet", "parts"}


def test_parts_replace_parts_by_force_and_nothing_else(region_rows, region_run, tmp_path):
    assign_records(region_run, region_rows, tmp_path / "parts")
    (tmp_path / "parts/part-000009.parquet").write_bytes(b"of an earlier time")
    with pytest.raises(StorageError, match="is there already and not empty"):
        assign_records(region_run, region_rows, tmp_path / "parts")
    assign_records(region_run, region_rows, tmp_path / "parts", force=True)
    assert [one.name for one in (tmp_path / "parts").iterdir()] == ["part-000000.parquet"]
    (tmp_path / "parts/mine.txt").write_text("mine")
    with pytest.raises(StorageError, match="holds other files than parts"):
        assign_records(region_run, region_rows, tmp_path / "parts", force=True)
    assert (tmp_path / "parts/mine.txt").exists()


def test_the_workers_of_a_cluster_write_the_same(region_rows, region_run, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(block_files, "ROWS_A_GROUP", 300)
    assign_records(region_run, region_rows, tmp_path / "here.csv")
    assign_records(region_run, region_rows, tmp_path / "there.csv", engine="dask")
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    assign_records(region_run, region_rows, tmp_path / "parts", engine="dask")
    assert len(list((tmp_path / "parts").iterdir())) == 4
    told = pa_csv.read_csv(tmp_path / "here.csv")
    parts = pq.read_table(tmp_path / "parts")
    assert parts.select(["cluster", "confidence"]) == told.select(["cluster", "confidence"])
    assert {one.name for one in tmp_path.iterdir()} == {"here.csv", "there.csv", "parts"}


def test_a_run_has_its_clusters_written_by_the_workers(file, region_run, tmp_path):
    pytest.importorskip("distributed")
    fit_records(file, tmp_path / "run", Request(3, repeats=0), engine="dask")
    assert (tmp_path / "run/assignments.csv").read_bytes() == (
        region_run / "assignments.csv"
    ).read_bytes()
    assert sorted(one.name for one in (tmp_path / "run").iterdir()) == sorted(
        one.name for one in region_run.iterdir()
    )
    there, here = load_profile(tmp_path / "run"), load_profile(region_run)
    assert there.clusters == here.clusters
    assert there.burden.totals.tolist() == here.burden.totals.tolist()
