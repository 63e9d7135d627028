"""What a source may unpack to, and its rows and columns; each limit with its attack."""

import gzip
import json
import sqlite3
import zipfile

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError
from comorb.records.read import read_records
from comorb.records.sources import files
from comorb.records.sources.files import Limits
from comorb.records.sources.open import open_source

ROWS = 4000
HEAD = "id,dx1,dx2"
BODY = "".join(f"{i},4280,25000\n" for i in range(ROWS))


@pytest.fixture(autouse=True)
def _none_afterwards():
    yield
    files.set_limits(Limits())


def text(path):
    path.write_text(f"{HEAD}\n{BODY}")


def packed(path):
    path.write_bytes(gzip.compress(f"{HEAD}\n{BODY}".encode()))


def archive(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("visits.csv", f"{HEAD}\n{BODY}")


def table() -> pa.Table:
    return pa.table(
        {"id": list(map(str, range(ROWS))), "dx1": ["428"] * ROWS, "dx2": ["25"] * ROWS}
    )


def parquet(path):
    pq.write_table(table(), path)


def arrow(path):
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(str(path), table().schema, options=options) as file:
        file.write_table(table())


def objects(path):
    lines = (json.dumps({"id": str(i), "dx1": "4280", "dx2": "25000"}) for i in range(ROWS))
    path.write_bytes(gzip.compress("\n".join(lines).encode()))


def sqlite(path):
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE visits (id, dx1, dx2)")
        numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {ROWS})"
        file.execute(f"INSERT INTO visits {numbers} SELECT i, '4280', '25000' FROM n")
    file.close()


def duck(path):
    with duckdb.connect(str(path)) as file:
        file.execute(
            "CREATE VIEW visits AS SELECT i AS id, '4280' AS dx1, '25' AS dx2 "
            f"FROM range({ROWS}) t(i)"
        )


def workbook(path):
    import openpyxl

    pytest.importorskip("python_calamine")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("visits")
    sheet.append(HEAD.split(","))
    for i in range(ROWS):
        sheet.append([str(i), "4280", "25000"])
    book.save(path)


def stata(path):
    pytest.importorskip("pyreadstat").write_dta(table().to_pandas(), str(path))


WRITERS = {
    "visits.csv": text,
    "visits.csv.gz": packed,
    "visits.zip": archive,
    "visits.parquet": parquet,
    "visits.arrow": arrow,
    "visits.ndjson.gz": objects,
    "visits.sqlite": sqlite,
    "visits.duckdb": duck,
    "visits.xlsx": workbook,
    "visits.dta": stata,
}
STORED = {"visits.duckdb"}  # whose tables say nothing of their bytes: rows and columns bound them


@pytest.mark.parametrize("name", WRITERS)
def test_a_source_beyond_a_limit_is_refused_and_one_within_is_read(name, tmp_path):
    path = tmp_path / name
    WRITERS[name](path)
    attacks = [(Limits(rows=ROWS - 1), f"more than {ROWS - 1:,} rows, which is the most here")]
    attacks += [(Limits(columns=2), "3 columns, and 2 is the most here")]
    if name not in STORED:
        attacks += [(Limits(expanded=20_000), r"unpacks to more than 2e-05 GB, which is the most")]
    for some, said in attacks:
        files.set_limits(some)
        with pytest.raises(RecordsError, match=said) as refused:
            opened(path)
        assert "visits" in str(refused.value)
        assert "4280" not in str(refused.value)
    files.set_limits(Limits(expanded=3_000_000, rows=ROWS, columns=3))
    assert opened(path) == ROWS


def opened(path) -> int:
    with open_source(path) as source:
        name = next(iter(source.openers))
        table = reading_of(source, source.table(name))
        return int(source.rows(table, f"SELECT count(*) FROM {table.sql}")[0][0])


def reading_of(source, table):
    """Return a table as it is read: the fields of plain JSON are its columns."""
    from comorb.records.sources.text_files import flatten_json

    return flatten_json(source, table) if list(table.columns) == ["json"] else table


def test_a_view_without_end_is_refused(tmp_path):
    path = tmp_path / "endless.sqlite"
    with sqlite3.connect(path) as file:
        file.execute(
            "CREATE VIEW visits AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
            "SELECT i AS id, '4280' AS dx1, '25000' AS dx2 FROM n"
        )
    file.close()
    files.set_limits(Limits(rows=150_000))
    with pytest.raises(RecordsError, match="more than 150,000 rows"):
        opened(path)


def test_a_line_without_end_is_refused_without_any_limit(tmp_path, monkeypatch):
    from comorb.records.sources import text_files

    monkeypatch.setattr(text_files, "_MAX_LINE", 1 << 22)
    path = tmp_path / "long.csv.gz"
    path.write_bytes(gzip.compress(b"id,dx1\n1," + b"4" * (9 << 20)))
    with pytest.raises(RecordsError, match="a line of more than 4 MB, so it is no table"):
        opened(path)


def test_limits_are_those_of_the_process_and_none_at_first(tmp_path):
    assert files.current_limits() == Limits()
    path = tmp_path / "visits.csv"
    text(path)
    assert len(read_records(path)) == ROWS
