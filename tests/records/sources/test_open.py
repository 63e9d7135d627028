"""Bad input: each case has its own sentence, and none repeats what a row holds."""

import gzip
import io
import sqlite3
import sys
import traceback
import zipfile

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError
from comorb.records.layouts.layout import Layout
from comorb.records.read import read_records
from comorb.records.sources.open import open_source
from tests.records.helpers import sets

SECRET = "SECRET77"


def zipped():
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("a.csv", "id,dx1\n")
    return data.getvalue()


def rows(count):
    return b"".join(b"%d,4280,25000\n" % i for i in range(count))


HEAD = b"visit_id,dx1,dx2\n"
BAD = {
    "empty": (b"", r"file.csv is empty; export it again."),
    "blank": (b"\n\n\n", r"file.csv holds no text but blank lines"),
    "header alone": (HEAD, r"file.csv holds a header and no rows"),
    "binary": (bytes(range(256)) * 20, r"file.csv (is a binary file|has a NUL byte in row)"),
    "image": (
        b"\x89PNG\r\n\x1a\n" + bytes(range(1, 32)) * 90,
        r"file.csv is a binary",
    ),
    "an archive without rows": (zipped(), r"a.csv holds a header and no rows; export it again"),
    "truncated gzip": (
        gzip.compress(HEAD + rows(9999))[:-99],
        r"file.csv can't be read to its end: its gzip data is damaged or cut off",
    ),
    "row too long": (
        HEAD + b"1,4280,25000\nSECRET77,4280,25000,SECRET77\n",
        r"file.csv, row 3: 4 fields where the header has 3\. Quote values",
    ),
    "row too short": (
        HEAD + b"1,4280,25000\nSECRET77,4280\n3,4280,25000\n",
        r"file.csv, row 3: 2 fields where the header has 3\. Is the file cut off there\?",
    ),
    "truncated last row": (
        HEAD + rows(50_000) + b"SECRET77,42",
        r"file.csv, row 50,002: 2 fields where the header has 3\. Is the file cut off there\?",
    ),
    "quote never closed": (
        HEAD + b'1,"SECRET77,25000\n' + rows(5),
        r"file.csv, row 2: a quote \(\"\) that is never closed",
    ),
    "quote never closed in a long file": (
        HEAD + rows(1000) + b'1,"SECRET77,25000\n' + rows(300_000),
        r"file.csv, row 1,002: a quote \(\"\) that is never closed",
    ),
    "text after a quote": (
        HEAD + b'1,"4280"SECRET77,2\n',
        r"file.csv, row 2: a quote .* or t",
    ),
    "NUL": (HEAD + b"1,4280,25000\n2,42\x0080,\n", r"file.csv has a NUL byte in row 3; remove it"),
    "UTF-16 cut off": (
        "visit_id,dx1\n1,4280\n".encode("utf-16")[:-1],
        r"file.csv isn't whole text in utf-16: it is damaged or cut off; save it as UTF-8",
    ),
    "UTF-16 without a mark": (
        ("visit_id,dx1\n" + "1,4280\n" * 200).encode("utf-16-le"),
        r"file.csv looks like UTF-16 without a mark; save it as UTF-8",
    ),
    "mixed encodings": (
        HEAD + "1,4280,ñ\n".encode() + "2,4280,ñ\n".encode("latin-1"),
        r"file.csv mixes encodings: row 3 isn't UTF-8, other rows are\. Convert",
    ),
    "no header": (
        b"17,4280,25000\n18,4280,V5861\n",
        r"file.csv has no header: .* in column 1\.",
    ),
    "no header, codes": (b"ab,I10\ncd,J44\n", r"file.csv has no header: .* in column 2"),
    "no header, flags": (b"0,1,0\n1,1,0\n", r"file.csv has no header"),
    "duplicate headers": (
        b"visit_id,dx1,DX1\n1,4280,\n",
        r"file.csv has the column 'dx1' 2 times, .* rename all but one",
    ),
    "a title above the header": (
        b"Diagnoses\n1,4280\n2,4281\n",
        r"file.csv, row 2: 2 fields where the header has 1",
    ),
    "no codes": (
        b"visit_id,town\n1,Girona\n",
        r"file.csv: no column was recognised as holding diagnosis codes",
    ),
    "nothing usable": (
        b"visit_id,dx1,dx2\n1,,\n2,NA,?\n",
        r"file.csv: no column was recognised as holding|hold no usable code",
    ),
    "JSON array cut off": (
        b'[{"id": "SECRET77"}, {"id": "SECRET7',
        r"file.csv, row 3: not a JSON object; .* or export the file again if it is cut off",
    ),
    "JSON cut off": (
        b'{"id": "1", "dx1": "4280"}\n{"id": "SECRET77", "dx1": "42\n',
        r"file.csv.*: not a JSON object; write one whole JSON object in each line",
    ),
    "Parquet cut off": (
        b"PAR1" + b"SECRET77" * 40,
        r"file.csv is a damaged or cut-off Parq",
    ),
    "Arrow cut off": (
        b"ARROW1\0\0" + b"SECRET77" * 40,
        r"file.csv is a damaged or cut-off Arrow file",
    ),
    "SQLite damaged": (
        b"SQLite format 3\0" + b"SECRET77" * 200,
        r"file.csv can't be read: it is damaged",
    ),
    "DuckDB damaged": (b"SECRET77DUCK" + b"SECRET77" * 2000, r"file.csv can't be read|can't be re"),
    "duplicate ids": (
        b"visit_id,dx1,dx2\nSECRET77,4280,\n2,4280,\nSECRET77,25000,\n",
        r"the ids in column 'visit_id' must be unique, but rows 2 and 4 have the same id and uneq",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(case, tmp_path):
    data, message = BAD[case]
    path = tmp_path / "file.csv"
    path.write_bytes(data)
    with pytest.raises(RecordsError, match=message) as caught:
        read_records(path)
    told = "".join(traceback.format_exception(caught.value, chain=True))
    shown = told[told.index("RecordsError") :]
    assert SECRET not in shown
    assert caught.value.__cause__ is None
    assert SECRET not in str(caught.value.__context__)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(RecordsError, match=r"There is no file or folder .*nothing.csv; check"):
        read_records(tmp_path / "nothing.csv")
    with pytest.raises(RecordsError, match=r"holds no data: expected .csv, .tsv, .txt, .parquet"):
        read_records(tmp_path)
    with pytest.raises(RecordsError, match=r"No file matches \*.parquet; check the pattern"):
        read_records(tmp_path / "*.parquet")


def test_what_is_no_source():
    with pytest.raises(
        RecordsError, match="can't be read from a int: give a path, a postgresql://"
    ):
        read_records(7)


def test_wrong_names(tmp_path):
    table = pa.table({"id": ["1"], "dx1": ["I10"], "dx2": ["J44"]})
    with pytest.raises(RecordsError, match="the Table has no column 'dx_1'; the nearest are 'dx1'"):
        read_records(table, layout=Layout(codes=("dx_1",)))
    with pytest.raises(RecordsError, match="Expected a unit of 'visit' or 'patient'; got 'ward'"):
        read_records(table, unit="ward")
    with pytest.raises(RecordsError, match=r"Expected a layout out of wide, long, .*; got 'tall'"):
        read_records(table, layout="tall")  # type: ignore[arg-type]
    with pytest.raises(RecordsError, match="no column that was recognised as the patient's id"):
        read_records(table, unit="patient")
    with pytest.raises(RecordsError, match="a long layout needs; name it"):
        read_records(pa.table({"icd": ["I10"]}), layout=Layout("long", codes=("icd",)))
    with pytest.raises(RecordsError, match="doesn't have the columns of the layout 'omop'"):
        read_records(table, layout="omop")
    with pytest.raises(RecordsError, match="is no database, so it can't answer a query"):
        read_records(table, table="SELECT 1")


def test_a_column_twice_in_a_frame():
    frame = pd.DataFrame([["1", "I10", "J44"]], columns=["id", "dx1", "dx1"])
    with pytest.raises(RecordsError, match="the DataFrame has the column 'dx1' 2 times"):
        read_records(frame)


def test_a_flag_that_is_none():
    ids = [f"p{row}" for row in range(9)]
    table = pa.table({"id": ids, "428": [row % 2 for row in range(9)], "250": range(1, 10)})
    with pytest.raises(RecordsError, match=r"row 2: the column '250' .* other than 0 and 1"):
        read_records(table, layout=Layout("binary", codes=("428", "250")))


def test_an_empty_table():
    table = pa.table({"id": pa.array([], pa.string()), "icd": pa.array([], pa.string())})
    with pytest.raises(RecordsError, match="the Table holds no rows"):
        read_records(table)


def test_several_tables(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id,icd_code\n1,I10\n2,J44\n")
    with pytest.raises(RecordsError, match=r"holds 2 tables: a, b\. Say which one to read"):
        read_records(tmp_path)
    assert sets(read_records(tmp_path, table="a.csv")) == {"1": {"I10"}, "2": {"J44"}}
    assert sets(read_records(tmp_path, table="A")) == {"1": {"I10"}, "2": {"J44"}}
    with pytest.raises(RecordsError, match=r"has no table 'c.csv'; the nearest are a, b"):
        read_records(tmp_path, table="c.csv")


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_line_ends_byte_order_marks_and_no_break_spaces(ends, tmp_path):
    path = tmp_path / "file.csv"
    lines = ["\ufeffvisit_id\u00a0,dx1,dx2", "1,428.0\u00a0,\u00a0250.00", "2,V58.61,"]
    path.write_bytes((ends.join(lines) + ends).encode())
    assert sets(read_records(path)) == {"1": {"428", "250"}, "2": {"V58"}}


def test_ten_thousand_columns(tmp_path):
    path = tmp_path / "file.csv"
    names = [f"item {j}" for j in range(10_000)]
    flags = [",".join("1" if j % 5000 == i else "0" for j in range(10_000)) for i in range(3)]
    body = "".join(f"{i},{line}\n" for i, line in enumerate(flags))
    path.write_text("id," + ",".join(names) + "\n" + body)
    cohort = read_records(path)
    assert sets(cohort)["1"] == {"item 1", "item 5001"}


def test_unnamed_columns_and_blank_lines(tmp_path):
    path = tmp_path / "file.csv"
    path.write_text(",visit_id,dx1,dx2\n0,a,I10,J44\n\n1,b,I10,\n\n")
    assert sets(read_records(path)) == {"a": {"I10", "J44"}, "b": {"I10"}}


def test_the_engine_reads_nothing_else(tmp_path):
    (tmp_path / "other.csv").write_text("secret\n1\n")
    (tmp_path / "file.csv").write_text("id,icd_code\n1,I10\n")
    with open_source(tmp_path / "file.csv") as source:
        for statement in (
            f"SELECT * FROM read_csv('{tmp_path}/other.csv')",
            "INSTALL postgres",
            "SET enable_external_access = true",
            "SET lock_configuration = false",
            f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
        ):
            with pytest.raises(duckdb.Error):
                source.connection.execute(statement)


def test_a_view_that_leads_out_of_a_duckdb_file(tmp_path):
    (tmp_path / "other.csv").write_text("id,icd_code\n1,I10\n")
    with duckdb.connect(str(tmp_path / "file.db")) as connection:
        connection.execute(f"CREATE VIEW v AS FROM read_csv('{tmp_path}/other.csv')")
    with pytest.raises(RecordsError, match="refers to files or networks outside it"):
        read_records(tmp_path / "file.db")


def test_queries_on_files(tmp_path):
    path = tmp_path / "file.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE d AS SELECT '7' AS id, 'I10' AS icd_code")
        connection.execute("CREATE TABLE e AS SELECT 1 AS one")
    query = "SELECT id, icd_code FROM d"
    assert sets(read_records(path, table=query)) == {"7": {"I10"}}
    assert sets(read_records(path, table="d")) == {"7": {"I10"}}
    with pytest.raises(RecordsError, match="can't be run: Table with name nope does not exist"):
        read_records(path, table="SELECT * FROM nope")
    with pytest.raises(RecordsError, match=r"has no table 'DROP TABLE d'.* must begin with SELECT"):
        read_records(path, table="DROP TABLE d")


def test_queries_on_sqlite(tmp_path):
    path = tmp_path / "file.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE d (id TEXT, icd_code TEXT)")
    connection.execute("INSERT INTO d VALUES ('007', 'I10')")
    connection.commit()
    connection.close()
    assert sets(read_records(path, table="SELECT * FROM d")) == {"007": {"I10"}}
    with pytest.raises(RecordsError, match="can't be read: no such table: nope"):
        read_records(path, table="SELECT * FROM nope")
    with pytest.raises(RecordsError, match="the query writes, and records are only read"):
        read_records(path, table="WITH x AS (SELECT 1) DELETE FROM d")


def test_a_database_without_tables(tmp_path):
    sqlite3.connect(tmp_path / "file.sqlite").close()
    (tmp_path / "file.sqlite").write_bytes(b"")
    duckdb.connect(str(tmp_path / "file.db")).close()
    with pytest.raises(RecordsError, match=r"file.db holds no tables"):
        read_records(tmp_path / "file.db")


def test_parquet_files_that_differ(tmp_path):
    pq.write_table(pa.table({"id": ["1"], "icd_code": ["I10"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"key": ["1"]}), tmp_path / "b.parquet")
    with pytest.raises(RecordsError):
        read_records(tmp_path)


def test_a_driver_that_is_not_installed_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", None)
    message = "PostgreSQL is not installed; install it with: pip install 'comorb\\[postgres\\]'"
    with pytest.raises(RecordsError, match=message):
        read_records("postgresql://reader:pa55word@127.0.0.1:9/postgres")


def test_a_sqlite_file_that_is_cut_off(tmp_path):
    path = tmp_path / "file.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE d (id TEXT, icd_code TEXT)")
    connection.executemany("INSERT INTO d VALUES (?, 'I10')", [(str(i),) for i in range(2000)])
    connection.commit()
    connection.close()
    path.write_bytes(path.read_bytes()[:-8192])
    with pytest.raises(RecordsError, match="can't be read: it is damaged"):
        read_records(path)


def test_an_arrow_stream_without_its_end(tmp_path):
    path = tmp_path / "file.arrow"
    table = pa.table({"id": ["1", "2"], "icd_code": ["I10", "J44"]})
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)
    bare = "file.arrow may be damaged unseen: Arrow files have no checksums"
    assert read_records(path).ledger.notes == (bare,)
    path.write_bytes(path.read_bytes()[:-8])
    assert read_records(path).ledger.notes == (
        bare,
        "file.arrow has no mark at its end, so records may be missing",
    )
