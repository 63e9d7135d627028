"""The kind of a file by its content, not its name; a kind that isn't read is refused by name."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.records.sources.text_files import detect_compression, is_utf8, open_bytes

HEAD_BYTES = 1 << 16
_MAGIC_BYTES = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"\xff\xff\xff\xff", "arrow"),
    (b"SQLite format 3", "sqlite"),
    (b"$FL2", "sav"),
    (b"$FL3", "sav"),
    (b"<stata_dta>", "dta"),
    (b"HEADER RECORD*******LIB", "xport"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "workbook"),
    (bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011"), "sas7bdat"),
)
_EXPORT_AS_CSV, _UNPACK = Message("kind.export"), Message("kind.unpack")
_TO_PARQUET = Message("kind.to_parquet")
# Known kinds that aren't read: how such a file begins, what it is, what to do.
_REFUSED: tuple[tuple[bytes | tuple[bytes, ...], str, str], ...] = (
    (b"%PDF-", "a PDF document", _EXPORT_AS_CSV),
    (b"{\\rtf", Message("kind.rtf"), _EXPORT_AS_CSV),
    (b"\x89HDF", Message("kind.hdf5"), _EXPORT_AS_CSV),
    (b"Obj\x01", Message("kind.avro"), _TO_PARQUET),
    (b"FEA1\0", Message("kind.feather1"), Message("kind.feather2")),
    (b"\x00\x01\x00\x00Standard ", Message("kind.access"), Message("kind.export_tables")),
    ((b"\x80\x02}", b"\x80\x03", b"\x80\x04\x95", b"\x80\x05\x95"), "a Python pickle", _TO_PARQUET),
    (b"BZh91AY&SY", Message("kind.bzip2"), _UNPACK),
    (b"\xfd7zXZ", Message("kind.xz"), _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (b"Rar!\x1a", "a RAR archive", _UNPACK),
    (b"\x1f\x9d", Message("kind.compress"), _UNPACK),
    (b"\x04\x22\x4d\x18", Message("kind.lz4"), _UNPACK),
)
_MARKUP = re.compile(
    rb"<(!doctype|!--|\?xml|(html|head|body|table|meta|div|script|style|svg|form|pre|center)\b)",
    re.IGNORECASE,
)


def detect_kind(file: Path) -> str:
    """Return the kind of a file, or refuse one that isn't read.

    It is 'parquet', 'arrow', 'sqlite', 'duckdb', 'workbook', 'zip', 'sas7bdat', 'xport', 'dta',
    'sav', 'por', 'json' or 'text'.
    """
    try:
        with file.open("rb") as stream:
            start = stream.read(512)
    except OSError as error:
        reason = error.strerror or Message("source.cannot_open")
        raise RecordsError("file.unreadable", file=file.name, reason=reason) from None
    if (kind := _kind_by_magic(start)) is not None:
        return kind
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        try:
            with zipfile.ZipFile(file) as archive:
                names = set(archive.namelist())
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            raise RecordsError("kind.damaged_zip", file=file.name) from None
        books = {"xl/workbook.xml", "xl/workbook.bin", "content.xml"}
        return "workbook" if names & books else "zip"
    with open_bytes(file, detect_compression(file)) as stream:
        return _kind_by_text(file.name, stream.read(HEAD_BYTES))


def _kind_by_magic(start: bytes) -> str | None:
    for mark, kind in _MAGIC_BYTES:
        if start.startswith(mark):
            return kind
    if start[8:12] == b"DUCK":
        return "duckdb"
    if len(start) > 4 and 104 <= start[0] <= 115 and start[1] in (1, 2) and start[2] == 1:
        return "dta"
    return "por" if b"SPSS PORT FILE" in start else None


def _kind_by_text(name: str, start: bytes) -> str:
    """Return the kind of a file by its first bytes, unpacked."""
    for mark, what, remedy in _REFUSED:
        if start.startswith(mark):
            raise RecordsError("kind.other", name=name, what=what, remedy=remedy)
    if start.startswith((b"X\n\0\0", b"RDX2\nX\n", b"RDX3\nX\n")):
        raise RecordsError("kind.r", name=name, remedy=Message("kind.in_r"))
    if start.startswith(b"ORC") and b"\0" in start[:512]:
        raise RecordsError("kind.orc", name=name)
    if start[257:262] == b"ustar":
        raise RecordsError("kind.tar", name=name, remedy=_UNPACK)
    if _kind_by_magic(start) is not None or start.startswith(b"PK\x03\x04"):
        raise RecordsError("kind.packed", name=name, remedy=_UNPACK)
    if _is_ebcdic(start):
        raise RecordsError("kind.ebcdic", name=name)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        start = start.decode("utf-16", errors="ignore").encode(errors="ignore")
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if _MARKUP.match(text):
        what = Message("kind.xml") if text.startswith(b"<?xml") else Message("kind.html")
        raise RecordsError("kind.no_table", name=name, what=what)
    return "json" if text.startswith((b"{", b"[")) else "text"


def _is_ebcdic(start: bytes) -> bool:
    """Return whether bytes are mainframe text: letters and digits above 128, hardly any ASCII."""
    if len(start) < 16 or start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    usual = len(start) - len(start.translate(None, _EBCDIC))
    high = len(start.translate(None, bytes(range(128))))
    return usual > 0.97 * len(start) and high > 0.4 * len(start) and not is_utf8(start[:-4])


# Letters, digits, blanks, line ends and punctuation of code page 037.
_EBCDIC = bytes(
    byte
    for byte in range(256)
    if byte in (0x05, 0x0D, 0x15, 0x25)
    or (0x40 <= byte <= 0x7F)
    or (byte > 127 and chr(byte).encode("latin-1").decode("cp037").isascii())
)
