"""Text files: dialects, encodings, and text as spreadsheets and old systems write it."""

import csv
import io
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comorb.errors import RecordsError
from comorb.records.read import read_records
from comorb.records.sources.duck import quote
from comorb.records.sources.open import open_source
from comorb.records.sources.text_files import (
    WHOLE_LINE,
    Dialect,
    copy_as_utf8,
    find_dialect,
    scan_text,
)
from tests.records.helpers import sets


def write(folder, text, encoding="utf-8"):
    path = folder / "file.csv"
    path.write_bytes(text.encode(encoding))
    return path


def sniff(path):
    return find_dialect(path.name, scan_text(path))


@pytest.mark.parametrize("mark", list(",\t;|^~: "))
def test_every_delimiter(mark, tmp_path):
    path = write(tmp_path, f"key{mark}code\na{mark}x\nb{mark}y\n")
    assert sniff(path) == Dialect(mark, ("key", "code"))


def test_a_delimiter_inside_quotes_does_not_count(tmp_path):
    path = write(tmp_path, 'key;town\na;"Vic, Spain"\nb;"Olot, Spain"\n')
    assert sniff(path).delimiter == ";"


def test_a_delimited_column_does_not_decide(tmp_path):
    path = write(tmp_path, "key,codes\na,I10;E11\nb,J44;I10\n")
    assert sniff(path).delimiter == ","


def test_one_column(tmp_path):
    path = write(tmp_path, "codes\nI10;E11\nJ44\nI10;J44;E11\n")
    assert sniff(path) == Dialect(WHOLE_LINE, ("codes",))


def test_a_header_longer_than_the_sample(tmp_path):
    names = [f"a rather long name {j}" for j in range(5000)]
    path = write(tmp_path, ",".join(names) + "\n" + ",".join("x" for _ in names) + "\n")
    assert sniff(path).columns == tuple(names)


def test_names_that_begin_like_a_code_are_names(tmp_path):
    path = write(tmp_path, "KEY_NIS,I10_DX1,I10_DX2\n17,I5021,E119\n")
    assert sniff(path).columns == ("KEY_NIS", "I10_DX1", "I10_DX2")


def test_names_are_stripped_and_unnamed_columns_get_one(tmp_path):
    path = write(tmp_path, "\ufeff key\u00a0,,code\nx,y,z\n")
    assert sniff(path).columns == ("key", "column_2", "code")


def test_encodings(tmp_path):
    assert scan_text(write(tmp_path, "key,town\na,Logroño\n")).encoding == "utf-8"
    assert scan_text(write(tmp_path, "key,town\na,Logroño\n", "latin-1")).encoding == "latin-1"


cells = st.text(
    st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs", "Cc"]),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=20),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_what_is_written_is_what_is_read(tmp_path_factory, rows, delimiter, end):
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([("first", "second", "third"), *rows])
    path = write(tmp_path_factory.mktemp("dialect"), out.getvalue())
    with open_source(path) as source:
        table = source.table("file")
        assert list(table.columns) == ["first", "second", "third"]
        picks = ", ".join(quote(name) for name in table.columns)
        back = source.rows(table, f"SELECT {picks} FROM {table.sql}")
    assert [tuple(cell or "" for cell in row) for row in back] == rows


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_read_whole_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("bytes") / "file.csv"
    path.write_bytes(data)
    try:
        with open_source(path) as source:
            for name in source.openers:
                table = source.table(name)
                source.rows(table, f"SELECT * FROM {table.sql}")
    except RecordsError as error:
        assert "file.csv" in str(error)  # noqa: PT017


SETS = {"1": {"428", "250"}, "2": {"V58"}}
LINES = ["visit_id,dx1,dx2,town", "1,428.0,250.00,Logroño", "2,V58.61,,Vic"]


def written(folder, data):
    path = folder / "file.csv"
    path.write_bytes(data)
    return read_records(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends(encoding, ends, tmp_path):
    cohort = written(tmp_path, (ends.join(LINES) + ends).encode(encoding))
    assert sets(cohort) == SETS
    assert cohort.covariates["town"].to_pylist() == ["Logroño", "Vic"]
    doubtful = ["read as Windows-1252" in note for note in cohort.ledger.notes]
    assert any(doubtful) is (encoding == "latin-1")


@pytest.mark.parametrize("last", ["\r\n", "\n", "\n\n", "\r\n\r\n"])
def test_line_ends_of_old_macs_with_another_at_the_end(last, tmp_path):
    assert sets(written(tmp_path, ("\r".join(LINES) + last).encode())) == SETS


def test_line_ends_of_two_systems(tmp_path):
    data = "\r\n".join(LINES[:2]) + "\r\n" + LINES[2] + "\n"
    assert sets(written(tmp_path, data.encode())) == SETS


def test_windows_letters_with_a_note(tmp_path):
    cohort = written(tmp_path, "visit_id,dx1,pays\n1,I10,5 € “x”\n2,J44,œ\n".encode("cp1252"))
    assert cohort.covariates["pays"].to_pylist() == ["5 € “x”", "œ"]
    assert cohort.ledger.notes == (
        "file.csv isn't in UTF-8 and was read as Windows-1252: letters beyond A to Z are wrong if "
        "it was written in another encoding",
    )


@pytest.mark.parametrize("first", ["sep=;\n", '"sep=;"\r\n', "SEP=;\r\n", "\ufeffsep=; \r"])
def test_a_line_that_tells_the_delimiter(first, tmp_path):
    end = first[-2:] if first.endswith("\r\n") else first[-1]
    text = first + end.join(line.replace(",", ";") for line in LINES) + end
    assert sets(written(tmp_path, text.encode())) == SETS


def test_a_column_named_sep(tmp_path):
    cohort = written(tmp_path, b"id,sep=x,dx1,dx2\n1,a,428.0,250.00\n2,b,V58.61,\n")
    assert sets(cohort) == SETS


def test_cells_that_are_formulas_of_a_text(tmp_path):
    rows = b'="visit_id",dx1,"=""dx2"""\n="001",="428.0",="250.00"\n"=""002""",V58.61,\n'
    assert sets(written(tmp_path, rows)) == {"001": {"428", "250"}, "002": {"V58"}}


def test_a_copy_that_is_cut_off_names_the_file(tmp_path):
    with pytest.raises(RecordsError, match=r"^file.csv, row 3: 1 fields where the header has 2"):
        written(tmp_path, "id,dx1\n1,I10\n2\n".encode("utf-16"))


def looked(folder, data):
    path = folder / "file.csv"
    path.write_bytes(data)
    return path, scan_text(path)


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"id,town\n1,Vic\n", "utf-8"),
        ("id,town\n1,Logroño\n".encode(), "utf-8"),
        ("id,town\n1,Logroño\n".encode("latin-1"), "latin-1"),
        ("id,price\n1,5 €\n".encode("cp1252"), "windows-1252"),
        ("id,town\n1,Logroño\n".encode("utf-16"), "utf-16"),
    ],
)
def test_encodings_are_rewritten(data, encoding, tmp_path):
    assert looked(tmp_path, data)[1].encoding == encoding


def test_an_encoding_that_is_not_known(tmp_path):
    with pytest.raises(RecordsError, match=r"neither in UTF-8 nor in Windows-1252 \(row 2\)"):
        looked(tmp_path, "id,town\n1,München\n".encode("cp850"))


@pytest.mark.parametrize(
    ("data", "mixed"),
    [
        (b"a\nb\n", False),
        (b"a\r\nb\r\n", False),
        (b"a\rb\r", False),
        (b"a\rb\rc\r\n", True),
        (b"a\r\nb\n", True),
        (b"a\rb\n", True),
    ],
)
def test_line_ends(data, mixed, tmp_path):
    assert looked(tmp_path, data)[1].mixed is mixed


def test_a_copy_keeps_what_stands_in_quotes(tmp_path):
    path, writing = looked(tmp_path, b'a,b\r1,"x\r\ny"\r2,"p""q\rz"\r\n')
    copy_as_utf8(path, writing, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b'a,b\n1,"x\r\ny"\n2,"p""q\rz"\n'


def test_a_copy_does_not_depend_on_where_chunks_end(tmp_path, monkeypatch):
    picked = random.Random(3)
    text = "".join(picked.choice(['"', "a", "\r\n", "\r", "\n", "ñ"]) for _ in range(400))
    path, _ = looked(tmp_path, text.encode("utf-16"))
    copies = set()
    for size in (2, 3, 7, 1 << 20):
        monkeypatch.setattr("comorb.records.sources.text_files._READ_BYTES", size)
        copy_as_utf8(path, scan_text(path), tmp_path / "copy")
        copies.add((tmp_path / "copy").read_bytes())
    assert len(copies) == 1


def test_many_chunks_of_a_file_with_the_line_ends_of_old_macs(tmp_path, monkeypatch):
    monkeypatch.setattr("comorb.records.sources.text_files._READ_BYTES", 16)
    _, writing = looked(tmp_path, b"id,dx1\r" * 20)
    assert (writing.mixed, writing.encoding) == (False, "utf-8")
    _, writing = looked(tmp_path, b"id,dx1\r" * 20 + b"7,I10\r\n")
    assert writing.mixed


def test_plain_ndjson_with_lists(tmp_path):
    rows = [{"id": "007", "codes": ["428.0", "250.00"]}, {"id": "008", "codes": ["001.0"]}]
    path = tmp_path / "export.ndjson"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert sets(read_records(path)) == {"007": {"428", "250"}, "008": {"001"}}
