"""The tables that come with the package agree with the published files."""

import csv

import pytest

from comorb.records.codes.tables import (
    add_prefixes,
    expand_span,
    icd9_is_chronic,
    icd10_is_chronic,
    read_equivalents,
    read_mapping_file,
    read_table,
)


@pytest.mark.parametrize(
    ("text", "prefixes"),
    [
        ("K70-K72", ["K70", "K71", "K72"]),
        ("4254-4259", ["4254", "4255", "4256", "4257", "4258", "4259"]),
        ("042-044", ["042", "043", "044"]),
        ("I99-I99", ["I99"]),
        ("B20", []),
        ("A98-B01", []),
        ("K72-K70", []),
        ("K7-K70", []),
        ("", []),
    ],
)
def test_spans(text, prefixes):
    assert expand_span(text) == prefixes


def test_prefixes_have_what_their_codes_agree_on():
    assert add_prefixes({"4280": "a", "4281": "a", "4290": "a", "42911": "b"}) == {
        "428": "a",
        "4280": "a",
        "4281": "a",
        "429": None,
        "4290": "a",
        "4291": "b",
        "42911": "b",
    }


def test_equivalents_are_one_choice_or_one_of_each_of_several():
    both = read_equivalents("icd10cmtoicd9gem.csv")
    assert both["A000"] == (("0010",),)
    assert all(len(choice) >= 1 for choice in both["T451X5A"])
    assert len(both["T451X5A"]) == 2


def test_own_tables_are_read_by_row():
    assert read_table("atc_chapters.csv")[0] == {
        "code": "A",
        "title": "Alimentary tract and metabolism",
    }


def published(file, skipped, place):
    lines = csv.reader(read_mapping_file(file).splitlines()[skipped:])
    return {row[0].strip("' "): row[place].strip("' ") for row in lines}


@pytest.mark.parametrize(
    ("file", "skipped", "place", "indicator", "size"),
    [
        ("cci2015.csv", 1, 2, icd9_is_chronic, 13_769),
        ("CCIR_v2023-1.csv", 3, 2, icd10_is_chronic, 73_000),
    ],
)
def test_every_published_line_is_read(file, skipped, place, indicator, size):
    rows = published(file, skipped, place)
    assert len(rows) >= size
    expected = {"0": False, "1": True, "9": None}
    for code, said in rows.items():
        assert indicator(code) is expected[said], code


@pytest.mark.parametrize(
    ("indicator", "code", "chronic"),
    [
        (icd9_is_chronic, "250", True),
        (icd9_is_chronic, "480", False),
        (icd9_is_chronic, "070", None),
        (icd9_is_chronic, "42823999", True),
        (icd10_is_chronic, "E11", True),
        (icd10_is_chronic, "J18", False),
        (icd10_is_chronic, "U99", None),
    ],
)
def test_headings_have_what_their_codes_agree_on(indicator, code, chronic):
    assert indicator(code) is chronic
