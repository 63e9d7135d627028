"""Native readers in a process of their own, and the texts of the cells that they read."""

import sys
from datetime import date, datetime, time

import pytest

from comorb.errors import RecordsError
from comorb.records.sources import files, native
from comorb.records.sources.files import Limits
from comorb.records.sources.native import (
    format_cell,
    format_number,
    read_text_columns,
    run_isolated,
    write_text_columns,
)


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
    assert run_isolated(echo, "damaged", file, "b c") == {"texts": [file, "b c"]}


def test_a_refusal_is_raised(file):
    with pytest.raises(RecordsError, match=r"^it is refused$"):
        run_isolated(refuse, "damaged", file, "it")


@pytest.mark.parametrize("task", [crash, fail, wait])
def test_no_answer_means_damage(task, file, monkeypatch):
    monkeypatch.setattr(native, "_BASE_SECONDS", 5)
    with pytest.raises(RecordsError, match=r"^the file is damaged$") as caught:
        run_isolated(task, "the file is damaged", file)
    assert "SECRET77" not in str(caught.value.__context__)


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on memory there")
def test_a_reader_has_so_much_memory(file):
    with pytest.raises(RecordsError, match=r"^ñ.xlsx needs more than 4.3 GB of memory to be read"):
        run_isolated(swell, "the file is damaged", file)


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on memory there")
def test_a_limit_on_memory_is_that_of_a_reader_too(file):
    files.set_limits(Limits(memory=2_000_000_000))
    try:
        with pytest.raises(RecordsError, match=r"needs more than 2\.0 GB of memory to be read"):
            run_isolated(swell, "the file is damaged", file)
    finally:
        files.set_limits(Limits())


def test_columns_go_through_a_file(tmp_path):
    parts = [[["a", None], ["1", "2"]], [["b"], [None]]]
    write_text_columns(str(tmp_path / "out"), ["x", "y"], parts, "the file")
    assert read_text_columns(tmp_path / "out").to_pydict() == {
        "x": ["a", None, "b"],
        "y": ["1", "2", None],
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (428.0, "428"),
        (250.1, "250.1"),
        (0.1 + 0.2, "0.3"),
        (-7.0, "-7"),
        (123456789012345.0, "123456789012345"),
        (float("nan"), None),
        (float("inf"), "inf"),
        (1e300, "1e+300"),
    ],
)
def test_numbers(value, text):
    assert format_number(value) == text


def test_a_number_of_few_digits():
    assert format_number(250.10000610351562, 7) == "250.1"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("", None),
        ("428.0", "428.0"),
        (True, "true"),
        (7, "7"),
        (2**60 + 1, str(2**60 + 1)),
        (date(2010, 2, 3), "2010-02-03"),
        (datetime(2010, 2, 3), "2010-02-03"),
        (datetime(2010, 2, 3, 4, 5), "2010-02-03 04:05:00"),
        (time(4, 5), "04:05:00"),
    ],
)
def test_cells(value, text):
    assert format_cell(value) == text
