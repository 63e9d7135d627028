"""Pages: what a Parquet file says of itself, checksums and counts, held against what it holds.

DuckDB takes a page as it comes, so that one flipped bit is another code. A file is therefore walked
from page to page first: its pages are summed where they carry a checksum and passed over where not.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from comorb.records.sources.duck import OpenedSource, SourceTable, guarded, literal
from comorb.records.sources.limits import check_expanded, check_rows

# Of the header of a page: its fields, and the kinds of page that hold values.
_KIND, _SIZE, _CHECKSUM, _DATA, _DATA_2 = 1, 3, 4, 5, 8
_DATA_KINDS = {0: _DATA, 3: _DATA_2}
_FOOTER = (
    *("row_group_id", "row_group_num_rows", "column_id", "path_in_schema", "type", "num_values"),
    *("data_page_offset", "dictionary_page_offset", "total_compressed_size"),
    "total_uncompressed_size",
)
_LONGEST_TEXT, _DEEPEST = 1 << 24, 4

Fields = dict[int, Any]


def note_checksums(source: OpenedSource, label: str, files: Sequence[Path]) -> None:
    """Refuse files that aren't as they were written; note those in which that can't be seen."""
    source.note(bare_note(label, bare_files(source, label, files), len(files)))


def bare_files(source: OpenedSource, label: str, files: Sequence[Path]) -> int:
    """Refuse files that aren't as they were written; return in how many that can't be seen."""
    bare = rows = size = 0
    for file in files:
        walked = guarded(file.name, partial(_walk, source, file))
        bare, rows, size = bare + (not walked.summed), rows + walked.rows, size + walked.size
        check_rows(label, rows)
        check_expanded(label, size)
    return bare


def bare_note(label: str, bare: int, files: int) -> str:
    """Return what is said of files that have no checksums, nothing if they all have."""
    which = "it has" if files == 1 else f"{bare:,} of its {files:,} files have"
    return f"{label} may be damaged unseen: {which} no checksums" if bare else ""


@dataclass(frozen=True)
class _Walked:
    """What the pages of a file are: whether they carry checksums, its rows, its unpacked bytes."""

    summed: bool
    rows: int
    size: int


def _walk(source: OpenedSource, file: Path) -> _Walked:
    """Walk all pages of a file.

    The footer is DuckDB's to read, as Arrow's reader of it may end the process.
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
            _expect(_path(chunk["path_in_schema"]) == _path(column.path))
            _expect(chunk["type"] == column.physical_type)
            if not column.max_repetition_level:
                _expect(chunk["num_values"] == chunk["row_group_num_rows"])
            size += chunk["total_uncompressed_size"]
            _walk_chunk(stream, chunk, carried)
    _expect(sum(groups.values()) == metadata.num_rows)
    return _Walked(any(carried.values()), metadata.num_rows, size)


def _path(written: str) -> str:
    return written.replace(", ", ".")


def _walk_chunk(stream: BinaryIO, chunk: dict[str, Any], carried: dict[int, bool]) -> None:
    """Walk the pages of a column chunk; ``carried`` says which kinds of page carry checksums.

    Writers may sum some kinds of page and not others, but not one page and not the next.
    """
    begin, dictionary = chunk["data_page_offset"], chunk["dictionary_page_offset"] or 0
    stream.seek(dictionary if 0 < dictionary < begin else begin)
    values = 0
    while values < chunk["num_values"]:
        header = _struct(stream)
        kind, size, summed = _number(header, _KIND), _number(header, _SIZE), _CHECKSUM in header
        _expect(kind in range(4) and 0 <= size <= chunk["total_compressed_size"])
        _expect(carried.setdefault(kind, summed) is summed)
        if summed:
            checksum = _number(header, _CHECKSUM) & 0xFFFFFFFF
            _expect(zlib.crc32(_bytes(stream, size)) == checksum)
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


def _bytes(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    _expect(len(data) == size)
    return data


def _struct(stream: BinaryIO, depth: int = 0) -> Fields:
    """Read a structure in the compact protocol of Thrift, by the numbers of its fields."""
    _expect(depth < _DEEPEST)
    fields: Fields = {}
    number = 0
    while head := _bytes(stream, 1)[0]:
        number = number + (head >> 4) if head >> 4 else _integer(stream)
        fields[number] = _value(stream, head & 15, depth)
    return fields


def _value(stream: BinaryIO, kind: int, depth: int) -> Any:
    if kind in (1, 2):
        return kind == 1
    if kind in (4, 5, 6):
        return _integer(stream)
    if kind == 8:
        size = _unsigned(stream)
        _expect(size <= _LONGEST_TEXT)
        return _bytes(stream, size)
    _expect(kind == 12)
    return _struct(stream, depth + 1)


def _integer(stream: BinaryIO) -> int:
    plain = _unsigned(stream)
    return (plain >> 1) ^ -(plain & 1)


def _unsigned(stream: BinaryIO) -> int:
    """Read an integer of seven bits a byte, the last of which has its eighth bit unset."""
    total = 0
    for shift in range(0, 70, 7):
        byte = _bytes(stream, 1)[0]
        total |= (byte & 127) << shift
        if byte < 128:
            return total
    raise pa.ArrowInvalid("Parquet file with a page header that doesn't end")
