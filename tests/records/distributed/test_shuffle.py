"""Rows of partitions are brought together by their keys, and stay in order without any."""

import pyarrow as pa
import pytest

from comorb.errors import EngineError, StorageError
from comorb.records.distributed import shuffle
from comorb.records.distributed.shuffle import (
    PartitionRows,
    Shuffle,
    WholeSource,
    head_answers,
    merge_answers,
    plan_partitions,
)
from comorb.records.sources.duck import add_rows, take_first

SCHEMA = pa.schema([("p", pa.string()), ("i", pa.int64())])


def written(folder, keys):
    made = Shuffle(str(folder), keys)
    tables = [pa.table({"p": [f"p{i % 5}" for i in range(n)], "i": range(n)}) for n in (40, 0, 30)]
    chunks = [made.write(number, table.to_batches()) for number, table in enumerate(tables)]
    return [one for (one,) in plan_partitions(made, [[chunk for chunk in chunks if chunk.rows]], 2)]


def test_rows_of_a_key_are_in_one_bucket_in_the_order_of_the_source(tmp_path, monkeypatch):
    monkeypatch.setattr(shuffle, "PARTITION_ROWS", 10)
    found = [bucket.table(SCHEMA) for bucket in written(tmp_path, ("p",))]
    keys = [set(table["p"].to_pylist()) for table, _ in found]
    assert len(found) > 1
    assert sum(map(len, keys)) == len(set.union(*keys)) == 5
    assert all(numbers.to_pylist() == sorted(numbers.to_pylist()) for _, numbers in found)
    assert sorted(n for _, numbers in found for n in numbers.to_pylist()) == list(range(1, 71))


def test_many_rows_have_more_slots(tmp_path, monkeypatch):
    monkeypatch.setattr(shuffle, "PARTITION_ROWS", 1)
    table = pa.table({"p": [f"p{i % 900}" for i in range(3000)]})
    few, many = (Shuffle(str(tmp_path), ("p",), rows=rows) for rows in (0, 3000))
    slots = [{slot for slot, _ in one.write(0, table.to_batches()).batches} for one in (few, many)]
    assert max(slots[0]) < 256 <= max(slots[1]) < many.slots == 2048
    assert {slot % 256 for slot in slots[1]} == slots[0]


def test_rows_without_a_key_stay_where_they_are(tmp_path):
    (bucket,) = written(tmp_path, ())
    table, numbers = bucket.table(SCHEMA)
    assert table["i"].to_pylist() == [*range(40), *range(30)]
    assert numbers.to_pylist() == list(range(1, 71))
    next(tmp_path.glob("000002-*")).unlink()
    with pytest.raises(StorageError, match="rows that were brought together are damaged or gone"):
        bucket.table(SCHEMA)


def test_rows_of_other_tables_come_along_by_their_keys(tmp_path, monkeypatch):
    monkeypatch.setattr(shuffle, "PARTITION_ROWS", 20)
    made, beside = Shuffle(str(tmp_path), ("p",)), Shuffle(str(tmp_path), ("k",), ("k",))
    visits = pa.table({"p": [f"{i % 5}" for i in range(40)], "i": range(40)})
    people = pa.table({"k": [*range(300), None]})
    chunks = [one.write(0, some.to_batches()) for one, some in ((made, visits), (beside, people))]
    buckets = plan_partitions(made, [[chunks[0]], [chunks[1]]], 2)
    assert len(buckets) > 1
    seen = []
    for own, other in buckets:
        table, _ = own.table(SCHEMA)
        keys = other.table(people.schema)[0]["k"].to_pylist()
        assert {int(key) for key in table["p"].to_pylist()} <= set(keys)
        seen += keys
    assert sorted(seen, key=str) == sorted(people["k"].to_pylist(), key=str)
    assert plan_partitions(made, [[], [chunks[1]]], 2) == []
    ((_, none),) = plan_partitions(made, [chunks[:1], []], 2 << 20)[:1]
    assert len(none.table(people.schema)[0]) == 0


def test_another_duckdb_is_refused(tmp_path):
    with pytest.raises(EngineError, match=r"a worker has DuckDB .* and this process 0.1, which"):
        Shuffle(str(tmp_path), ("p",), version="0.1").write(0, [])


ROWS = [pa.table({"a": [1, 2, 3]}), pa.table({"a": [4]})]


def asked(whole, rows):
    numbers = pa.array(range(7, 7 + len(rows)))
    with whole.open_partition(
        lambda name: PartitionRows(name, ("doubtful",), rows, numbers)
    ) as source:
        table = source.table("records")
        assert (table.label, source.notes) == ("records", ["doubtful"])
        ((count,),) = source.query_whole(table, f"SELECT count(*) FROM {table.sql}", add_rows)
        view = source.view("few", f"SELECT * FROM {table.sql} LIMIT {count}")
        kept = source.query_whole(view, f"SELECT a FROM {view.sql}", take_first)
        numbers = source.rows(table, source.numbered_sql(table, "n"))
        return count, kept, numbers, source.found


def test_answers_are_those_of_all_and_depend_on_what_was_defined_before():
    whole = WholeSource("the table", ("records",))
    one, two = (asked(whole, rows) for rows in ROWS)
    assert (one[0], two[0]) == (3, 1)
    assert two[2] == [(7, 4)]
    answers = merge_answers([one[3], two[3]])
    assert list(answers.values()) == [[(4,)]]
    again = asked(WholeSource("the table", ("records",), answers), ROWS[1])
    assert again[0] == 4
    assert list(head_answers(again[3]).values()) == [[(4,)]]
