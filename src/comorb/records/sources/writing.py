"""How the bytes of a text file are written: compression, encoding, line ends.

The whole file is looked through before it is read, so that what is odd in its last row is known.
A file that DuckDB can't read as it is (UTF-16, Windows-1252, two kinds of line ends) is copied as
UTF-8 with one kind of line end.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from comorb.errors import RecordsError
from comorb.records.sources.limits import check_expanded, check_rows, in_force

_CHUNK = 1 << 22
_SAMPLE = 1 << 16
_LONGEST_LINE = 1 << 26
_C1 = bytes(range(0x80, 0xA0))
_NOT_WINDOWS = b"\x81\x8d\x8f\x90\x9d"


@dataclass(frozen=True)
class Writing:
    """How a text file is written, and its first lines.

    ``whole`` says that the first lines are all, ``mixed`` that there are several kinds of line
    ends, and ``formulas`` that cells may be written ="text".
    """

    encoding: str
    compression: str
    start: bytes = b""
    whole: bool = True
    mixed: bool = False
    formulas: bool = False

    @property
    def needs_copy(self) -> bool:
        """Whether DuckDB needs a copy in UTF-8 with one kind of line end."""
        return self.mixed or self.encoding not in ("utf-8", "latin-1")


def compression_of(path: Path) -> str:
    """Return 'gzip', 'zstd' or 'none', by the first bytes of a file."""
    with path.open("rb") as file:
        start = file.read(4)
    if start[:2] == b"\x1f\x8b":
        return "gzip"
    return "zstd" if start == b"\x28\xb5\x2f\xfd" else "none"


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
        message = f"{path.name} can't be read to its end: {reason}. Copy or export it again."
    else:
        return
    raise RecordsError(message)


def check_unpacked(path: Path) -> None:
    """Refuse a file that unpacks to more than is read; it is looked through if it is packed."""
    size, packed = path.stat().st_size, compression_of(path)
    check_expanded(path.name, size)
    if packed == "none" or not in_force().expanded:
        return
    with open_bytes(path, packed) as stream:
        size = 0
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            check_expanded(path.name, size)


def look_through(path: Path, label: str | None = None) -> Writing:
    """Look a whole text file through and say how it is written."""
    name = label or path.name
    compression = compression_of(path)
    start, rest, size = b"", b"", 0
    scan = _Scan(name)
    with open_bytes(path, compression) as stream:
        while chunk := stream.read(_CHUNK):
            if not size:
                if chunk.startswith((b"\xff\xfe", b"\xfe\xff")):
                    return Writing("utf-16", compression)
                start = _head(chunk)
                _refuse_binary(name, start)
            size += len(chunk)
            check_expanded(name, size)
            block = rest + chunk
            end = (block.rfind(b"\n") + 1) or (block.rfind(b"\r", 0, -1) + 1)
            scan.look(block[:end])
            rest = block[end:]
            check_rows(name, scan.lines - 1)
            if len(rest) > _LONGEST_LINE:
                raise RecordsError(
                    f"{name} has a line of more than {_LONGEST_LINE >> 20} MB, so it is no table; "
                    "export it again."
                )
    scan.look(rest)
    if not size:
        raise RecordsError(f"{name} is empty; export it again.")
    return Writing(
        scan.encoding(), compression, start, size <= len(start), scan.mixed, scan.formulas
    )


def rewrite(path: Path, writing: Writing, copy: Path) -> None:
    """Copy a text file as UTF-8; line ends outside quotes become those of Unix."""
    decoder = codecs.getincrementaldecoder(writing.encoding)()
    quotes, held = False, ""
    try:
        with open_bytes(path, writing.compression) as stream, copy.open("wb") as out:
            while True:
                chunk = stream.read(_CHUNK)
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
        message = (
            f"{path.name} isn't whole text in {writing.encoding}: it is damaged or cut off; save "
            "it as UTF-8 and read that."
        )
    raise RecordsError(message)


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
    """What the lines seen so far say about encoding and line ends."""

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
            raise RecordsError(
                f"{self.name} has a NUL byte in row {at:,}; remove it (tr -d '\\000') or "
                "export the file again."
            )
        if not block.isascii():
            for number, line in enumerate(block.split(b"\n"), self.lines + 1):
                if not line.isascii():
                    self._look_at_letters(line, number)
        # A single byte is looked for many times faster than two, and is mostly not there.
        self.formulas = self.formulas or (b"=" in block and b'="' in block)
        self.lines += block.count(b"\n")
        if b"\r" in block:
            returns = block.count(b"\r")
            pairs = block.count(b"\r\n")
            self.crlf += pairs
            self.lone_cr += returns - pairs

    def _look_at_letters(self, line: bytes, number: int) -> None:
        fits = _is_utf8(line)
        self.utf8_seen |= fits
        if fits:
            return
        self.other_line = self.other_line or number
        self.windows |= len(line.translate(None, _C1)) < len(line)
        if not self.unknown_line and len(line.translate(None, _NOT_WINDOWS)) < len(line):
            self.unknown_line = number

    @property
    def mixed(self) -> bool:
        return sum((self.crlf > 0, self.lone_cr > 0, self.lines > self.crlf)) > 1

    def encoding(self) -> str:
        if self.other_line and self.utf8_seen:
            raise RecordsError(
                f"{self.name} mixes encodings: row {self.other_line:,} isn't UTF-8, other rows "
                "are. Convert the whole file to UTF-8."
            )
        if self.unknown_line:
            raise RecordsError(
                f"{self.name} is neither in UTF-8 nor in Windows-1252 (row "
                f"{self.unknown_line:,}); convert it to UTF-8 from the encoding it was written in."
            )
        if self.windows:
            return "windows-1252"
        return "latin-1" if self.other_line else "utf-8"


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _refuse_binary(name: str, start: bytes) -> None:
    head = start[:4096]
    even, odd_nul = head[::2].count(0), head[1::2].count(0)
    if min(even, odd_nul) * 8 < len(head) < max(even, odd_nul) * 3 and _has_letters(head):
        raise RecordsError(f"{name} looks like UTF-16 without a mark; save it as UTF-8.")
    odd = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
    if odd > max(1, len(head) // 50):
        raise RecordsError(f"{name} is a binary file, not text; export the records as CSV.")


def _has_letters(head: bytes) -> bool:
    """Tell text with a NUL beside each letter from numbers with NULs: nearly all is printable."""
    seen = head.replace(b"\0", b"")
    plain = sum(32 <= byte < 127 or byte in b"\t\r\n" for byte in seen)
    return plain > 0.95 * len(seen)
