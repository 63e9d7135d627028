"""Damage: whatever happens to a file, it is read or refused in one line of our own.

COMORB_DAMAGES says how often each kind is damaged; 300 take about ten minutes.
"""

import datetime
import gzip
import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import duckdb
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
import xlwt

from comorb.errors import RecordsError, StorageError
from comorb.records.read import read_records
from tests.records.helpers import sets
from tests.records.sources.test_delta import Lake
from tests.records.sources.test_fhir_files import EVERY, bundle, lines
from tests.records.sources.test_workbooks import open_book

TIMES = int(os.environ.get("COMORB_DAMAGES", "30"))
ROWS = [(f"{i:04}", "428.0", "250.00" if i % 2 else None, 40 + i) for i in range(40)]
NAMES = ["visit_id", "dx1", "dx2", "age"]
FRAME = pd.DataFrame(ROWS, columns=NAMES).assign(day=datetime.date(2010, 2, 3))
TABLE = pa.table([list(column) for column in zip(*ROWS, strict=True)], NAMES)
TEXT = "".join(",".join(str(c or "") for c in row) + "\n" for row in [NAMES, *ROWS])


def arrow(path):
    with pa.ipc.new_file(path, TABLE.schema) as writer:
        writer.write_table(TABLE)


def arrow_stream(path):
    with pa.ipc.new_stream(path, TABLE.schema) as writer:
        writer.write_table(TABLE)


def sqlite(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE visits (visit_id TEXT, dx1 TEXT, dx2 TEXT, age INTEGER)")
    connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", ROWS)
    connection.commit()
    connection.close()


def duck(path):
    with duckdb.connect(str(path)) as connection:
        connection.register("rows", TABLE)
        connection.execute("CREATE TABLE visits AS FROM rows")


def xlsx(path):
    workbook = openpyxl.Workbook()
    for row in [NAMES, *ROWS]:
        workbook.active.append(row)
    workbook.active["D2"].number_format = "000"
    workbook.save(path)


def xls(path):
    workbook = xlwt.Workbook()
    sheet = workbook.add_sheet("visits")
    for i, row in enumerate([NAMES, *ROWS]):
        for j, cell in enumerate(row):
            sheet.write(i, j, cell)
    workbook.save(str(path))


def zipped(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("visits.csv", TEXT)


WRITERS = {
    "csv": lambda path: path.write_text(TEXT),
    "csv.gz": lambda path: path.write_bytes(gzip.compress(TEXT.encode(), mtime=0)),
    "utf-16": lambda path: path.write_bytes(TEXT.encode("utf-16")),
    "parquet": lambda path: pq.write_table(TABLE, path),
    "arrow": arrow,
    "arrow stream": arrow_stream,
    "sqlite": sqlite,
    "duckdb": duck,
    "xlsx": xlsx,
    "xls": xls,
    "ods": lambda path: open_book(path, [NAMES, *ROWS]),
    "zip": zipped,
    "sav": lambda path: pyreadstat.write_sav(FRAME, str(path)),
    "zsav": lambda path: pyreadstat.write_sav(FRAME, str(path), compress=True),
    "dta": lambda path: pyreadstat.write_dta(FRAME, str(path)),
    "xpt": lambda path: pyreadstat.write_xport(FRAME, str(path), file_format_version=8),
    "bundle": lambda path: path.write_text(json.dumps(bundle(EVERY), indent=1)),
    "ndjson": lambda path: path.write_text(lines(EVERY)),
}


# The kinds whose readers run apart, with what reads them there.
APART = {
    **dict.fromkeys(("xlsx", "xls", "ods"), ("workbooks", "")),
    **{kind: ("statistical", kind) for kind in ("sav", "dta")},
    "zsav": ("statistical", "sav"),
    "xpt": ("statistical", "xport"),
    **dict.fromkeys(("arrow", "arrow stream"), ("arrowfile", "")),
}
# The kinds with a checksum over what they hold: damage that isn't refused changed nothing.
CHECKED = ("csv.gz", "zip")
EACH = """
import sys
module, kind, *files = sys.argv[1:]
from comorb.records.sources.workbooks import list_sheets, read_sheet
from comorb.records.sources.arrow import check_arrow
from comorb.records.sources.statistics import read_statistics
for file in files:
    if module == "statistical":
        answer = read_statistics(file, kind, file + ".out")
    elif module == "arrowfile":
        answer = check_arrow(file)
    else:
        answer = list_sheets(file)
        if answer.get("sheets"):
            answer = read_sheet(file, answer["sheets"][0], file + ".out")
    assert "\\n" not in answer.get("refusal", "")
    print("answered", flush=True)
"""


def damaged(data, seed):
    """Cut a file, or flip, blank, repeat or insert some of its bytes."""
    picked = random.Random(seed)
    way, at = picked.randrange(5), picked.randrange(len(data))
    length = picked.choice([1, 1, 2, 8, 64])
    if way == 0:
        return data[:at]
    middle = {
        1: bytes(byte ^ (1 << picked.randrange(8)) for byte in data[at : at + length]),
        2: bytes(length),
        3: data[at : at + length] * 2,
        4: picked.randbytes(length) + data[at : at + length],
    }[way]
    return data[:at] + middle + data[at + length :]


def read_or_refused(path):
    try:
        cohort = read_records(path)
    except (RecordsError, StorageError) as error:
        assert "\n" not in str(error)  # noqa: PT017
        return False
    assert cohort.ledger.adds_up
    return True


def noted(path, words):
    return any(words in note for note in read_records(path).ledger.notes)


@pytest.mark.parametrize("kind", [kind for kind in WRITERS if kind not in APART])
def test_damaged_files_are_read_or_refused(kind, tmp_path):
    whole = tmp_path / "whole"
    WRITERS[kind](whole)
    assert read_or_refused(whole)
    data, expected = whole.read_bytes(), sets(read_records(whole))
    outcomes = set()
    for seed in range(TIMES):
        path = tmp_path / "file"
        path.write_bytes(damaged(data, seed))
        readable = read_or_refused(path)
        outcomes.add(readable)
        if kind in CHECKED and readable:
            assert sets(read_records(path)) == expected
    assert False in outcomes


@pytest.mark.parametrize("kind", APART)
def test_damaged_files_that_are_read_apart(kind, tmp_path):
    """Their readers answer, or end with their process: nothing else comes through."""
    whole = tmp_path / "whole"
    WRITERS[kind](whole)
    assert read_or_refused(whole)
    data = whole.read_bytes()
    for seed in range(TIMES):
        (tmp_path / f"{seed}").write_bytes(damaged(data, seed))
    left = [str(tmp_path / f"{seed}") for seed in range(TIMES)]
    crashes = []
    while left:
        done = subprocess.run(
            [sys.executable, "-c", EACH, *APART[kind], *left],
            capture_output=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
        )
        answered = done.stdout.count(b"\n")
        if done.returncode > 0:
            raise AssertionError(done.stderr.decode()[-2000:])
        if done.returncode < 0:
            crashes.append(left[answered])
            answered += 1
        left = left[answered:]
    for path in crashes[:3]:
        assert not read_or_refused(Path(path))


def test_damaged_logs_of_delta_are_read_or_refused(tmp_path):
    lake = Lake(tmp_path / "visits")
    lake.commit(lake.write("a.parquet", [("1", "428.0"), ("2", "V58.61")]))
    assert read_or_refused(lake.folder)
    log = lake.folder / "_delta_log"
    for seed in range(TIMES):
        commit = log / f"{seed % 2:020}.json"
        kept = commit.read_bytes()
        commit.write_bytes(damaged(kept, seed))
        read_or_refused(lake.folder)
        commit.write_bytes(kept)


def test_a_truncated_file_is_never_read_as_a_shorter_one(tmp_path):
    """A cut anywhere but at a line's end is seen in every kind that says how long it is."""
    for kind in sorted(WRITERS.keys() - {"csv", "utf-16", "ndjson"}):
        WRITERS[kind](tmp_path / f"whole {kind}")
        data = (tmp_path / f"whole {kind}").read_bytes()
        for share in (0.31, 0.61, 0.97):
            path = tmp_path / "file"
            path.write_bytes(data[: int(share * len(data))])
            assert not read_or_refused(path) or noted(path, "records may be missing"), (kind, share)


@pytest.mark.parametrize("rows", [60, 2000])
def test_a_cut_sqlite_file_is_refused(rows, tmp_path):
    """Cut at any byte, also where a page ends and inside the last page."""
    path = tmp_path / "visits.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA page_size = 512")
        connection.execute("CREATE TABLE visits (visit_id TEXT, dx1 TEXT)")
        pairs = ((f"{i:05}", "428.0") for i in range(rows))
        connection.executemany("INSERT INTO visits VALUES (?, ?)", pairs)
    connection.close()
    data = path.read_bytes()
    assert len(read_records(path)) == rows
    picked = random.Random(rows)
    pages = picked.sample(range(512, len(data), 512), min(15, len(data) // 512 - 1))
    cuts = [*pages, *picked.sample(range(16, len(data)), 15), len(data) - 1]
    for cut in cuts:
        path.write_bytes(data[:cut])
        with pytest.raises(RecordsError, match=r"^visits.db can't be read: it is damaged"):
            read_records(path)
