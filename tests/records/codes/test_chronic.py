"""The indicators agree with the published files, line by line, and with their headings."""

import csv

import pytest

from comorb.records.codes.chronic import icd9_indicator, icd10_indicator
from comorb.records.codes.tables import mapping_file


def published(file, skipped, place):
    lines = csv.reader(mapping_file(file).splitlines()[skipped:])
    return {row[0].strip("' "): row[place].strip("' ") for row in lines}


@pytest.mark.parametrize(
    ("file", "skipped", "place", "indicator", "size"),
    [
        ("cci2015.csv", 1, 2, icd9_indicator, 13_769),
        ("CCIR_v2023-1.csv", 3, 2, icd10_indicator, 73_000),
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
        (icd9_indicator, "250", True),
        (icd9_indicator, "480", False),
        (icd9_indicator, "070", None),
        (icd9_indicator, "42823999", True),
        (icd10_indicator, "E11", True),
        (icd10_indicator, "J18", False),
        (icd10_indicator, "U99", None),
    ],
)
def test_headings_have_what_their_codes_agree_on(indicator, code, chronic):
    assert indicator(code) is chronic
