"""Export: rows to a file, whole, and never over another by accident."""

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from comorb.errors import StorageError
from comorb.records.export import export

BATCHES = [
    pa.record_batch({"id": ["a", "b,c"], "cluster": [1, 2]}),
    pa.record_batch({"id": ["d"], "cluster": [3]}),
]


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "ROWS.CSV"])
def test_rows_come_back(name, tmp_path):
    export(iter(BATCHES), tmp_path / name)
    read = pyarrow.parquet.read_table if name.endswith("parquet") else pyarrow.csv.read_csv
    assert read(tmp_path / name).to_pydict() == {"id": ["a", "b,c", "d"], "cluster": [1, 2, 3]}


def test_a_file_is_replaced_only_by_force(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("old")
    with pytest.raises(
        StorageError,
        match=r"rows\.csv is there already; name another file, or replace it by force\.",
    ):
        export(BATCHES, path)
    assert path.read_text() == "old"
    export(BATCHES, path, force=True)
    assert path.read_text().startswith('"id","cluster"')


def test_an_interrupted_export_leaves_the_old_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("old")

    def interrupted():
        yield BATCHES[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(interrupted(), path, force=True)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_the_ending_must_be_known(tmp_path):
    with pytest.raises(StorageError, match=r"ends with \.csv or \.parquet; got rows\.xlsx"):
        export(BATCHES, tmp_path / "rows.xlsx")
