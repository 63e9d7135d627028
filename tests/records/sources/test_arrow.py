"""Arrow in memory and in files; damaged files are refused or read, never the end of the caller."""

import os
import random
import resource
import subprocess
import sys
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError
from comorb.records.read import read_records
from comorb.records.sources.arrow import check_arrow, copy_reader
from comorb.records.sources.duck import OpenedSource, connect
from tests.records.helpers import sets

ROWS = 40
IDS = [f"{i:04}" for i in range(ROWS)]
CODES = ["428.0" if i % 3 else "250.00" for i in range(ROWS)]
PLAIN = {"visit_id": IDS, "dx1": CODES}
TABLES = {
    "text": pa.table(PLAIN),
    "lists": pa.table({"visit_id": IDS, "dx": [CODES[i : i + 2] for i in range(ROWS)]}),
    "long text": pa.table(
        {name: pa.array(each, pa.large_string()) for name, each in PLAIN.items()}
    ),
    "views": pa.table({name: pa.array(each, pa.string_view()) for name, each in PLAIN.items()}),
    "dictionaries": pa.table({"visit_id": IDS, "dx1": pa.array(CODES).dictionary_encode()}),
    "runs": pa.table(PLAIN | {"ward": pc.run_end_encode(pa.array(["a"] * 20 + ["b"] * 20))}),
    "others": pa.table(
        PLAIN
        | {
            "pair": pa.array([[1, 2]] * ROWS, pa.list_(pa.int64(), 2)),
            "place": [{"ward": "a", "bed": i} for i in range(ROWS)],
            "map": pa.array([[("a", 1)]] * ROWS, pa.map_(pa.string(), pa.int64())),
            "time": pa.array([1] * ROWS, pa.timestamp("us", "UTC")),
            "yes": pa.array([True, None] * 20),
            "three": pa.array([b"abc"] * ROWS, pa.binary(3)),
            "nothing": pa.nulls(ROWS),
        }
    ),
}
WRITERS = {"file": pa.ipc.new_file, "stream": pa.ipc.new_stream}
FILES = 300
# Reads what the check lets through; the check itself is done once, in this process.
EACH = """
import sys
from comorb.errors import RecordsError
from comorb.records.read import read_records
from comorb.records.sources import arrow
for file in sys.argv[1:]:
    answer = arrow.check_arrow(file)
    print("checked", flush=True)
    try:
        if "refusal" not in answer:
            arrow.run_isolated = lambda *_: answer
            read_records(file)
    except RecordsError as error:
        assert "\\n" not in str(error)
    print("answered", flush=True)
"""


def write(table, path, writer="file", compression=None):
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with WRITERS[writer](path, table.schema, options=options) as out:
        out.write_table(table, max_chunksize=25)
    return path


def damaged(data, picked):
    """Flip bits, or put random bytes or the extremes of an integer in their place."""
    data = bytearray(data)
    for _ in range(picked.choice([1, 1, 2])):
        at = picked.randrange(len(data) - 8)
        data[at : at + 4] = picked.choice(
            [
                bytes([data[at] ^ (1 << picked.randrange(8)), *data[at + 1 : at + 4]]),
                picked.randbytes(4),
                b"\xff\xff\xff\x7f",
                b"\xff\xff\xff\xff",
                bytes(4),
            ]
        )
    return bytes(data)


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on memory there")
def test_damaged_files_never_end_the_caller(tmp_path):
    picked = random.Random(16)
    left = []
    for number in range(FILES):
        whole = write(
            TABLES[picked.choice(list(TABLES))],
            tmp_path / "whole",
            picked.choice(list(WRITERS)),
            picked.choice([None, "lz4", "zstd"]),
        )
        left.append(tmp_path / f"{number}.arrow")
        left[-1].write_bytes(damaged(whole.read_bytes(), picked))
    while left:
        done = subprocess.run(
            [sys.executable, "-c", EACH, *left],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30)),
        )
        said = done.stdout.split()
        assert done.returncode <= 0, done.stderr[-2000:]
        assert said[-1:] != ["checked"], f"{left[said.count('answered')]} ended the reading"
        if done.returncode < 0:
            with pytest.raises(RecordsError, match="is a damaged or cut-off Arrow file"):
                read_records(left[said.count("answered")])
        left = left[said.count("answered") + (done.returncode < 0) :]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("kind", TABLES)
def test_whole_files_are_read(kind, writer, tmp_path):
    path = write(TABLES[kind], tmp_path / "visits.arrow", writer)
    assert check_arrow(str(path)) == {"closed": True}


def test_batches_are_joined(tmp_path):
    expected = {id_: {code[:3]} for id_, code in zip(IDS, CODES, strict=True)}
    for writer in WRITERS:
        path = write(TABLES["text"], tmp_path / "visits.arrow", writer)
        assert sets(read_records(path)) == expected


def test_an_offset_beyond_the_text_is_refused(tmp_path):
    texts = pa.array(CODES)
    offsets = bytearray(texts.buffers()[1])
    offsets[4:8] = (1 << 30).to_bytes(4, "little")
    buffers = [None, pa.py_buffer(bytes(offsets)), texts.buffers()[2]]
    broken = pa.Array.from_buffers(pa.string(), ROWS, buffers)
    batch = pa.record_batch([pa.array(IDS), broken], ["visit_id", "dx1"])
    with pa.ipc.new_file(tmp_path / "visits.arrow", batch.schema) as out:
        out.write_batch(batch)
    with pytest.raises(RecordsError, match=r"^visits.arrow is a damaged or cut-off Arrow file; co"):
        read_records(tmp_path / "visits.arrow")


def test_bytes_after_the_end_of_a_stream(tmp_path):
    path = Path(write(TABLES["text"], tmp_path / "visits.arrow", "stream"))
    path.write_bytes(path.read_bytes() + b"more")
    assert "refusal" in check_arrow(str(path))


def test_readers_are_copied_side_by_side(tmp_path):
    with connect(str(tmp_path), None) as connection:
        source = OpenedSource("a source", connection)
        tables = [
            copy_reader(source, name, pa.table({name: ["1", "2"]}).to_reader()) for name in "ab"
        ]
        rows = [source.rows(table, f"SELECT * FROM {table.sql}") for table in tables]
    assert rows == [[("1",), ("2",)], [("1",), ("2",)]]
    assert [list(table.columns) for table in tables] == [["a"], ["b"]]


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
