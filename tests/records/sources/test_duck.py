import pytest

from comorb.errors import RecordsError, TooLargeError
from comorb.records.sources.duck import OpenedSource, SourceTable, connect, guarded


@pytest.fixture
def source(tmp_path):
    with connect(str(tmp_path), None) as connection:
        table = SourceTable("t", "t", {"dx1": "DOUBLE", "dx2": "VARCHAR", "dx3": "BIGINT"})
        yield OpenedSource("a source", connection, {"Visits": lambda: table, "A": lambda: table})


def test_a_table_by_any_case_and_ending(source):
    assert source.name_of("visits.csv") == "Visits"
    assert source.name_of("VISITS") == "Visits"
    assert source.name_of("visit") is None
    source.openers["VISITS"] = source.openers["A"]
    assert source.name_of("visits") is None
    assert source.name_of("VISITS") == "VISITS"


def test_the_usual_table_and_its_note(source):
    assert source.usual_table() is None
    source.usual = ("A", "A was read")
    assert source.usual_table() is source.table("A")
    source.usual_table()
    assert source.notes == ["A was read"]


def test_columns_of_numbers(source):
    table = source.table("A")
    assert source.stored_as_numbers(table, ["dx1", "dx2", "dx3", "absent"]) == ["dx1", "dx3"]
    source.numbers.add("dx2")
    assert source.stored_as_numbers(table, ["dx2"]) == ["dx2"]


def test_no_folder_for_copies(source):
    with pytest.raises(RecordsError, match="a source can't be copied; there is no folder for it"):
        source.copies()


def test_a_view_has_the_names_that_it_gives(source):
    source.connection.execute('CREATE TABLE stored AS SELECT 70 AS "AGE"')
    view = source.view("stored", 'SELECT "AGE" AS "age" FROM stored')
    assert view.columns == {"age": "INTEGER"}


def test_memory_that_runs_out_while_rows_are_handed_over_is_told_as_such():
    def action():
        raise OSError("Out of Memory Error: ArrowBuffer: failed to allocate 2097152 bytes")

    with pytest.raises(TooLargeError, match=r"^a.csv needs more memory than it was given"):
        guarded("a.csv", action)
