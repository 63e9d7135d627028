"""Numbers, days and sentences as each language writes them."""

from __future__ import annotations

import pytest

from comorb.insight.views.words import ENGLISH, Words

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


def test_what_is_said_in_english() -> None:
    assert ES.said("read") == ES("said.read")
    assert ES.said("having 428") == "con 428"
    assert ENGLISH.said("having 428") == "having 428"
    assert ES.said("having 4280") == "con 4280"
    assert ES.said("having 428.0") == "con 428.0"
    assert "1.234" in ES.said("1,234 records have no age and are in no slice")
    assert ES.said("Nobody has said this before") == "Nobody has said this before"
    two = (
        "It is the largest number that was looked at. It is the largest number that was looked at."
    )
    assert CA.said(two) == f"{CA('said.reason.largest')} {CA('said.reason.largest')}"
