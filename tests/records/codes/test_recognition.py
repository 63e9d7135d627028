"""Columns are recognised by how their values are written and by the lists that have them."""

import csv
import gzip
from pathlib import Path

import pytest

from comorb.records.codes.recognition import Fit, Recognition, fits, recognise

SHARED = Path(__file__).parents[4] / "shared/data"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["428.0", "250.00", "V45.81", "?"], ("icd9cm", 3, 3, 1)),
        (["38", "4280", "E8490"], ("icd9cm", 3, 3, 1)),
        (["I50.9", "E11.9", "I10", ""], ("icd10cm", 3, 3, 0)),
        (["T36.0X1A", "I10", "E871"], ("icd10cm", 3, 3, 1)),
        (["I25.1", "C34.1+", "E11.9"], ("icd10", 3, 3, 0)),
        (["I25.1", "I64", "I48.9", "E11.9"], ("icd10", 4, 4, 0)),
        (["44054006", "73211009"], ("opaque", 2, 2, 0)),
        (["A10BA02", "C07AB02", "B01AC"], ("atc", 3, 3, 0)),
        (["A10B", "C07A", "N06A"], ("atc", 3, 3, 0)),
        (["A10", "C07", "N06"], ("icd10cm", 3, 3, 0, ("atc",))),
        (["A", "C", "N"], ("opaque", 3, 3, 0)),
        (["1E11", "5A11"], ("opaque", 2, 2, 0)),
        (["I10", "I50.9", "x", "y"], ("opaque", 4, 4, 0)),
        (["38.93", "96.04", "03.31"], ("icd9proc", 3, 3, 0)),
        (["38.93", "96.04", "3.31"], ("icd9proc", 3, 3, 0)),
        (["3893", "9604", "9671", "8856"], ("icd9proc", 4, 4, 0)),
        (["3893", "9604", "9671", "66"], ("icd9proc", 4, 4, 0)),
        (["387", "389", "966"], ("icd9cm", 3, 3, 0, ("icd9proc",))),
        (["02HV33Z", "B2111ZZ", "5A1D70Z"], ("icd10pcs", 3, 3, 0)),
        (["1234567", "7654321", "1111111"], ("opaque", 3, 3, 0)),
        ([], ("opaque", 0, 0, 0)),
    ],
)
def test_columns_are_recognised(values, expected):
    assert recognise(values) == Recognition(*expected)


def test_recognition_counts_occurrences_and_shows_a_mixed_column():
    found = recognise({"428.0": 90, "I50.9": 9, "V45": 3, "NA": 50})
    assert found == Recognition("icd9cm", matched=93, total=102, ambiguous=3)


def test_values_may_fit_several_systems():
    found = fits({"3893": 3, "4280": 1, "": 7})
    assert found["icd9cm"] == Fit(written=1.0, listed=0.25)
    assert found["icd9proc"] == Fit(written=1.0, listed=0.75)
    assert found["icd10cm"] == Fit(0, 0)
    assert "opaque" not in found


def test_codes_that_a_country_subdivides_are_known():
    assert fits(["I48.19", "E11.90"])["icd10"] == Fit(1, 1)
    assert fits(["U999", "U99"])["icd10cm"].listed == 0


def column(file, name, rows=lambda row: True):
    if not (SHARED / file).exists():
        pytest.skip(f"{file} is not in ../shared/data")
    with gzip.open(SHARED / file, "rt", encoding="utf-8") as lines:
        return [row[name] for row in csv.DictReader(lines) if rows(row)]


@pytest.mark.parametrize(
    "written",
    [
        lambda code: code,
        lambda code: f"{code[:2]}.{code[2:]}",
        lambda code: code.lstrip("0"),
        lambda code: f"{int(code[:2])}.{code[2:]}",
    ],
    ids=["plain", "dotted", "numbers", "dotted numbers"],
)
def test_procedures_of_a_real_file_are_no_diagnoses(written):
    values = column("zoo/mimic3demo/PROCEDURES_ICD.csv.gz", "icd9_code")
    assert recognise(map(written, values)).system == "icd9proc"


@pytest.mark.parametrize("length", [3, 4, 5])
def test_diagnoses_of_a_real_file_are_no_procedures(length):
    values = [code[:length] for code in column("nhds2010.csv.gz", "dx1")]
    assert recognise(values) == Recognition(
        "icd9cm", recognise(values).matched, len(set(values) - {""}), recognise(values).ambiguous
    )


@pytest.mark.parametrize(
    ("version", "diagnosis", "system"),
    [("9", "1", "icd9cm"), ("9", "0", "icd9proc"), ("10", "1", "icd10cm"), ("10", "0", "icd10pcs")],
)
def test_the_four_kinds_of_codes_of_one_real_file(version, diagnosis, system):
    values = column(
        "zoo/mdcr.csv.gz", "code", lambda row: row["icdv"] == version and row["dx"] == diagnosis
    )
    assert recognise(values).system == system
