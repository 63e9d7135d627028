"""Everyday words: one table, three languages, every level."""

import pytest

from comorb.records.codes.everyday import everyday_words, folded
from comorb.records.codes.systems import SYSTEMS
from comorb.records.codes.tables import own_rows, span


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
        assert folded(word) in words, code


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
    for row in own_rows("everyday_words.csv"):
        for part in row[column].split():
            for stem in span(part) or [part]:
                assert SYSTEMS[key].normalise(stem).code == stem, (row["words"], stem)


def test_no_word_is_there_twice_in_a_line():
    for row in own_rows("everyday_words.csv"):
        words = row["words"].split(";")
        assert all(word == word.strip() for word in words)
        assert len({word.lower() for word in words}) == len(words)
