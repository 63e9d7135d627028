"""Rough numbers of rows and records."""

from __future__ import annotations

import pytest

from comorb.profiles.rounded import round_count, round_lines, round_notes
from comorb.records.ledger import Line


@pytest.mark.parametrize("least", [2, 11, 30])
def test_few_are_one_answer_and_the_rest_has_two_digits(least: int) -> None:
    assert {round_count(count, least) for count in range(least)} == {None}
    for count in range(least, 5000):
        told = round_count(count, least)
        assert told is not None
        assert told % 10 == 0
        assert told >= least
        assert len(str(told).rstrip("0")) <= 2
        assert abs(told - count) <= max(10, 0.05 * count + least)


def test_lines_of_different_codes_are_left_out() -> None:
    lines = (Line("records", "having 428", 151_551, 16_476), Line("features", "read", 900, 783))
    assert round_lines(lines, 11) == (Line("records", "having 428", 150_000, 16_000),)


def test_counts_in_notes_are_rough_and_other_numbers_stay() -> None:
    notes = [
        "3 rows without an id, 1,234 of 5,678 cells are empty",
        "ICD-9 and 2 kinds; true clusters: 1 Metabolic; dates before 2015-10-01; age 85 and over",
    ]
    assert round_notes(notes, 11) == (
        "fewer than 11 rows without an id, 1,200 of 5,700 cells are empty",
        notes[1],
    )
