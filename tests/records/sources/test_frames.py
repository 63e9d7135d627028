import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError
from comorb.records.reading import read_records
from tests.records.helpers import sets

TABLE = pa.table({"visit_id": ["007", "007", "8"], "icd_code": ["428.0", "001.0", "V58.61"]})
SETS = {"007": {"428", "001"}, "8": {"V58"}}


def dataset(folder):
    pq.write_table(TABLE.slice(0, 1), folder / "a.parquet")
    pq.write_table(TABLE.slice(1), folder / "b.parquet")
    return ds.dataset(folder)


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: TABLE,
        lambda folder: TABLE.to_pandas(),
        lambda folder: pl.from_arrow(TABLE),
        lambda folder: pl.from_arrow(TABLE).lazy(),
        lambda folder: (
            pl.LazyFrame({"visit_id": ["007", "8"], "icd_code": ["x", "y"]})
            .select("visit_id")
            .join(pl.from_arrow(TABLE).lazy(), on="visit_id")
        ),
        dataset,
        lambda folder: TABLE.to_reader(max_chunksize=1),
        lambda folder: dataset(folder).scanner().to_reader(),
        lambda folder: TABLE.to_batches()[0],
    ],
)
@pytest.mark.parametrize("memory", [None, "1GB"])
def test_every_kind_of_frame(make, memory, tmp_path):
    assert sets(read_records(make(tmp_path), memory=memory)) == SETS


def test_a_lazy_frame_that_can_not_be_collected():
    frame = pl.LazyFrame({"id": ["SECRET77"], "dx1": ["I10"]}).with_columns(pl.col("id").cast(int))
    with pytest.raises(RecordsError, match=r"the LazyFrame can't be collected \(") as caught:
        read_records(frame)
    assert "SECRET77" not in str(caught.value)


def test_a_spark_frame_is_not_pulled():
    class DataFrame:
        __module__ = "pyspark.sql.classic.dataframe"

        def __arrow_c_stream__(self):
            raise AssertionError("pulled")

    message = r"Records of Spark aren't pulled .* comorb.read_spark\(frame, .*toPandas\(\)"
    with pytest.raises(RecordsError, match=message):
        read_records(DataFrame())


def test_a_dask_frame_is_not_pulled():
    class DataFrame:
        __module__ = "dask.dataframe.dask_expr._collection"

    with pytest.raises(RecordsError, match=r"Records of Dask aren't pulled .*comorb.read_dask\(fr"):
        read_records(DataFrame())


def test_what_is_no_table():
    with pytest.raises(RecordsError, match="Records can't be read from a Series: give a path"):
        read_records(pd.Series([1]))
    with pytest.raises(RecordsError, match="the DataFrame holds no columns"):
        read_records(pd.DataFrame())


def test_numbers_beyond_64_bits():
    frame = pd.DataFrame(
        {"visit_id": [2**70, 2**70 + 1], "dx1": ["I10", "J44"], "dx2": ["E11", ""]}
    )
    assert sets(read_records(frame)).keys() == {str(2**70), str(2**70 + 1)}


def test_codes_stored_as_numbers_are_told():
    table = pa.table({"visit_id": ["a", "b"], "dx1": [250.1, 428.0], "dx2": ["I10", "J44"]})
    notes = read_records(table, system="icd9cm").ledger.notes
    assert any("the codes of 'dx1' are stored as numbers" in note for note in notes)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[], []], pa.list_(pa.int64(), 0)),
        pa.array([[[]], [[]]], pa.list_(pa.list_(pa.int64(), 0))),
        pa.array([1, 2], pa.float32()).cast(pa.float16()),
        pa.array([1, 2], pa.decimal256(50, 2)),
    ],
)
def test_types_that_the_engine_does_not_take(column, tmp_path):
    table = pa.table({"visit_id": ["1", "2"], "dx1": ["428.0", "250.00"], "odd": column})
    with pa.ipc.new_file(tmp_path / "odd.arrow", table.schema) as out:
        out.write_table(table)
    for source in (table, table.to_reader(), tmp_path / "odd.arrow"):
        with pytest.raises(RecordsError, match=r"column 'odd' is of the type .* or leave it out"):
            read_records(source)


def test_a_type_that_arrow_does_not_have():
    frame = pl.DataFrame({"visit_id": ["1"], "dx1": ["I10"], "n": pl.Series([1], dtype=pl.Int128)})
    with pytest.raises(RecordsError, match=r"^the DataFrame has a column that Arrow has no type"):
        read_records(frame)


@pytest.mark.parametrize("name", ["text", "\udcff"])
def test_text_that_is_not_unicode(name):
    texts = pd.Series(["\udcff" if name == "text" else "a"], dtype=object)
    frame = pd.DataFrame({0: ["1"], 1: ["I10"], 2: texts})
    frame.columns = pd.Index(["visit_id", "dx1", name], dtype=object)
    with pytest.raises(RecordsError, match=r"^the DataFrame: column '.*' holds text that isn't Un"):
        read_records(frame)


def test_integers_beyond_64_bits_are_text():
    ids = [2**80 + i for i in range(3)]
    frame = pd.DataFrame({"visit_id": ids, "dx1": ["428.0"] * 3, "n": [2**70, -(2**70), 1]})
    cohort = read_records(frame)
    assert cohort.ids.to_pylist() == [str(id_) for id_ in ids]
    assert cohort.covariates["n"].to_pylist() == [str(2**70), str(-(2**70)), "1"]
