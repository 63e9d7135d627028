import pyarrow as pa

from comorb.records.sources.duck import OpenedSource, connect
from comorb.records.sources.incoming import copy_reader


def test_readers_are_copied_side_by_side(tmp_path):
    with connect(str(tmp_path), None) as connection:
        source = OpenedSource("a source", connection)
        tables = [
            copy_reader(source, name, pa.table({name: ["1", "2"]}).to_reader()) for name in "ab"
        ]
        rows = [source.rows(table, f"SELECT * FROM {table.sql}") for table in tables]
    assert rows == [[("1",), ("2",)], [("1",), ("2",)]]
    assert [list(table.columns) for table in tables] == [["a"], ["b"]]
