"""Parquet files as one table, also when they lie in folders named year=2020 or differ a little."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from comorb.records.sources.dialect import refuse_twice
from comorb.records.sources.duck import OpenedSource, SourceTable, guarded, literal

_PARTITION = re.compile(r"[^=]+=.*")


def schema_of(file: Path) -> pa.Schema:
    """Return the columns of a Parquet file and their types."""

    def read() -> pa.Schema:
        schema = pq.read_schema(file)
        return pa.schema(list(zip(schema.names, schema.types, strict=True)))

    return guarded(file.name, read)


def is_partition(folder: str) -> bool:
    """Tell a folder that names a column and its value, such as 'year=2020'."""
    return _PARTITION.fullmatch(folder) is not None


def open_parquet(
    source: OpenedSource,
    label: str,
    files: Sequence[Path],
    root: Path | None = None,
    span: tuple[int, int] | None = None,
) -> SourceTable:
    """Open Parquet files as one table; folders below the root that name a column give it.

    Files that differ are united by the names of their columns, with a note. ``span`` are the
    first row, and the one after the last, of a file that isn't opened whole.
    """
    schemas = [schema_of(file) for file in files]
    for file, schema in zip(files, schemas, strict=True):
        refuse_twice(file.name, schema.names)
    names = ", ".join(literal(str(file)) for file in files)
    options = "hive_partitioning = false"
    if root is not None and any(map(is_partition, files[0].relative_to(root).parts[:-1])):
        options = "hive_partitioning = true, hive_types_autocast = false"
    if any(schema != schemas[0] for schema in schemas):
        options += ", union_by_name = true"
        source.note(*_differences(label, schemas))
    if span is None:
        return source.view(label, f"SELECT * FROM read_parquet([{names}], {options})")
    sql = f"FROM read_parquet([{names}], {options}, file_row_number = true) WHERE file_row_number"
    start, stop = span
    return source.view(
        label, f"SELECT * EXCLUDE (file_row_number) {sql} BETWEEN {start} AND {stop - 1}"
    )


def _differences(label: str, schemas: list[pa.Schema]) -> list[str]:
    """Say which columns aren't in every file, and which are of several types."""
    types: dict[str, list[pa.DataType]] = {}
    for schema in schemas:
        for column in schema:
            types.setdefault(column.name, []).append(column.type)
    some = [name for name, each in types.items() if len(each) < len(schemas)]
    types = {name: [t for t in each if not pa.types.is_null(t)] for name, each in types.items()}
    several = [name for name, each in types.items() if len({_is_text(kind) for kind in each}) > 1]
    notes = []
    if some:
        notes.append(
            f"{label}: {len(some)} columns aren't in every one of its {len(schemas):,} files and "
            f"are blank where they are missing: {', '.join(some[:12])}"
        )
    if several:
        notes.append(
            f"{label}: columns are text in some of its files and numbers in others, so codes and "
            f"ids may have lost zeros: {', '.join(several[:12])}"
        )
    return notes


def _is_text(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)
    return any(test(kind) for test in tests)
