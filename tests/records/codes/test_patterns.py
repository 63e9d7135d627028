"""Patterns: one text for several codes, and how many it stands for."""

import pytest

from comorb.errors import RecordsError
from comorb.records.codes.patterns import is_pattern, listed, places
from tests.records.helpers import make

CODES = ("042", "402", "404", "4280", "V01", "V10", "V91", "E880", "CCS9", "CCS108", "drug:A10B")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("V*", ["V01", "V10", "V91"]),
        ("v%", ["V01", "V10", "V91"]),
        ("V01-V91", ["V01", "V10", "V91"]),
        ("V01–10", ["V01", "V10"]),
        ("all V codes", ["V01", "V10", "V91"]),
        ("E codes", ["E880"]),
        ("todos los códigos V", ["V01", "V10", "V91"]),
        ("codis V", ["V01", "V10", "V91"]),
        ("402-404", ["402", "404"]),
        ("402 to 404", ["402", "404"]),
        ("1-405", ["042", "402", "404"]),
        ("42*", ["4280"]),
        ("4*0", ["4280"]),
        ("428.-", ["4280"]),
        ("428.x", ["4280"]),
        ("CCS1-CCS10", ["CCS9"]),
        ("drug:A*", ["drug:A10B"]),
        ("A10*", ["drug:A10B"]),
        ("402", ["402"]),
        ("Q*", []),
        ("heart failure", []),
    ],
)
def test_a_text_stands_for_codes(text, meant):
    assert [CODES[i] for i in places(text, CODES, [False] * len(CODES))] == meant


def test_a_code_that_looks_like_a_range_is_the_code():
    chapters = ("390-459", "391", "460-519")
    assert places("390-459", chapters, [False] * 3) == [0]


def test_lists_have_commas_semicolons_tabs_or_lines_between():
    assert listed('402, 404;V*\n"428"\t') == ["402", "404", "V*", "428"]
    assert is_pattern("402, 404")
    assert not is_pattern("428.0")


@pytest.fixture
def cohort():
    rows = [[1, 1, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1], [1, 1, 1, 1], [0, 0, 0, 1]]
    return make(rows, ("250", "428", "V58", "585"))


def test_rules_take_patterns_and_lists_and_the_ledger_counts_them(cohort):
    kept = cohort.having("V*, 250")
    assert kept.ids.to_pylist() == ["r0", "r2", "r3"]
    assert kept.ledger.chain("records")[-1].rule == "having V* (1 codes) or 250"
    assert cohort.without("200-300").ids.to_pylist() == ["r1", "r2", "r4"]
    left = cohort.drop_codes("400-600")
    assert left.codes == ("250", "V58")
    assert left.left_out == ("428", "585")
    assert left.ledger.chain("features")[-1].rule == "drop 400-600 (2 codes)"
    assert cohort.matched("V*\n4*, Q1") == {"V*": ("V58",), "4*": ("428",), "Q1": ()}


def test_a_part_that_matches_nothing_is_refused(cohort):
    with pytest.raises(RecordsError, match=r"No record has a code like 'Q\*' at the level"):
        cohort.having("V*, Q*")
    with pytest.raises(RecordsError, match=r"the code 'CHF' .* The nearest are 428"):
        cohort.having("CHF")


def test_a_pattern_of_codes_that_rules_left_out_matches_nothing(cohort):
    assert cohort.without("250").without("25*").ids.to_pylist() == ["r1", "r2", "r4"]
