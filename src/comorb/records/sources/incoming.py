"""Rows that come from a reader of their own, copied into DuckDB, which uses the disk if need be."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from comorb.errors import RecordsError
from comorb.records.sources.duck import OpenedSource, SourceTable
from comorb.records.sources.limits import check_expanded, check_rows


def copy_reader(source: OpenedSource, label: str, reader: pa.RecordBatchReader) -> SourceTable:
    """Copy what a reader of batches gives into a table."""
    names = source.connection.sql("SELECT count(*) FROM duckdb_tables()").fetchall()[0][0]
    name = f"copy_{names}"
    refused: list[RecordsError] = []
    within = pa.RecordBatchReader.from_batches(
        reader.schema, _until_too_many(label, reader, refused)
    )
    source.connection.register("incoming", within)
    try:
        source.rows(SourceTable(label, name, {}), f"CREATE TEMP TABLE {name} AS FROM incoming")
    finally:
        source.connection.unregister("incoming")
    if refused:
        raise refused[0]
    return source.view(label, f"SELECT * FROM {name}", text=True)


def _until_too_many(
    label: str, reader: pa.RecordBatchReader, refused: list[RecordsError]
) -> Iterator[pa.RecordBatch]:
    """Yield batches while they are within the limits; DuckDB would lose the words of a refusal."""
    rows = size = 0
    for batch in reader:
        rows, size = rows + len(batch), size + batch.nbytes
        try:
            check_rows(label, rows)
            check_expanded(label, size)
        except RecordsError as error:
            refused.append(error)
            return
        yield batch
