"""NDJSON: plain JSON objects, one a line, as the rows of a table."""

from __future__ import annotations

from comorb.records.sources.duck import OpenedSource, SourceTable, literal, quoted
from comorb.records.sources.limits import check_columns


def flatten(source: OpenedSource, table: SourceTable) -> SourceTable:
    """Return the fields of plain objects as text columns; a list becomes 'a;b'."""
    keys = source.rows(
        table,
        f"SELECT key FROM (SELECT unnest(json_keys(json)) AS key FROM {table.sql}) "
        "GROUP BY key ORDER BY key",
    )
    check_columns(table.label, len(keys))
    columns = []
    for (key,) in keys:
        path = literal('$."' + key.replace('"', '\\"') + '"')
        columns.append(
            f"CASE json_type(json, {path}) WHEN 'ARRAY' THEN "
            f"array_to_string(CAST(json_extract(json, {path}) AS VARCHAR[]), ';') "
            f"ELSE json_extract_string(json, {path}) END AS {quoted(key)}"
        )
    return source.view(table.label, f"SELECT {', '.join(columns)} FROM {table.sql}", text=True)
