"""The day of a row tells the edition of a code that may be of either."""

import numpy as np
import pyarrow as pa
import pytest

from comorb.records.archive import load_cohort
from comorb.records.reading import read_records
from comorb.records.streaming import write_cohort
from tests.records.helpers import sets

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
