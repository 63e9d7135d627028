"""Slices by numbers, texts and times, and every reason why there are none."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from comorb.errors import InputError
from comorb.insight.profile.cutting import By, cut, default_slices

TABLE = pa.table(
    {
        "age": [10.0, 18, 44, 45, 79, None],
        "sex": ["f", "m", "f", None, "m", "f"],
        "date": [
            date(2008, 1, 1),
            date(2008, 4, 1),
            date(2009, 1, 5),
            None,
            *[date(2009, 2, 1)] * 2,
        ],
        "one": ["x"] * 6,
        "none": pa.array([None] * 6, pa.string()),
        "score": [1, 2, 2, 3, 1, 1],
        "days_of_care": [1, 2, 3, 4, 5, 6],
    }
)


@pytest.mark.parametrize(
    ("by", "labels", "places"),
    [
        ("age", ("≤ 17", "18–44", "45–64", "65–79"), [0, 1, 1, 2, 3, -1]),
        ("age:45", ("≤ 44", "≥ 45"), [0, 0, 0, 1, 1, -1]),
        ("age:q2", ("≤ 43", "≥ 44"), [0, 0, 1, 1, 1, -1]),
        ("age:18.5,46", ("… – 18.5", "18.5 – 46", "46 – …"), [0, 0, 1, 1, 2, -1]),
        ("sex", ("f", "m"), [0, 1, 0, -1, 1, 0]),
        ("score", ("1", "2", "3"), [0, 1, 1, 2, 0, 0]),
        ("year", ("2008", "2009"), [0, 0, 1, -1, 1, 1]),
        ("quarter", ("2008 Q1", "2008 Q2", "2009 Q1"), [0, 1, 2, -1, 2, 2]),
        ("month", ("2008-01", "2008-04", "2009-01", "2009-02"), [0, 1, 2, -1, 3, 3]),
    ],
)
def test_records_are_cut(by: str, labels: tuple[str, ...], places: list[int]) -> None:
    made = cut(TABLE, By.of(by))
    assert (made.labels, made.places.tolist()) == (labels, places)
    assert made.ordered == (by != "sex")


def test_bands_that_hold_nobody_are_left_out() -> None:
    assert cut(TABLE, By.of("age:18,19,20,45")).labels == ("≤ 17", "18", "20–44", "≥ 45")


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("ward", "expected one of the records' columns (age, sex, date"),
        ("one", "'one' has the same value in all records; name another column"),
        ("none", "'none' holds no value; name another column"),
        ("age:200", "'age' has the same value in all records"),
        ("sex:18", "expected numbers to cut, but 'sex' holds texts"),
        ("age:40,20", "cut points in ascending order or a number of quantiles"),
        ("age:q1", "such as 'age', 'age:18,45,65' or 'age:q4', got 'age:q1'"),
        (":18", "expected a column"),
        ("age:x", "expected a column"),
    ],
)
def test_what_can_t_be_cut_is_said(by: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        cut(TABLE, By.of(by))
    assert said in str(error.value)


def test_too_many_values_and_texts_for_dates_are_said() -> None:
    many = pa.table({"ward": [str(i) for i in range(40)], "date": ["soon"] * 40})
    with pytest.raises(InputError, match="at most 24 slices, but 'ward' has 40 different values"):
        cut(many, By("ward"))
    with pytest.raises(InputError, match="the column 'date' holds none that can be read"):
        cut(many, By("year"))


def test_many_numbers_are_cut_in_four() -> None:
    made = cut(pa.table({"cost": list(range(1, 101))}), By("cost"))
    assert len(made.labels) == 4


def test_what_is_cut_by_when_nothing_is_said() -> None:
    assert [by.name for by in default_slices(TABLE)] == ["age", "sex", "quarter"]
    assert str(By.of("age:q4")) == "age:q4"
    assert str(By.of("age:18,45")) == "age:18,45"
