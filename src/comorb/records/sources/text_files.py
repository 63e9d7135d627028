"""Text files as tables: compression, encoding, delimiter and column names; every value is text."""

from __future__ import annotations

import codecs
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
from comorb.messages import Message
from comorb.records.sources.duck import OpenedSource, SourceTable, literal, quote
from comorb.records.sources.files import check_columns, check_expanded, check_rows, current_limits

_READ_BYTES = 1 << 22
_SAMPLE_BYTES = 1 << 16
_MAX_LINE = 1 << 26
_C1 = bytes(range(0x80, 0xA0))
_NOT_WINDOWS_1252 = b"\x81\x8d\x8f\x90\x9d"


@dataclass(frozen=True)
class TextFormat:
    """How a text file is written, and its first lines.

    ``whole`` is whether these are all lines, ``mixed`` whether line ends are of several kinds, and
    ``formulas`` whether cells may be written ="text".
    """

    encoding: str
    compression: str
    start: bytes = b""
    whole: bool = True
    mixed: bool = False
    formulas: bool = False


def detect_compression(path: Path) -> str:
    """Return 'gzip', 'zstd' or 'none', by the first bytes of a file."""
    with path.open("rb") as file:
        start = file.read(4)
    if start[:2] == b"\x1f\x8b":
        return "gzip"
    return "zstd" if start == b"\x28\xb5\x2f\xfd" else "none"


@contextmanager
def open_bytes(path: Path, compression: str) -> Iterator[Any]:
    """Open a file as a stream of its uncompressed bytes."""
    packed = None if compression == "none" else compression
    try:
        with pa.input_stream(str(path), compression=packed) as stream:
            yield stream
    except OSError as error:
        reason = Message("file.compressed", compression=compression) if packed else str(error)
        message = Message("file.not_to_end", file=path.name, reason=reason)
    else:
        return
    raise RecordsError(message)


def check_unpacked(path: Path) -> None:
    """Refuse a file that unpacks to more than is read."""
    packed = detect_compression(path)
    check_expanded(path.name, path.stat().st_size)
    if packed == "none" or not current_limits().expanded:
        return
    with open_bytes(path, packed) as stream:
        size = 0
        while chunk := stream.read(_READ_BYTES):
            size += len(chunk)
            check_expanded(path.name, size)


def scan_text(path: Path, label: str | None = None) -> TextFormat:
    """Scan a whole text file and return how it is written."""
    name = label or path.name
    compression = detect_compression(path)
    start, rest, size = b"", b"", 0
    scan = _Scan(name)
    with open_bytes(path, compression) as stream:
        while chunk := stream.read(_READ_BYTES):
            if not size:
                if chunk.startswith((b"\xff\xfe", b"\xfe\xff")):
                    return TextFormat("utf-16", compression)
                start = _first_lines(chunk)
                _refuse_binary(name, start)
            size += len(chunk)
            check_expanded(name, size)
            block = rest + chunk
            end = (block.rfind(b"\n") + 1) or (block.rfind(b"\r", 0, -1) + 1)
            scan.look(block[:end])
            rest = block[end:]
            check_rows(name, scan.lines - 1)
            if len(rest) > _MAX_LINE:
                raise RecordsError("file.long_line", name=name, limit=_MAX_LINE >> 20)
    scan.look(rest)
    if not size:
        raise RecordsError("file.empty", name=name)
    return TextFormat(
        scan.encoding(), compression, start, size <= len(start), scan.mixed, scan.formulas
    )


def copy_as_utf8(path: Path, writing: TextFormat, copy: Path) -> None:
    """Copy a text file as UTF-8; line ends outside quotes become those of Unix."""
    decoder = codecs.getincrementaldecoder(writing.encoding)()
    quotes, held = False, ""
    try:
        with open_bytes(path, writing.compression) as stream, copy.open("wb") as out:
            while True:
                chunk = stream.read(_READ_BYTES)
                text = held + decoder.decode(chunk, final=not chunk)
                # A CR at the end may be half of a line end.
                held = "\r" if chunk and text.endswith("\r") else ""
                parts = text.removesuffix(held).split('"')
                for place in range(int(quotes), len(parts), 2):
                    parts[place] = parts[place].replace("\r\n", "\n").replace("\r", "\n")
                quotes ^= len(parts) % 2 == 0
                out.write('"'.join(parts).encode())
                if not chunk:
                    return
    except UnicodeError:
        message = Message("file.not_whole", file=path.name, encoding=writing.encoding)
    raise RecordsError(message)


def _first_lines(chunk: bytes) -> bytes:
    """Return the header and some rows, however long they are."""
    end = _SAMPLE_BYTES
    for _ in range(5):
        end = chunk.find(b"\n", end) + 1
        if not end:
            return chunk
    return chunk[:end]


@dataclass
class _Scan:
    """The encoding and the line ends of the lines that were scanned so far."""

    name: str
    lines: int = 0
    utf8_seen: bool = False
    other_line: int = 0
    windows: bool = False
    unknown_line: int = 0
    formulas: bool = False
    crlf: int = 0
    lone_cr: int = 0

    def look(self, block: bytes) -> None:
        if b"\0" in block:
            at = self.lines + 1 + block.count(b"\n", 0, block.index(b"\0"))
            raise RecordsError("file.nul", name=self.name, row=at)
        if not block.isascii():
            for number, line in enumerate(block.split(b"\n"), self.lines + 1):
                if line.isascii():
                    continue
                if is_utf8(line):
                    self.utf8_seen = True
                    continue
                self.other_line = self.other_line or number
                self.windows |= len(line.translate(None, _C1)) < len(line)
                if len(line.translate(None, _NOT_WINDOWS_1252)) < len(line):
                    self.unknown_line = self.unknown_line or number
        # A single byte is found many times faster than two, and is mostly not there.
        self.formulas = self.formulas or (b"=" in block and b'="' in block)
        self.lines += block.count(b"\n")
        if b"\r" in block:
            pairs = block.count(b"\r\n")
            self.crlf += pairs
            self.lone_cr += block.count(b"\r") - pairs

    @property
    def mixed(self) -> bool:
        return sum((self.crlf > 0, self.lone_cr > 0, self.lines > self.crlf)) > 1

    def encoding(self) -> str:
        if self.other_line and self.utf8_seen:
            raise RecordsError("file.mixed_encodings", name=self.name, row=self.other_line)
        if self.unknown_line:
            raise RecordsError("file.unknown_encoding", name=self.name, row=self.unknown_line)
        if self.windows:
            return "windows-1252"
        return "latin-1" if self.other_line else "utf-8"


def is_utf8(text: bytes) -> bool:
    """Return whether bytes are text in UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _refuse_binary(name: str, start: bytes) -> None:
    head = start[:4096]
    even, odd = head[::2].count(0), head[1::2].count(0)
    if min(even, odd) * 8 < len(head) < max(even, odd) * 3:
        # UTF-16 has a NUL at each letter; what is left is printable, other than in numbers.
        letters = head.replace(b"\0", b"")
        printable = sum(32 <= byte < 127 or byte in b"\t\r\n" for byte in letters)
        if printable > 0.95 * len(letters):
            raise RecordsError("file.utf16", name=name)
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
    if controls > max(1, len(head) // 50):
        raise RecordsError("file.binary", name=name)


DELIMITERS = ",\t;|^~: "
WHOLE_LINE = "\x1f"
_DATA_LIKE = re.compile(r"[-+]?\d+([.,]\d+)?|\d{4}-\d\d-\d\d.*|[A-Z]\d\d(\.?[0-9A-Z]{1,4})?")
# The first line that gives the delimiter to a spreadsheet.
_SEPARATOR = re.compile(r'"?sep=(.)"?[ \t]*(\r\n|\r|\n)', re.IGNORECASE)
_FORMULA = re.compile(r'="(.*)"')
_FLAG = re.compile(r"([01](\.0)?|true|false)?", re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """The delimiter and the columns of a text file, and the number of lines above its header."""

    delimiter: str
    columns: tuple[str, ...]
    skip: int = 0


def find_dialect(name: str, writing: TextFormat) -> Dialect:
    """Return the dialect of a text file.

    A file without a header, without rows or with a column name twice is refused.
    """
    text = writing.start.decode(writing.encoding, errors="ignore").removeprefix("\ufeff")
    marks, skip = "", 0
    if line := _SEPARATOR.match(text):
        marks, skip, text = line[1], 1, text[line.end() :]
    delimiter, rows = _find_delimiter(text, writing.whole, marks)
    if not rows:
        raise RecordsError("file.blank", name=name)
    if len(rows) == 1 and writing.whole:
        raise RecordsError("file.only_header", file=name)
    if writing.formulas:
        rows[0] = [_FORMULA.sub(r"\1", cell) for cell in rows[0]]
    return Dialect(delimiter, read_column_names(name, rows), skip)


def check_unique_columns(name: str, columns: Sequence[str]) -> None:
    """Refuse a table in which two columns have one name, in whatever case."""
    counts = Counter(column.lower() for column in columns)
    for column in columns:
        if (n := counts[column.lower()]) > 1:
            raise RecordsError("file.column_twice", name=name, column=column, n=n)


def _find_delimiter(text: str, whole: bool, given: str) -> tuple[str, list[list[str]]]:
    """Return the delimiter that gives every row the header's width, and the rows it gives."""
    if given:
        return given, _parse_rows(text, given, whole)
    first = text.lstrip().partition("\n")[0]
    marks = [mark for mark in DELIMITERS if mark in first] or DELIMITERS
    tries = {mark: _parse_rows(text, mark, whole) for mark in marks}
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
    return WHOLE_LINE, _parse_rows(text, WHOLE_LINE, whole)


def _parse_rows(text: str, delimiter: str, whole: bool) -> list[list[str]]:
    rows: list[list[str]] = []
    try:
        rows.extend(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error:
        whole = True
    if not whole and len(rows) > 1:
        rows.pop()
    return [row for row in rows if row]


def read_column_names(name: str, rows: list[list[str]]) -> tuple[str, ...]:
    """Return the column names of the first row, or refuse a row that is no header."""
    names = [cell.strip() for cell in rows[0]]
    for place, cell in enumerate(names):
        below = [row[place].strip() for row in rows[1:200] if len(row) == len(names)]
        flags = bool(below) and all(_FLAG.fullmatch(value) for value in below)
        if cell in ("0", "1") or (_DATA_LIKE.fullmatch(cell) and not flags):
            raise RecordsError("file.no_header", name=name, column=place + 1)
    names = [cell or f"column_{place}" for place, cell in enumerate(names, 1)]
    check_unique_columns(name, names)
    return tuple(names)


def flatten_json(source: OpenedSource, table: SourceTable) -> SourceTable:
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
            f"ELSE json_extract_string(json, {path}) END AS {quote(key)}"
        )
    return source.view(table.label, f"SELECT {', '.join(columns)} FROM {table.sql}", text=True)


def open_text(source: OpenedSource, file: Path) -> SourceTable:
    """Open a text file; DuckDB reads a copy unless it is UTF-8 or Latin-1 with equal line ends."""
    label = file.name
    writing = scan_text(file)
    if writing.encoding in ("latin-1", "windows-1252"):
        source.note(Message("note.windows_1252", label=label))
    if writing.mixed or writing.encoding not in ("utf-8", "latin-1"):
        copy = source.new_copy("text")
        copy_as_utf8(file, writing, copy)
        file, writing = copy, scan_text(copy, label)
    dialect = find_dialect(label, writing)
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in dialect.columns)
    skip = f"skip = {dialect.skip}, " if dialect.skip else ""
    read = (
        f"read_csv({literal(str(file))}, columns = {{{columns}}}, "
        f"delim = {literal(dialect.delimiter)}, quote = '\"', escape = '\"', header = true, {skip}"
        f"encoding = {literal(writing.encoding)}, compression = {literal(writing.compression)}, "
        "auto_detect = false, strict_mode = true)"
    )
    if not writing.formulas:
        types = dict.fromkeys(dialect.columns, "VARCHAR")
        return SourceTable(label, read, types, text=True, counted=True)
    cells = ", ".join(
        f"regexp_replace({quote(name)}, '^=\"(.*)\"$', '\\1') AS {quote(name)}"
        for name in dialect.columns
    )
    return source.view(label, f"SELECT {cells} FROM {read}", text=True)
