"""What can't be read is called what it is."""

import gzip

import pytest

from comorb.errors import RecordsError
from comorb.records.read import read_records
from comorb.records.sources.kinds import detect_kind

TEXT = "visit_id,dx1,dx2\n" + "".join(f"{i},4280,25000\n" for i in range(50))
REFUSED = {
    "PDF": (b"%PDF-1.7\n" + bytes(90), "is a PDF document; export the records as CSV"),
    "RTF": (b"{\\rtf1\\ansi id,dx1}", r"is a text with formatting \(RTF\)"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(90), "is an HDF5 file"),
    "ORC": (b"ORC\n\x06\x12" + bytes(90), "is an ORC file; write it as Parquet"),
    "Avro": (b"Obj\x01\x04" + bytes(90), "is an Avro file; write it as Parquet"),
    "Feather 1": (b"FEA1\0\0\0\0" + bytes(90), "is a Feather file of version 1"),
    "Access": (b"\0\1\0\0Standard Jet DB\0" + bytes(90), "is an Access database; export"),
    "pickle": (b"\x80\x04\x95\x10\0\0\0\0\0\0\0}", "is a Python pickle; write it as Parquet"),
    "bzip2": (b"BZh91AY&SY" + bytes(90), "is packed by bzip2; unpack it"),
    "xz": (b"\xfd7zXZ\0" + bytes(90), "is packed by xz; unpack it"),
    "7z": (b"7z\xbc\xaf\x27\x1c" + bytes(90), "is a 7z archive; unpack it"),
    "RAR": (b"Rar!\x1a\x07" + bytes(90), "is a RAR archive; unpack it"),
    "lz4": (b"\x04\x22\x4d\x18" + bytes(90), "is packed by lz4"),
    "compress": (b"\x1f\x9d\x90" + bytes(90), "is packed by compress"),
    "rds": (gzip.compress(b"X\n\0\0\0\3" + bytes(90)), r"is a file of R; .* with write.csv\(\)"),
    "RData": (gzip.compress(b"RDX3\nX\n\0\0\0\3" + bytes(90)), "is a file of R"),
    "rds, unpacked": (b"X\n\0\0\0\3" + bytes(90), "is a file of R"),
    "tar": (bytes(257) + b"ustar\0" + bytes(300), "is a tar archive; unpack it"),
    "tar.gz": (gzip.compress(bytes(257) + b"ustar\0" + bytes(300)), "is a tar archive"),
    "packed Parquet": (gzip.compress(b"PAR1" + bytes(90)), "is packed, and not a text inside"),
    "HTML": (b"\n<!DOCTYPE html><html><body>Sign in</body>", r"is a web page \(HTML\), not a tab"),
    "a table in HTML": (b"<table><tr><td>428.0</td></tr></table>", r"is a web page .* as .xlsx"),
    "HTML in UTF-16": ("<html><body>x</body></html>".encode("utf-16"), r"is a web page \(HTML\)"),
    "a part of a page": (b"<div class='a;b'>\n<p>1,2</p></div>", r"is a web page \(HTML\)"),
    "XML": (b'<?xml version="1.0"?><Workbook/>', "is an XML file, not a table"),
    "EBCDIC": (TEXT.encode("cp037"), r"is in EBCDIC, .* convert it to UTF-8 \(iconv"),
    "numbers": (bytes([1, 0, 2, 0, 3, 0, 4, 0]) * 300, "is a binary file, not text"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_by_its_name(case, tmp_path):
    data, message = REFUSED[case]
    path = tmp_path / "file.csv"
    path.write_bytes(data)
    with pytest.raises(RecordsError, match=f"^file.csv {message}"):
        read_records(path)


@pytest.mark.parametrize(
    "header", ["ORC", "FEA1,FEA2", "ORCID", "BZh", "html", "A", "Rar!", "x<table", "<id>,<dx1>"]
)
def test_columns_named_like_another_kind(header, tmp_path):
    path = tmp_path / "file.csv"
    path.write_text(f"{header}\n2\n3\n")
    assert detect_kind(path) == "text"


def test_kinds_by_content(tmp_path):
    for data, kind in (
        (b"$FL2@(#) SPSS", "sav"),
        (b"$FL3@(#) SPSS", "sav"),
        (b"<stata_dta><header>", "dta"),
        (b"\x72\x02\x01\x00" + bytes(20), "dta"),
        (b"HEADER RECORD*******LIBRARY HEADER RECORD", "xport"),
        (b"HEADER RECORD*******LIBV8   HEADER RECORD", "xport"),
        (bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011"), "sas7bdat"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "workbook"),
        (b"ASCII SPSS PORT FILE", "por"),
        (b"\xef\xbb\xbf\n {", "json"),
        (gzip.compress(b"[ {}]"), "json"),
        ("código;edad\n".encode("latin-1"), "text"),
    ):
        (tmp_path / "file.csv").write_bytes(data)
        assert detect_kind(tmp_path / "file.csv") == kind


def test_a_damaged_archive(tmp_path):
    (tmp_path / "file.xlsx").write_bytes(b"PK\x03\x04" + bytes(90))
    with pytest.raises(RecordsError, match=r"file.xlsx is a damaged or cut-off zip archive or"):
        read_records(tmp_path / "file.xlsx")


def test_a_file_that_may_not_be_opened(tmp_path, monkeypatch):
    path = tmp_path / "file.csv"
    path.write_text("id,dx1\n")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(RecordsError, match=r"file.csv can't be read: Permission denied\. Check"):
        detect_kind(path)
