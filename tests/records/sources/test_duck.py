"""DuckDB behind a source: what it is asked, and how the answers of parts are merged."""

from functools import partial

import pytest

from comorb.errors import RecordsError, TooLargeError
from comorb.records.layouts.readers import choose_table
from comorb.records.sources import duck
from comorb.records.sources.duck import OpenedSource, SourceTable, connect, run_safely


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
    with pytest.raises(RecordsError, match="a source"):
        choose_table(source, None)
    source.default = ("A", "A was read")
    assert choose_table(source, None) is source.table("A")
    choose_table(source, None)
    assert source.notes == ["A was read"]


def test_columns_of_numbers(source):
    table = source.table("A")
    assert source.stored_as_numbers(table, ["dx1", "dx2", "dx3", "absent"]) == ["dx1", "dx3"]
    source.numbers.add("dx2")
    assert source.stored_as_numbers(table, ["dx2"]) == ["dx2"]


def test_no_folder_for_copies(source):
    with pytest.raises(RecordsError, match="a source can't be copied; there is no folder for it"):
        source.new_copy("text")


def test_a_view_has_the_names_that_it_gives(source):
    source.connection.execute('CREATE TABLE stored AS SELECT 70 AS "AGE"')
    view = source.view("stored", 'SELECT "AGE" AS "age" FROM stored')
    assert view.columns == {"age": "INTEGER"}


def test_memory_that_runs_out_while_rows_are_handed_over_is_told_as_such():
    def action():
        raise OSError("Out of Memory Error: ArrowBuffer: failed to allocate 2097152 bytes")

    with pytest.raises(TooLargeError, match=r"^a.csv needs more memory than it was given"):
        run_safely("a.csv", action)


@pytest.mark.parametrize(
    ("merge", "one", "two", "both"),
    [
        (duck.take_first, [1], [2], [1]),
        (duck.take_either, [], [(1,)], [(1,)]),
        (duck.all_true, [(True, None, True)], [(False, True, None)], [(False, True, True)]),
        (duck.take_largest, [(None, 3)], [(2, 1)], [(2, 3)]),
        (duck.add_histograms, [({"a": 1},)], [({"a": 2, "b": 1},)], [({"a": 3, "b": 1},)]),
        (duck.add_rows, [(2, 3)], [(4, 5)], [(6, 8)]),
        (duck.add_by_first, [("a", 1), (None, 2)], [("a", 3)], [("a", 4), (None, 2)]),
        (
            partial(duck.add_rows, keys=2),
            [("a", "x", 1)],
            [("a", "y", 3)],
            [("a", "x", 1), ("a", "y", 3)],
        ),
    ],
)
def test_answers_are_merged(merge, one, two, both):
    assert merge(one, two) == both
