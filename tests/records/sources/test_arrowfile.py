"""Damaged Arrow files of many types: refused by the check, or read; never the end of the caller."""

import os
import random
import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from comorb.errors import RecordsError
from comorb.records.reading import read_records
from comorb.records.sources.arrowfile import check_arrow
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
from comorb.records.reading import read_records
from comorb.records.sources import arrowfile
for file in sys.argv[1:]:
    answer = arrowfile.check_arrow(file)
    print("checked", flush=True)
    try:
        if "refusal" not in answer:
            arrowfile.run_apart = lambda *_: answer
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
