import sys

import pytest

from comorb.errors import RecordsError
from comorb.records.sources import apart, limits
from comorb.records.sources.apart import read_text_columns, run_apart, write_text_columns
from comorb.records.sources.limits import Limits


def echo(*texts):
    return {"texts": texts}


def refuse(file, what):
    return {"refusal": f"{what} is refused"}


def crash(file):
    import os

    os.abort()


def fail(file):
    raise ValueError("SECRET77")


def wait(file):
    import time

    time.sleep(600)


def swell(file):
    return {"size": len(bytearray(8 << 30))}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "ñ.xlsx"
    path.write_bytes(b"123")
    return str(path)


def test_an_answer_comes_back(file):
    assert run_apart(echo, "damaged", file, "b c") == {"texts": [file, "b c"]}


def test_a_refusal_is_raised(file):
    with pytest.raises(RecordsError, match=r"^it is refused$"):
        run_apart(refuse, "damaged", file, "it")


@pytest.mark.parametrize("task", [crash, fail, wait])
def test_no_answer_means_damage(task, file, monkeypatch):
    monkeypatch.setattr(apart, "_SECONDS", 5)
    with pytest.raises(RecordsError, match=r"^the file is damaged$") as caught:
        run_apart(task, "the file is damaged", file)
    assert "SECRET77" not in str(caught.value.__context__)


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on memory there")
def test_a_reader_has_so_much_memory(file):
    with pytest.raises(RecordsError, match=r"^ñ.xlsx needs more than 4.3 GB of memory to be read"):
        run_apart(swell, "the file is damaged", file)


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on memory there")
def test_a_limit_on_memory_is_that_of_a_reader_too(file):
    limits.impose(Limits(memory=2_000_000_000))
    try:
        with pytest.raises(RecordsError, match=r"needs more than 2\.0 GB of memory to be read"):
            run_apart(swell, "the file is damaged", file)
    finally:
        limits.impose(Limits())


def test_columns_go_through_a_file(tmp_path):
    parts = [[["a", None], ["1", "2"]], [["b"], [None]]]
    write_text_columns(str(tmp_path / "out"), ["x", "y"], parts, "the file")
    assert read_text_columns(tmp_path / "out").to_pydict() == {
        "x": ["a", None, "b"],
        "y": ["1", "2", None],
    }
