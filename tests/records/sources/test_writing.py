import random

import pytest

from comorb.errors import RecordsError
from comorb.records.sources.writing import look_through, rewrite


def looked(folder, data):
    path = folder / "file.csv"
    path.write_bytes(data)
    return path, look_through(path)


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"id,town\n1,Vic\n", "utf-8"),
        ("id,town\n1,Logroño\n".encode(), "utf-8"),
        ("id,town\n1,Logroño\n".encode("latin-1"), "latin-1"),
        ("id,price\n1,5 €\n".encode("cp1252"), "windows-1252"),
        ("id,town\n1,Logroño\n".encode("utf-16"), "utf-16"),
    ],
)
def test_encodings(data, encoding, tmp_path):
    assert looked(tmp_path, data)[1].encoding == encoding


def test_an_encoding_that_is_not_known(tmp_path):
    with pytest.raises(RecordsError, match=r"neither in UTF-8 nor in Windows-1252 \(row 2\)"):
        looked(tmp_path, "id,town\n1,München\n".encode("cp850"))


@pytest.mark.parametrize(
    ("data", "mixed"),
    [
        (b"a\nb\n", False),
        (b"a\r\nb\r\n", False),
        (b"a\rb\r", False),
        (b"a\rb\rc\r\n", True),
        (b"a\r\nb\n", True),
        (b"a\rb\n", True),
    ],
)
def test_line_ends(data, mixed, tmp_path):
    assert looked(tmp_path, data)[1].mixed is mixed


def test_a_copy_keeps_what_stands_in_quotes(tmp_path):
    path, writing = looked(tmp_path, b'a,b\r1,"x\r\ny"\r2,"p""q\rz"\r\n')
    rewrite(path, writing, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b'a,b\n1,"x\r\ny"\n2,"p""q\rz"\n'


def test_a_copy_does_not_depend_on_where_chunks_end(tmp_path, monkeypatch):
    picked = random.Random(3)
    text = "".join(picked.choice(['"', "a", "\r\n", "\r", "\n", "ñ"]) for _ in range(400))
    path, _ = looked(tmp_path, text.encode("utf-16"))
    copies = set()
    for size in (2, 3, 7, 1 << 20):
        monkeypatch.setattr("comorb.records.sources.writing._CHUNK", size)
        rewrite(path, look_through(path), tmp_path / "copy")
        copies.add((tmp_path / "copy").read_bytes())
    assert len(copies) == 1


def test_many_chunks_of_a_file_with_the_line_ends_of_old_macs(tmp_path, monkeypatch):
    monkeypatch.setattr("comorb.records.sources.writing._CHUNK", 16)
    _, writing = looked(tmp_path, b"id,dx1\r" * 20)
    assert (writing.mixed, writing.encoding) == (False, "utf-8")
    _, writing = looked(tmp_path, b"id,dx1\r" * 20 + b"7,I10\r\n")
    assert writing.mixed
