"""Patterns that stand for several codes, and everyday words in three languages."""

import pytest

from comorb.errors import RecordsError
from comorb.records.codes.search import (
    everyday_words,
    find_codes,
    fold_text,
    is_pattern,
    split_list,
)
from comorb.records.codes.systems import SYSTEMS
from comorb.records.codes.tables import expand_span, read_table
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
    assert [CODES[i] for i in find_codes(text, CODES, [False] * len(CODES))] == meant


def test_a_code_that_looks_like_a_range_is_the_code():
    chapters = ("390-459", "391", "460-519")
    assert find_codes("390-459", chapters, [False] * 3) == [0]


def test_lists_have_commas_semicolons_tabs_or_lines_between():
    assert split_list('402, 404;V*\n"428"\t') == ["402", "404", "V*", "428"]
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


@pytest.mark.parametrize(
    ("word", "icd9", "icd10"),
    [
        ("CHF", "428", "I50"),
        ("COPD", "496", "J44"),
        ("heart attack", "410", "I21"),
        ("stroke", "434", "I63"),
        ("kidney failure", "585", "N18"),
        ("high blood pressure", "401", "I10"),
        ("infarto", "410", "I21"),
        ("ictus", "436", "I64"),
        ("EPOC", "496", "J44"),
        ("MPOC", "491", "J41"),
        ("insuficiència cardíaca", "428", "I50"),
        ("neumonía", "486", "J18"),
        ("atrial fibrillation", "427", "I48"),
    ],
)
def test_a_word_means_codes_of_either_edition(word, icd9, icd10):
    for code, system in ((icd9, "icd9cm"), (icd10, "icd10cm"), (f"icd9cm:{icd9}", "icd9cm+icd10")):
        ((words),) = everyday_words([code], [""], system)
        assert fold_text(word) in words, code


def test_a_full_code_is_meant_by_how_it_begins_and_a_category_by_what_is_in_it():
    codes = ["42731", "42789", "427", "403", "585"]
    words = everyday_words(codes, ["", "", "", "Hypertensive chronic kidney disease", ""], "icd9cm")
    assert ["afib" in one for one in words] == [True, False, True, False, False]
    assert ["ckd" in one for one in words] == [False, False, False, False, True]


def test_groups_and_titles_are_known_by_the_words_too():
    groups = everyday_words(["CCS108", "CCS1", "CIR019"], ["", "", ""], "icd9cm+icd10cm")
    assert ["chf" in words for words in groups] == [True, False, True]
    (opaque,) = everyday_words(["84114007"], ["Heart failure (disorder)"], "opaque")
    assert "insuficiencia cardiaca" in opaque
    assert everyday_words(["999"], ["Nothing of the kind"], "icd9cm") == ((),)


@pytest.mark.parametrize(("column", "key"), [("icd9", "icd9cm"), ("icd10", "icd10cm")])
def test_every_code_of_the_table_is_one_of_its_system(column, key):
    for row in read_table("everyday_words.csv"):
        for part in row[column].split():
            for stem in expand_span(part) or [part]:
                assert SYSTEMS[key].normalise(stem).code == stem, (row["words"], stem)


def test_no_word_is_there_twice_in_a_line():
    for row in read_table("everyday_words.csv"):
        words = row["words"].split(";")
        assert all(word == word.strip() for word in words)
        assert len({word.lower() for word in words}) == len(words)
