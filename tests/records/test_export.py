"""Export: rows to a file, whole, and never over another by accident."""

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from comorb.errors import StorageError
from comorb.records.export import export, without_apostrophes

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


RISKY = ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0", "'=1", "''-A"]
PLAIN = ["a", "-5", "+34,5", "1-2", "'a", "", "a=b", "O'Neil", "a\n=1", None]


def test_no_text_of_a_csv_file_is_a_formula_and_each_comes_back(tmp_path):
    texts = [*RISKY, *PLAIN]
    batch = pa.record_batch({"id": pa.array(texts), "cluster": list(range(len(texts)))})
    export([batch], tmp_path / "rows.csv")
    export([batch], tmp_path / "rows.parquet")
    parsing = pyarrow.csv.ParseOptions(newlines_in_values=True)
    as_text = pyarrow.csv.ConvertOptions(column_types={"id": pa.string()}, strings_can_be_null=True)
    as_text.quoted_strings_can_be_null = False
    written = pyarrow.csv.read_csv(
        tmp_path / "rows.csv", parse_options=parsing, convert_options=as_text
    )
    assert written["id"].to_pylist() == [*(f"'{text}" for text in RISKY), *PLAIN]
    assert without_apostrophes(written["id"]).to_pylist() == texts
    assert pyarrow.parquet.read_table(tmp_path / "rows.parquet")["id"].to_pylist() == texts
