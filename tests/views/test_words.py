"""Numbers, days and sentences as each language writes them."""

from __future__ import annotations

import pytest

from comorb.views.words import ENGLISH, Words

ES, CA = Words("es"), Words("ca")


@pytest.mark.parametrize(
    ("value", "english", "other"),
    [
        (1234.5, "1,234.5", "1.234,5"),
        (22.25, "22.3", "22,3"),
        (-0.04, "0.0", "0,0"),
        (float("inf"),) + ("–",) * 2,
        (12.0, "12.0", "12,0"),
        (None, "–", "–"),
        (float("nan"),) + ("–",) * 2,
    ],
)
def test_numbers(value: float | None, english: str, other: str) -> None:
    assert ENGLISH.number(value) == english
    assert ES.number(value) == CA.number(value) == other


def test_shares_and_counts() -> None:
    assert ENGLISH.percent(0.123) == "12%"
    assert ES.percent(0.1234, 1) == "12,3\u00a0%"
    assert CA.percent(0.0042) == "0,4\u00a0%"
    assert ENGLISH.percent(0.0001) == "<0.1%"
    assert ES.count(1234567) == "1.234.567"
    assert ENGLISH.count(None) == ENGLISH.percent(None) == "–"


def test_names_are_listed_as_in_a_sentence() -> None:
    assert ENGLISH.listed(["age"]) == "age"
    assert CA.listed(["edat", "sexe", "lloc"]) == "edat, sexe i lloc"


def test_days() -> None:
    assert ENGLISH.date("2026-04-01") == "1 April 2026"
    assert ES.date("2026-04-01") == "1 de abril de 2026"
    assert CA.date("2026-04-01") == "1 d'abril de 2026"
