"""How a text file is written: delimiter, encoding, compression and column names.

DuckDB's own detection turns a ragged file into a single column and an unclosed quote into
a long value, so a file is looked through here first and then read with an explicit dialect.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from comorb.errors import RecordsError

DELIMITERS = ",\t;|^~: "
WHOLE_LINE = "\x1f"
_CHUNK = 1 << 23
_SAMPLE = 1 << 16
_DATA_LIKE = re.compile(r"[-+]?\d+([.,]\d+)?|\d{4}-\d\d-\d\d.*|[A-Z]\d\d(\.?[0-9A-Z]{1,4})?")
_FLAG = re.compile(r"([01](\.0)?|true|false)?", re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """What DuckDB needs to know to read a text file exactly."""

    delimiter: str
    encoding: str
    compression: str
    columns: tuple[str, ...]


def compression_of(path: Path) -> str:
    """Return 'gzip', 'zstd' or 'none', by the first bytes of a file."""
    with path.open("rb") as file:
        start = file.read(4)
    if start[:2] == b"\x1f\x8b":
        return "gzip"
    return "zstd" if start == b"\x28\xb5\x2f\xfd" else "none"


def sniff(path: Path) -> Dialect:
    """Look a whole text file through and return its dialect.

    A file that is empty, binary, cut off, in UTF-16 or in two encodings is refused, and so is one
    without a header, without rows or with a column name twice.
    """
    compression = compression_of(path)
    encoding, start, whole = _look_through(path, compression)
    text = start.decode(encoding, errors="ignore").removeprefix("\ufeff")
    delimiter, rows = _split(text, whole)
    if not rows:
        raise RecordsError(f"{path.name} holds no text but blank lines; export it again.")
    if len(rows) == 1 and whole:
        raise RecordsError(f"{path.name} holds a header and no rows; export it again.")
    return Dialect(delimiter, encoding, compression, _header(path.name, rows))


@contextmanager
def open_bytes(path: Path, compression: str) -> Iterator[Any]:
    """Open a file as a stream of its uncompressed bytes."""
    try:
        with pa.input_stream(
            str(path), compression=None if compression == "none" else compression
        ) as stream:
            yield stream
    except OSError as error:
        cut = compression != "none"
        reason = f"its {compression} data is damaged or cut off" if cut else str(error)
        raise RecordsError(
            f"{path.name} can't be read to its end: {reason}. Copy or export it again."
        ) from None


def refuse_twice(name: str, columns: Sequence[str]) -> None:
    """Refuse a table in which two columns have one name, in whatever case."""
    counts = Counter(column.lower() for column in columns)
    for column in columns:
        if counts[column.lower()] > 1:
            raise RecordsError(
                f"{name} has the column {column!r} {counts[column.lower()]} times, not counting "
                "upper and lower case as different; rename all but one."
            )


def _look_through(path: Path, compression: str) -> tuple[str, bytes, bool]:
    """Return the encoding, the first bytes, and whether those are the whole file."""
    start, rest, size = b"", b"", 0
    scan = _Scan(path.name)
    with open_bytes(path, compression) as stream:
        while chunk := stream.read(_CHUNK):
            if not size:
                start = _head(chunk)
                _refuse_binary(path.name, start)
            size += len(chunk)
            block = rest + chunk
            end = block.rfind(b"\n") + 1
            scan.look(block[:end])
            rest = block[end:]
    scan.look(rest)
    if not size:
        raise RecordsError(f"{path.name} is empty; export it again.")
    return scan.encoding(), start, size <= len(start)


def _head(chunk: bytes) -> bytes:
    """Return whole lines from the start of a file: the header and some rows, however long."""
    end = _SAMPLE
    for _ in range(5):
        end = chunk.find(b"\n", end) + 1
        if not end:
            return chunk
    return chunk[:end]


@dataclass
class _Scan:
    """What the lines seen so far say about the encoding."""

    name: str
    lines: int = 0
    utf8_seen: bool = False
    other_line: int = 0

    def look(self, block: bytes) -> None:
        if b"\0" in block:
            at = self.lines + 1 + block.count(b"\n", 0, block.index(b"\0"))
            raise RecordsError(
                f"{self.name} has a NUL byte in row {at:,}; remove it (tr -d '\\000') or "
                "export the file again."
            )
        if not block.isascii():
            for number, line in enumerate(block.split(b"\n"), self.lines + 1):
                if line.isascii():
                    continue
                try:
                    line.decode()
                    self.utf8_seen = True
                except UnicodeDecodeError:
                    self.other_line = self.other_line or number
        self.lines += block.count(b"\n")

    def encoding(self) -> str:
        if self.other_line and self.utf8_seen:
            raise RecordsError(
                f"{self.name} mixes encodings: row {self.other_line:,} isn't UTF-8, other rows "
                "are. Convert the whole file to UTF-8."
            )
        return "latin-1" if self.other_line else "utf-8"


def _refuse_binary(name: str, start: bytes) -> None:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise RecordsError(
            f"{name} is in UTF-16; save it as UTF-8 (in a spreadsheet: 'CSV UTF-8') and read that."
        )
    if start.startswith(b"PK\x03\x04"):
        raise RecordsError(
            f"{name} is a zip archive or a spreadsheet; unpack it, or save the sheet as CSV."
        )
    head = start[:4096]
    if head.count(b"\0") > len(head) // 3 and (head[1::2].count(b"\0") > len(head) // 3):
        raise RecordsError(f"{name} looks like UTF-16 without a mark; save it as UTF-8.")
    odd = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
    if odd > max(1, len(head) // 50):
        raise RecordsError(f"{name} is a binary file, not text; export the records as CSV.")


def _split(text: str, whole: bool) -> tuple[str, list[list[str]]]:
    """Return the delimiter that gives every row the header's width, and the rows it gives."""
    first = text.lstrip().partition("\n")[0]
    marks = [mark for mark in DELIMITERS if mark in first] or DELIMITERS
    tries = {mark: _parse(text, mark, whole) for mark in marks}
    widths = {mark: [len(row) for row in rows] for mark, rows in tries.items()}
    several = [mark for mark, width in widths.items() if width and width[0] > 1]
    even = [mark for mark in several if len(set(widths[mark])) == 1]
    if several:
        usual = [mark for mark in even if mark in DELIMITERS[:4]]
        best = max(usual or even or several, key=lambda mark: widths[mark][0])
        return best, tries[best]
    for mark in DELIMITERS[:4]:
        below = set(widths.get(mark, [])[1:])
        if len(below) == 1 and below != {1}:
            return mark, tries[mark]
    return WHOLE_LINE, _parse(text, WHOLE_LINE, whole)


def _parse(text: str, delimiter: str, whole: bool) -> list[list[str]]:
    rows: list[list[str]] = []
    try:
        rows.extend(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error:
        whole = True
    if not whole and len(rows) > 1:
        rows.pop()
    return [row for row in rows if row]


def _header(name: str, rows: list[list[str]]) -> tuple[str, ...]:
    """Return the column names of the first row, or refuse a row that is no header."""
    names = [cell.strip() for cell in rows[0]]
    for place, cell in enumerate(names):
        below = [row[place].strip() for row in rows[1:200] if len(row) == len(names)]
        flags = bool(below) and all(_FLAG.fullmatch(value) for value in below)
        if cell in ("0", "1") or (_DATA_LIKE.fullmatch(cell) and not flags):
            raise RecordsError(
                f"{name} has no header: its first row looks like data in column {place + 1}. "
                "Add a first row with the names of the columns."
            )
    names = [cell or f"column_{place}" for place, cell in enumerate(names, 1)]
    refuse_twice(name, names)
    return tuple(names)
