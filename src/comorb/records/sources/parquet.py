"""Parquet files as one table, also in folders named year=2020, checked for damage."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from comorb.messages import Message
from comorb.records.sources.duck import OpenedSource, SourceTable, literal, literals, run_safely
from comorb.records.sources.files import check_expanded, check_rows
from comorb.records.sources.text_files import check_unique_columns

# Of the header of a page: its fields, and the kinds of page that hold values.
_KIND, _SIZE, _CHECKSUM, _DATA, _DATA_2 = 1, 3, 4, 5, 8
_DATA_KINDS = {0: _DATA, 3: _DATA_2}
_FOOTER = (
    *("row_group_id", "row_group_num_rows", "column_id", "path_in_schema", "type", "num_values"),
    *("data_page_offset", "dictionary_page_offset", "total_compressed_size"),
    "total_uncompressed_size",
)
_MAX_TEXT_BYTES, _MAX_DEPTH = 1 << 24, 4
_TEXT_TYPES = (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)

Fields = dict[int, Any]


def check_checksums(source: OpenedSource, label: str, files: Sequence[Path]) -> None:
    """Refuse damaged files; note that there are files without checksums."""
    source.note(checksum_note(label, count_unsummed(source, label, files), len(files)))


def count_unsummed(source: OpenedSource, label: str, files: Sequence[Path]) -> int:
    """Refuse damaged files; return the number of those without checksums."""
    bare = rows = size = 0
    for file in files:
        summed, more_rows, more_bytes = run_safely(file.name, partial(_walk_pages, source, file))
        bare, rows, size = bare + (not summed), rows + more_rows, size + more_bytes
        check_rows(label, rows)
        check_expanded(label, size)
    return bare


def checksum_note(label: str, bare: int, files: int) -> str:
    """Return the note on files without checksums; it is empty if all have them."""
    if not bare:
        return ""
    if files == 1:
        return Message("note.no_checksums_one", label=label)
    return Message("note.no_checksums_some", label=label, limit=bare, files=files)


def _walk_pages(source: OpenedSource, file: Path) -> tuple[bool, int, int]:
    """Walk all pages of a file; return whether it has checksums, its rows and unpacked bytes.

    DuckDB reads the footer, as Arrow's reader of it may end the process.
    """
    metadata = pq.read_metadata(file)
    size = 0
    groups: dict[int, int] = {}
    carried: dict[int, bool] = {}
    table = SourceTable(file.name, f"parquet_metadata({literal(str(file))})", {})
    with file.open("rb") as stream:
        for row in source.rows(table, f"SELECT {', '.join(_FOOTER)} FROM {table.sql}"):
            chunk = dict(zip(_FOOTER, row, strict=True))
            column = metadata.schema.column(chunk["column_id"])
            groups[chunk["row_group_id"]] = chunk["row_group_num_rows"]
            paths = (chunk["path_in_schema"], column.path)
            _expect(len({path.replace(", ", ".") for path in paths}) == 1)
            _expect(chunk["type"] == column.physical_type)
            if not column.max_repetition_level:
                _expect(chunk["num_values"] == chunk["row_group_num_rows"])
            size += chunk["total_uncompressed_size"]
            _walk_column(stream, chunk, carried)
    _expect(sum(groups.values()) == metadata.num_rows)
    return any(carried.values()), metadata.num_rows, size


def _walk_column(stream: BinaryIO, chunk: dict[str, Any], carried: dict[int, bool]) -> None:
    """Walk the pages of a column chunk; ``carried`` is which kinds of page have checksums.

    A writer may leave out the checksums of some kinds of page, but not of some pages of a kind.
    """
    begin, dictionary = chunk["data_page_offset"], chunk["dictionary_page_offset"] or 0
    stream.seek(dictionary if 0 < dictionary < begin else begin)
    values = 0
    while values < chunk["num_values"]:
        header = _read_struct(stream)
        kind, size, summed = _number(header, _KIND), _number(header, _SIZE), _CHECKSUM in header
        _expect(kind in range(4) and 0 <= size <= chunk["total_compressed_size"])
        _expect(carried.setdefault(kind, summed) is summed)
        if summed:
            checksum = _number(header, _CHECKSUM) & 0xFFFFFFFF
            _expect(zlib.crc32(_read_bytes(stream, size)) == checksum)
        else:
            stream.seek(size, 1)
        if kind in _DATA_KINDS:
            of_values = header.get(_DATA_KINDS[kind])
            values += _number(of_values if isinstance(of_values, dict) else {}, 1)
    _expect(values == chunk["num_values"])


def _expect(fits: bool) -> None:
    if not fits:
        raise pa.ArrowInvalid("Parquet file whose checksums or counts don't fit")


def _number(fields: Fields, key: int) -> int:
    value = fields.get(key)
    if not isinstance(value, int):
        raise pa.ArrowInvalid("Parquet file with a page header that lacks a number")
    return value


def _read_bytes(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    _expect(len(data) == size)
    return data


def _read_struct(stream: BinaryIO, depth: int = 0) -> Fields:
    """Read a structure in the compact protocol of Thrift, by the numbers of its fields."""
    _expect(depth < _MAX_DEPTH)
    fields: Fields = {}
    number = 0
    while head := _read_bytes(stream, 1)[0]:
        number = number + (head >> 4) if head >> 4 else _read_integer(stream)
        kind = head & 15
        if kind in (1, 2):
            fields[number] = kind == 1
        elif kind in (4, 5, 6):
            fields[number] = _read_integer(stream)
        elif kind == 8:
            size = _read_unsigned(stream)
            _expect(size <= _MAX_TEXT_BYTES)
            fields[number] = _read_bytes(stream, size)
        else:
            _expect(kind == 12)
            fields[number] = _read_struct(stream, depth + 1)
    return fields


def _read_integer(stream: BinaryIO) -> int:
    plain = _read_unsigned(stream)
    return (plain >> 1) ^ -(plain & 1)


def _read_unsigned(stream: BinaryIO) -> int:
    """Read an integer of seven bits a byte, the last of which has its eighth bit unset."""
    total = 0
    for shift in range(0, 70, 7):
        byte = _read_bytes(stream, 1)[0]
        total |= (byte & 127) << shift
        if byte < 128:
            return total
    raise pa.ArrowInvalid("Parquet file with a page header that doesn't end")


def read_schema(file: Path) -> pa.Schema:
    """Return the columns of a Parquet file and their types."""

    def read() -> pa.Schema:
        schema = pq.read_schema(file)
        return pa.schema(list(zip(schema.names, schema.types, strict=True)))

    return run_safely(file.name, read)


def is_partition(folder: str) -> bool:
    """Return whether a folder is named after a column and its value, such as 'year=2020'."""
    return folder.find("=") > 0


def open_parquet(
    source: OpenedSource,
    label: str,
    files: Sequence[Path],
    root: Path | None = None,
    span: tuple[int, int] | None = None,
) -> SourceTable:
    """Open Parquet files as one table; folders of partitions below the root give columns.

    Files that differ are united by the names of their columns, with a note. ``span`` is the
    first row, and the one after the last, of a file that isn't opened whole.
    """
    schemas = [read_schema(file) for file in files]
    for file, schema in zip(files, schemas, strict=True):
        check_unique_columns(file.name, schema.names)
    options = "hive_partitioning = false"
    if root is not None and any(map(is_partition, files[0].relative_to(root).parts[:-1])):
        options = "hive_partitioning = true, hive_types_autocast = false"
    if any(schema != schemas[0] for schema in schemas):
        options += ", union_by_name = true"
        source.note(*_describe_differences(label, schemas))
    read = f"read_parquet([{literals(map(str, files))}], {options}"
    if span is None:
        return source.view(label, f"SELECT * FROM {read})")
    rows = f"file_row_number BETWEEN {span[0]} AND {span[1] - 1}"
    sql = f"SELECT * EXCLUDE (file_row_number) FROM {read}, file_row_number = true) WHERE {rows}"
    return source.view(label, sql)


def _describe_differences(label: str, schemas: list[pa.Schema]) -> list[Message]:
    """Return notes on columns that aren't in every file, and that are text only in some."""
    text_or_not: dict[str, list[bool | None]] = {}
    for schema in schemas:
        for column in schema:
            text = any(is_text(column.type) for is_text in _TEXT_TYPES)
            null = pa.types.is_null(column.type)
            text_or_not.setdefault(column.name, []).append(None if null else text)
    n, notes = len(schemas), []
    if some := [name for name, each in text_or_not.items() if len(each) < n]:
        key, limit = "note.columns_missing", len(some)
        notes.append(Message(key, label=label, limit=limit, files=n, some=some[:12]))
    if several := [name for name, each in text_or_not.items() if {True, False} <= {*each}]:
        notes.append(Message("note.columns_differ", label=label, several=several[:12]))
    return notes
