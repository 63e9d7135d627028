import pytest

from comorb.records.codes.icd9 import PROCEDURES


@pytest.mark.parametrize(
    ("raw", "code", "state"),
    [
        ("38.93", "3893", "ok"),
        ("3893", "3893", "ok"),
        ("38.9", "389", "ok"),
        ("38", "38", "ok"),
        ("3.31", "0331", "repaired"),
        ("03.31", "0331", "ok"),
        ("3", "", "malformed"),
        ("428.0", "", "malformed"),
        ("42823", "", "malformed"),
        ("V45", "", "malformed"),
        ("?", "", "missing"),
    ],
)
def test_codes_are_normalised(raw, code, state):
    assert PROCEDURES.normalise(raw) == (code, state)


def test_zeros_that_a_column_of_numbers_lost_are_put_back():
    assert PROCEDURES.restore_zeros(
        ["9604", "3893", "9671", "8856", "66", " 331 ", "389", "V1"]
    ) == {"66": "0066"}


def test_a_column_that_kept_its_zeros_or_is_short_stays():
    assert PROCEDURES.restore_zeros(["9604", "0066", "66"]) == {}
    assert PROCEDURES.restore_zeros(["96", "38", "66", "9604"]) == {}


def test_every_category_has_its_chapter_and_title():
    for number in range(100):
        code = f"{number:02}"
        first, last = PROCEDURES.roll_up(code, "chapter").split("-")
        assert first <= code <= last
        assert PROCEDURES.name(code) != code
    assert len(PROCEDURES.chapters()) == 18
