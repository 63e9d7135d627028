"""Columns and editions are recognised by how values are written, by lists and by days."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from comorb.records.codes.recognition import (
    Fit,
    Recognition,
    assign_systems,
    fits,
    recognise,
)
from comorb.records.cohort_file import load_cohort
from comorb.records.read import read_records
from comorb.records.stream import write_cohort
from tests.records.helpers import sets

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


FULL = {("icd9cm", "42823"): 40, ("icd9cm", "25000"): 40, ("icd9cm", "4019"): 20}


def test_what_is_said_stands():
    systems, notes = assign_systems({("icd9cm", "V58"): 1, ("icd10cm", "V58"): 1}, None)
    assert list(systems.values()) == ["icd9cm", "icd10cm"]
    assert notes == ()


def test_a_code_that_only_the_other_list_has_is_of_that():
    systems, notes = assign_systems({**FULL, ("icd9cm", "E860"): 7, ("icd9cm", "E8490"): 1}, None)
    assert systems["icd9cm", "E860"] == "icd10cm"
    assert systems["icd9cm", "E8490"] == "icd9cm"
    assert notes == (
        "7 mentions are said to be icd9cm, but are in the list of icd10cm alone and were read as "
        "icd10cm; check the column with the version",
    )


def test_codes_of_earlier_years_are_listed():
    counts = {("icd10cm", "I509"): 9, ("icd10cm", "E8881"): 1}
    assert assign_systems(counts, None) == (dict.fromkeys(counts, "icd10cm"), ())


def test_truncated_codes_contradict_nothing():
    counts = {("icd9cm", "428"): 50, ("icd9cm", "250"): 50, ("icd9cm", "E860"): 5}
    assert set(assign_systems(counts, None)[0].values()) == {"icd9cm"}


def test_a_mixed_column_without_versions_goes_by_the_lists():
    counts = {"428": 200, "25000": 100, "I10": 100, "V441": 5, "E860": 6, "V58": 7}
    systems, notes = assign_systems({(None, code): n for code, n in counts.items()}, None)
    assert [systems[None, code] for code in ("V441", "E860", "V58", "I10")] == [
        "icd9cm",
        "icd10cm",
        "icd9cm",
        "icd10cm",
    ]
    assert notes == (
        "icd9cm and icd10cm are mixed and no column says which is which: 7 mentions fit both and "
        "were taken as icd9cm, 11 by the list that has them; name the column with the version",
    )


def test_a_column_of_one_edition_stays_whole():
    counts = {(None, "428"): 200, (None, "E860"): 6, (None, "I10"): 1}
    assert set(assign_systems(counts, None)[0].values()) == {"icd9cm"}


def test_what_fits_two_systems_is_told():
    counts = {(None, "387"): 1, (None, "389"): 1, (None, "966"): 1}
    assert assign_systems(counts, None)[1] == (
        "the codes fit icd9proc as well as icd9cm, as which they were read; name the coding system",
    )
    assert assign_systems(counts, "icd9proc")[1] == ()


def test_a_code_that_is_none_of_what_is_said_is_of_the_list_that_has_it():
    counts = {("icd9cm", "4280"): 90, ("icd9cm", "25000"): 9, ("icd9cm", "E02"): 1}
    systems, notes = assign_systems(counts, None)
    assert systems["icd9cm", "E02"] == "icd10cm"
    assert "1 mentions are said to be icd9cm" in notes[0]


OLD, NEW = ["428", "250", "401", "V58"], ["I50", "E11", "I10", "V58"]
DAYS = {
    "iso": "{0:04d}-{1:02d}-{2:02d}",
    "german": "{2:02d}.{1:02d}.{0:04d}",
    "packed": "{0:04d}{1:02d}{2:02d}",
    "time": "{0:04d}-{1:02d}-{2:02d} 11:30:00",
}


def visits(write, changed=2015, seed=4):
    """Visits coded in the edition of their day, and what they then are."""
    rng = np.random.default_rng(seed)
    rows, expected = [], {}
    for visit in range(60):
        year, month, day = (int(rng.integers(*ends)) for ends in ((2012, 2019), (1, 13), (1, 29)))
        new = (year, month) >= (changed, 10)
        key, codes = ("icd10cm", NEW) if new else ("icd9cm", OLD)
        expected[f"v{visit:02d}"] = {f"{key}:{code}" for code in codes}
        rows.append((f"v{visit:02d}", write.format(year, month, day), codes))
    return rows, expected


def wide(rows):
    codes = {f"dx{j + 1}": [row[2][j] for row in rows] for j in range(4)}
    return pa.table(
        {"visit_id": [r[0] for r in rows], "admission_date": [r[1] for r in rows]} | codes
    )


def long(rows):
    flat = [(visit, day, code) for visit, day, codes in rows for code in codes]
    names = ("visit_id", "date", "code")
    return pa.table(dict(zip(names, map(list, zip(*flat, strict=True)), strict=True)))


def delimited(rows):
    joined = {"diagnoses": [";".join(row[2]) for row in rows]}
    return pa.table({"Datum": [row[1] for row in rows], "visit": [row[0] for row in rows]} | joined)


@pytest.mark.parametrize("lay_out", [wide, long, delimited])
@pytest.mark.parametrize("write", DAYS)
def test_codes_of_either_edition_go_by_their_day(lay_out, write):
    rows, expected = visits(DAYS[write])
    cohort = read_records(lay_out(rows))
    assert sets(cohort) == expected
    note = next(note for note in cohort.ledger.notes if "are mixed" in note)
    assert "0 mentions fit both and were taken as" in note
    assert ", 60 by their dates; name the column with the version" in note
    assert cohort.ledger.adds_up


@pytest.mark.parametrize("lay_out", [wide, long])
def test_in_parts_too(lay_out, tmp_path):
    rows, expected = visits(DAYS["iso"])
    write_cohort(lay_out(rows), tmp_path / "c.parquet", memory="1GB")
    assert sets(load_cohort(tmp_path / "c.parquet")) == expected


def test_days_that_contradict_the_other_codes_tell_nothing():
    rows, _ = visits(DAYS["iso"], changed=2013)
    cohort = read_records(wide(rows))
    assert sum(code.endswith(":V58") for code in cohort.codes) == 1
    assert not any("by their dates" in note for note in cohort.ledger.notes)


def test_rows_without_a_day_and_columns_without_days():
    rows, expected = visits(DAYS["iso"])
    gap = [(visit, None if visit == "v07" else day, codes) for visit, day, codes in rows]
    read = sets(read_records(wide(gap)))
    assert {visit for visit in read if read[visit] != expected[visit]} <= {"v07"}
    words = [(visit, "soon", codes) for visit, _, codes in rows]
    notes = read_records(wide(words)).ledger.notes
    assert any("60 mentions fit both and were taken as" in note for note in notes)
