"""Runs that read in parts end where runs in memory do, also after an interruption."""

import re
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.engines import FileJournal
from comorb.errors import RecordsError, StorageError
from comorb.insight.runs import large
from comorb.insight.runs.assign import assign_records, assign_stream
from comorb.insight.runs.folder import load_profile
from comorb.insight.runs.large import run_large
from comorb.insight.runs.run import run
from comorb.records.archive import save_cohort
from comorb.records.datasets import region
from comorb.records.preparation import Preparation
from comorb.storage import load_model

RULES = Preparation(having=("585",), drop_codes=("428",))


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    path = tmp_path_factory.mktemp("visits") / "visits.parquet"
    pq.write_table(pa.Table.from_batches(region(40_000)), path)
    return path


@pytest.fixture(scope="module")
def inside(visits, tmp_path_factory):
    """Save a run in memory."""
    path = tmp_path_factory.mktemp("runs") / "inside"
    run(visits, 4, RULES, repeats=0).save(path)
    return path


def agree(one, two):
    a, b = load_model(one / "model.comorb"), load_model(two / "model.comorb")
    assert a.mixture.key == b.mixture.key
    assert (a.codes, a.left_out, a.clusters) == (b.codes, b.left_out, b.clusters)
    assert a.data_hash == b.data_hash
    assert (one / "assignments.csv").read_bytes() == (two / "assignments.csv").read_bytes()


def test_a_large_run_ends_where_a_run_in_memory_does(visits, inside, tmp_path):
    told = []
    about = run_large(visits, tmp_path / "run", 4, RULES, repeats=0, memory="1GB", tell=told.append)
    agree(tmp_path / "run", inside)
    mine, theirs = about, load_profile(inside)
    assert replace(mine, source=theirs.source).to_json() == theirs.to_json()
    assert [file.name for file in tmp_path.iterdir()] == ["run"]
    assert "Pass 3 over the records" in told
    assert any(re.fullmatch(r"Pass \d+ over the records; about \d+ s left", line) for line in told)
    facts = load_model(tmp_path / "run" / "model.comorb").run
    assert facts["passes_over_the_file"] > facts["passes"]
    assert facts["bytes_a_pass"] > 10_000


def test_an_interrupted_run_goes_on(visits, inside, tmp_path, monkeypatch):
    keep = FileJournal.keep

    def interrupted(self, key, sums):
        keep(self, key, sums)
        if len(self._known) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FileJournal, "keep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_large(visits, tmp_path / "run", 4, RULES, repeats=0)
    assert [file.name for file in tmp_path.iterdir()] == [".run.unfinished"]
    monkeypatch.setattr(large, "write_cohort", None)
    run_large(visits, tmp_path / "run", 4, RULES, repeats=0)
    agree(tmp_path / "run", inside)


def test_other_rules_begin_anew(visits, tmp_path):
    with pytest.raises(ValueError, match="expected the number of clusters, n_components"):
        run_large(visits, tmp_path / "run", 9999, RULES, repeats=0)
    about = run_large(visits, tmp_path / "run", 2, Preparation(having=("250",)), repeats=0)
    assert about.source.lines[-1].unit == "features"
    assert "having 250" in [line.rule for line in about.source.lines]


def test_what_can_not_be_read_leaves_nothing(tmp_path):
    with pytest.raises(RecordsError, match="There is no file or folder"):
        run_large(tmp_path / "absent.csv", tmp_path / "run", 2)
    assert not list(tmp_path.iterdir())


def test_a_cohort_file_is_taken_as_it_stands(visits, inside, tmp_path):
    save_cohort(RULES.cohort(visits), tmp_path / "cohort.parquet")
    run_large(tmp_path / "cohort.parquet", tmp_path / "run", 4, repeats=0)
    ours, theirs = (tmp_path / "run" / "assignments.csv"), (inside / "assignments.csv")
    assert ours.read_bytes() == theirs.read_bytes()


def test_many_records_are_described_by_some(visits, tmp_path, monkeypatch):
    monkeypatch.setattr(large, "DESCRIBED", 3_000)
    about = run_large(visits, tmp_path / "run", 3, RULES, repeats=0)
    lines = [line for line in about.source.lines if line.unit == "records"]
    assert lines[-1].rule == f"one in {-(-lines[-1].before // 3000)}"
    assert about.source.records == lines[-1].after <= 3_000
    rows = (tmp_path / "run" / "assignments.csv").read_text().splitlines()
    assert len(rows) - 1 == lines[-1].before


def test_a_full_disk_leaves_no_assignments(visits, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")
        yield

    monkeypatch.setattr(large, "_assignments", full)
    with pytest.raises(StorageError, match="No space left on device"):
        run_large(visits, tmp_path / "run", 3, RULES, repeats=0)
    assert [file.name for file in tmp_path.iterdir()] == [".run.unfinished"]


@pytest.mark.parametrize("every", [False, True])
def test_records_are_assigned_as_they_stream(visits, inside, tmp_path, every, monkeypatch):
    monkeypatch.setattr("comorb.records.parts.PART_ROWS", 10_000)
    told = []
    found = assign_records(inside, visits, every=every)
    found.save(tmp_path / "memory.parquet")
    tally = assign_stream(
        inside, visits, tmp_path / "stream.parquet", every=every, memory="1GB", tell=told.append
    )
    one, two = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("memory", "stream"))
    assert one.equals(two)
    assert tally.sizes.tolist() == found.tally.sizes.tolist()
    assert tally.sure == pytest.approx(found.tally.sure)
    assert tally.unknown == found.unknown
    assert tally.ledger.chain("records") == found.ledger.chain("records")
    assert len(told) == 5


def test_a_full_disk_leaves_nothing_of_a_stream(visits, inside, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_batch", full)
    with pytest.raises(StorageError, match="can't be written: No space left on device"):
        assign_stream(inside, visits, tmp_path / "stream.parquet")
    assert not list(tmp_path.iterdir())


def test_a_stream_of_which_no_record_is_left_is_refused(inside, tmp_path):
    few = pa.table({"id": ["a", "b"], "dx1": ["25000", "5859"], "dx2": ["2859", "2859"]})
    with pytest.raises(RecordsError, match="No record is left after the rules of the model"):
        assign_stream(inside, few, tmp_path / "stream.csv")
    assert not list(tmp_path.iterdir())
