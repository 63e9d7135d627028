"""Endings, temporary folders, and files that change between the first look and the last row."""

import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError
from comorb.records.read import inspect_records, read_records
from comorb.records.sources.duck import OpenedSource
from comorb.records.sources.files import (
    ending_of,
    read_signature,
    refuse_changes,
    table_name,
    temporary_folder,
)
from comorb.records.spec import CohortSpec
from comorb.records.stream import write_cohort

ROWS = {"visit_id": [f"{i:03}" for i in range(300)], "dx1": ["428.0"] * 300}
CHANGED = r"^visits.* changed while being read, so nothing of it was kept; read it again when"


def csv(path):
    lines = [",".join(row) for row in zip(*ROWS.values(), strict=True)]
    path.write_text("\n".join([",".join(ROWS), *lines, ""]))


def parquet(path):
    pq.write_table(pa.table(ROWS), path)


def sqlite(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE visits (visit_id TEXT, dx1 TEXT)")
        connection.executemany("INSERT INTO visits VALUES (?, ?)", zip(*ROWS.values(), strict=True))
    connection.close()


def duck(path):
    with duckdb.connect(str(path)) as connection:
        connection.register("rows", pa.table(ROWS))
        connection.execute("CREATE TABLE visits AS FROM rows")


WRITERS = {"csv": csv, "parquet": parquet, "sqlite": sqlite, "duckdb": duck}


def touched(path):
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))


def replaced(path):
    """Put another file with the same bytes and times in its place."""
    state, copy = path.stat(), path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    os.utime(copy, ns=(state.st_atime_ns, state.st_mtime_ns))
    copy.replace(path)


def extended(path):
    state = path.stat()
    with path.open("ab") as file:
        file.write(b"300,250.00\n")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


@pytest.fixture
def read_in_the_middle(monkeypatch):
    """Let something happen to a file when the so many-th query on it is asked."""

    def arrange(change, path, number):
        asked = []
        for name in ("rows", "batches"):
            usual = getattr(OpenedSource, name)

            def ask(self, table, *arguments, usual=usual):
                asked.append(table.label.startswith(path.name))
                if asked[-1] and sum(asked) == number:
                    change(path)
                return usual(self, table, *arguments)

            monkeypatch.setattr(OpenedSource, name, ask)

    return arrange


@pytest.mark.parametrize("change", [touched, replaced])
@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("number", [1, 2])
def test_a_file_that_changes(kind, change, number, tmp_path, read_in_the_middle):
    path = tmp_path / f"visits.{kind}"
    WRITERS[kind](path)
    assert len(read_records(path)) == 300
    read_in_the_middle(change, path, number)
    with pytest.raises(RecordsError, match=CHANGED):
        read_records(path)
    assert len(inspect_records(path).ledger.lines)


def test_a_file_that_grows(tmp_path, read_in_the_middle):
    path = tmp_path / "visits.csv"
    csv(path)
    read_in_the_middle(extended, path, 1)
    with pytest.raises(RecordsError, match=CHANGED):
        read_records(path)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_in_parts_nothing_is_written(number, tmp_path, read_in_the_middle):
    path = tmp_path / "visits.csv"
    csv(path)
    read_in_the_middle(touched, path, number)
    with pytest.raises(RecordsError, match=CHANGED):
        write_cohort(path, tmp_path / "cohort.parquet", CohortSpec(at_least=1), "2GB")
    assert [file.name for file in tmp_path.iterdir()] == ["visits.csv"]


def test_what_is_read_beside_the_records(tmp_path, read_in_the_middle):
    csv(tmp_path / "visits.csv")
    beside = tmp_path / "drugs.csv"
    beside.write_text("visit_id,atc\n001,A10BA02\n002,C03CA01\n")
    read_in_the_middle(touched, beside, 2)
    with pytest.raises(RecordsError, match=r"^drugs.csv changed while being read"):
        read_records({"diagnosis": tmp_path / "visits.csv", "drug": beside})


def test_a_folder_counts_its_files(tmp_path):
    for name in "abc":
        (tmp_path / name).write_text(name)
    files = [tmp_path / name for name in "abc"]
    changes = refuse_changes("x", files)
    changes.__enter__()
    files[0].unlink()
    touched(files[1])
    with pytest.raises(RecordsError, match=r"^2 of the 3 files of x changed while being read"):
        changes.__exit__(None, None, None)
    assert read_signature(files[0]) is None


def test_another_error_stays(tmp_path, read_in_the_middle):
    path = tmp_path / "visits.csv"
    path.write_text("visit_id,name\n1,a\n2,b\n")
    read_in_the_middle(touched, path, 1)
    with pytest.raises(RecordsError, match=r"no column"):
        read_records(path)


@pytest.mark.parametrize(
    ("file", "name", "ending"),
    [
        ("VISITS.csv.gz", "VISITS", ".csv.gz"),
        ("a.b.parquet", "a.b", ".parquet"),
        ("visits", "visits", ""),
        (".csv", ".csv", ".csv"),
        ("x.SAV", "x", ".sav"),
        ("notes.docx", "notes.docx", ""),
        ("visits.gz", "visits.gz", ""),
    ],
)
def test_a_name_is_that_of_a_table_and_an_ending(file, name, ending):
    assert (table_name(file), ending_of(file)) == (name, ending)


pytest.importorskip("fcntl", reason="there are no locks of files here")
KILLED = """
import os, signal
from pathlib import Path
from comorb.records.sources.files import temporary_folder
with temporary_folder() as folder:
    Path(folder, "copy").write_text("an id")
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_folder_is_gone_in_the_end(place):
    with temporary_folder() as folder:
        Path(folder, "copy").write_text("an id")
        assert Path(folder).parent == place
    assert list(place.iterdir()) == []


def test_what_a_kill_left_is_removed_by_the_next_one(place):
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True)
    left = Path(done.stdout.strip())
    assert (left / "copy").exists()
    with temporary_folder() as folder:
        assert set(place.iterdir()) == {Path(folder), Path(f"{folder}.lock")}


def test_what_is_at_work_or_of_others_stays(place):
    (place / "comorb-of-another").mkdir()
    with temporary_folder() as first:
        Path(first, "copy").write_text("an id")
        with temporary_folder():
            assert Path(first, "copy").exists()
    assert [path.name for path in place.iterdir()] == ["comorb-of-another"]
