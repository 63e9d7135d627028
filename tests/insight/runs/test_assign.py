"""New records go the way of the training records, in memory, in parts and on an engine."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError, StorageError
from comorb.insight.runs.assign import assign_records
from comorb.insight.runs.run import Request, fit_records
from comorb.records.codes.own_map import read_map
from comorb.records.datasets import region
from comorb.records.layouts.description import Layout
from comorb.records.preparation import Preparation
from comorb.storage import load_model

WAYS = [{}, {"memory": "1GB"}, {"engine": "threads"}]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.Table.from_batches(list(region(1500)))


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    rules = Preparation(having=("428",), drop_rare=5)
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
    monkeypatch.setattr("comorb.records.parts.PART_ROWS", 400)
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
    reading = Preparation(layout=Layout(kind="long", record="who", codes=("what",)))
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
    rules = Preparation(code_map=read_map(file), at_least=2)
    fit_records(table, tmp_path / "run", Request(2, rules, repeats=0))
    file.write_text("428,another\n")
    assign_records(tmp_path / "run", table, tmp_path / "again.csv")
    written = (tmp_path / "run" / "assignments.csv").read_bytes()
    assert (tmp_path / "again.csv").read_bytes() == written
    saved = Preparation.from_dict(load_model(tmp_path / "run" / "model.comorb").preparation)
    assert saved == rules
