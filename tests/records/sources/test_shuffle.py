"""Rows of chunks are brought together by their keys, and stay in order without any."""

import pyarrow as pa
import pytest

from comorb.errors import EngineError, StorageError
from comorb.records.sources import shuffle
from comorb.records.sources.shuffle import Shuffle, buckets_of


def written(folder, keys):
    made = Shuffle(str(folder), keys)
    tables = [pa.table({"p": [f"p{i % 5}" for i in range(n)], "i": range(n)}) for n in (40, 0, 30)]
    chunks = [made.write(number, table.to_batches()) for number, table in enumerate(tables)]
    return buckets_of(made, [chunk for chunk in chunks if chunk.rows], 2)


def test_rows_of_a_key_are_in_one_bucket_in_the_order_of_the_source(tmp_path, monkeypatch):
    monkeypatch.setattr(shuffle, "BUCKET", 10)
    found = [bucket.table() for bucket in written(tmp_path, ("p",))]
    keys = [set(table["p"].to_pylist()) for table, _ in found]
    assert len(found) > 1
    assert sum(map(len, keys)) == len(set.union(*keys)) == 5
    assert all(numbers.to_pylist() == sorted(numbers.to_pylist()) for _, numbers in found)
    assert sorted(n for _, numbers in found for n in numbers.to_pylist()) == list(range(1, 71))


def test_rows_without_a_key_stay_where_they_are(tmp_path):
    (bucket,) = written(tmp_path, ())
    table, numbers = bucket.table()
    assert table["i"].to_pylist() == [*range(40), *range(30)]
    assert numbers.to_pylist() == list(range(1, 71))
    next(tmp_path.glob("000002-*")).unlink()
    with pytest.raises(StorageError, match="rows that were brought together are damaged or gone"):
        bucket.table()


def test_another_duckdb_is_refused(tmp_path):
    with pytest.raises(EngineError, match=r"a worker has DuckDB .* and this process 0.1, which"):
        Shuffle(str(tmp_path), ("p",), "0.1").write(0, [])
