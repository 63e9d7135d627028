"""Rows that come from a reader of their own, copied into DuckDB, which uses the disk if need be."""

from __future__ import annotations

import pyarrow as pa

from comorb.records.sources.duck import OpenedSource, SourceTable


def copy_reader(source: OpenedSource, label: str, reader: pa.RecordBatchReader) -> SourceTable:
    """Copy what a reader of batches gives into a table."""
    names = source.connection.sql("SELECT count(*) FROM duckdb_tables()").fetchall()[0][0]
    name = f"copy_{names}"
    source.connection.register("incoming", reader)
    try:
        source.rows(SourceTable(label, name, {}), f"CREATE TEMP TABLE {name} AS FROM incoming")
    finally:
        source.connection.unregister("incoming")
    return source.view(label, f"SELECT * FROM {name}", text=True)
