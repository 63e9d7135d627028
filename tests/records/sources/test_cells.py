from datetime import date, datetime, time

import pytest

from comorb.records.sources.cells import cell_text, number_text


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
    assert number_text(value) == text


def test_a_number_of_few_digits():
    assert number_text(250.10000610351562, 7) == "250.1"


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
    assert cell_text(value) == text
