import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comorb.errors import RecordsError
from comorb.records.sources.dialect import WHOLE_LINE, Dialect, sniff
from comorb.records.sources.duck import quoted
from comorb.records.sources.opening import open_source


def write(folder, text, encoding="utf-8"):
    path = folder / "file.csv"
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("mark", list(",\t;|^~: "))
def test_every_delimiter(mark, tmp_path):
    path = write(tmp_path, f"key{mark}code\na{mark}x\nb{mark}y\n")
    assert sniff(path) == Dialect(mark, "utf-8", "none", ("key", "code"))


def test_a_delimiter_inside_quotes_does_not_count(tmp_path):
    path = write(tmp_path, 'key;town\na;"Vic, Spain"\nb;"Olot, Spain"\n')
    assert sniff(path).delimiter == ";"


def test_a_delimited_column_does_not_decide(tmp_path):
    path = write(tmp_path, "key,codes\na,I10;E11\nb,J44;I10\n")
    assert sniff(path).delimiter == ","


def test_one_column(tmp_path):
    path = write(tmp_path, "codes\nI10;E11\nJ44\nI10;J44;E11\n")
    assert sniff(path) == Dialect(WHOLE_LINE, "utf-8", "none", ("codes",))


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
    assert sniff(write(tmp_path, "key,town\na,Logroño\n")).encoding == "utf-8"
    assert sniff(write(tmp_path, "key,town\na,Logroño\n", "latin-1")).encoding == "latin-1"


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
        picks = ", ".join(quoted(name) for name in table.columns)
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
