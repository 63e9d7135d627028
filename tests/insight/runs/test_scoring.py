"""Scoring: to a file or a folder of parts, here or by the workers of a cluster; assigning too."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from comorb.engines import blockfile
from comorb.errors import StorageError
from comorb.insight.runs.assign import assign_records
from comorb.insight.runs.folder import load_profile
from comorb.insight.runs.run import Request, fit_records
from comorb.records.archive import save_cohort
from comorb.records.datasets import region
from comorb.records.reading import read_records


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.Table.from_batches(list(region(1200)))


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    fit_records(read_records(table), path, Request(3, repeats=0))
    return path


@pytest.fixture(scope="module")
def file(table, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("cohorts") / "cohort.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blockfile, "ROWS_A_GROUP", 300)
        save_cohort(read_records(table), path)
    return path


@pytest.mark.parametrize("way", [{}, {"memory": "1GB"}])
def test_a_folder_of_parts_holds_what_a_file_does(table, folder, tmp_path, way):
    assign_records(folder, table, tmp_path / "all.parquet", **way)
    tally = assign_records(folder, table, tmp_path / "parts", **way)
    assert pq.read_table(tmp_path / "parts") == pq.read_table(tmp_path / "all.parquet")
    assert tally.sizes.sum() == len(pq.read_table(tmp_path / "parts"))
    assert {one.name for one in tmp_path.iterdir()} == {"all.parquet", "parts"}


def test_parts_replace_parts_by_force_and_nothing_else(table, folder, tmp_path):
    assign_records(folder, table, tmp_path / "parts")
    (tmp_path / "parts/part-000009.parquet").write_bytes(b"of an earlier time")
    with pytest.raises(StorageError, match="is there already and not empty"):
        assign_records(folder, table, tmp_path / "parts")
    assign_records(folder, table, tmp_path / "parts", force=True)
    assert [one.name for one in (tmp_path / "parts").iterdir()] == ["part-000000.parquet"]
    (tmp_path / "parts/mine.txt").write_text("mine")
    with pytest.raises(StorageError, match="holds other files than parts"):
        assign_records(folder, table, tmp_path / "parts", force=True)
    assert (tmp_path / "parts/mine.txt").exists()


def test_the_workers_of_a_cluster_write_the_same(table, folder, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(blockfile, "ROWS_A_GROUP", 300)
    assign_records(folder, table, tmp_path / "here.csv")
    assign_records(folder, table, tmp_path / "there.csv", engine="dask")
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    assign_records(folder, table, tmp_path / "parts", engine="dask")
    assert len(list((tmp_path / "parts").iterdir())) == 4
    told = pa_csv.read_csv(tmp_path / "here.csv")
    parts = pq.read_table(tmp_path / "parts")
    assert parts.select(["cluster", "confidence"]) == told.select(["cluster", "confidence"])
    assert {one.name for one in tmp_path.iterdir()} == {"here.csv", "there.csv", "parts"}


def test_a_run_has_its_clusters_written_by_the_workers(file, folder, tmp_path):
    pytest.importorskip("distributed")
    fit_records(file, tmp_path / "run", Request(3, repeats=0), engine="dask")
    assert (tmp_path / "run/assignments.csv").read_bytes() == (
        folder / "assignments.csv"
    ).read_bytes()
    assert sorted(one.name for one in (tmp_path / "run").iterdir()) == sorted(
        one.name for one in folder.iterdir()
    )
    there, here = load_profile(tmp_path / "run"), load_profile(folder)
    assert there.clusters == here.clusters
    assert there.burden.totals.tolist() == here.burden.totals.tolist()
