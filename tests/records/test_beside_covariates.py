"""Covariates beside the records: repeated rows, births and ages; test_joining.py joins them."""

from datetime import date

import pandas as pd
import pyarrow as pa
import pytest

from comorb.errors import RecordsError
from comorb.records.beside_covariates import BIRTH, BIRTH_YEAR, ages
from comorb.records.reading import read_records

CONDITIONS = pd.DataFrame(
    {
        "hadm_id": ["10", "10", "11"],
        "subject_id": ["1", "1", "2"],
        "icd_code": ["428.0", "250.00", "401.9"],
        "date": ["2010-03-01", "2010-03-01", "2011-01-01"],
    }
)
PATIENTS = pd.DataFrame({"subject_id": ["1", "2", "2"], "sex": ["F", "M", "M"]})


def read(patients, **more):
    return read_records({"diagnosis": CONDITIONS, "patient": patients}, **more)


def test_the_same_row_again_is_told():
    cohort = read(PATIENTS)
    assert cohort.covariates["sex"].to_pylist() == ["F", "M"]
    assert cohort.ledger.notes[-1] == "patient: 1 rows are there twice"


@pytest.mark.parametrize("kind", ["patient", "visit"])
def test_unequal_rows_of_one_are_refused(kind):
    key = {"patient": "subject_id", "visit": "hadm_id"}[kind]
    table = pd.DataFrame({key: ["1", "1", "10", "10"], "ward": ["a", "b", "a", "b"]})
    message = (
        f"1 rows repeat an id of column '{key}' with unequal contents, and a table of the kind "
        f"'{kind}' has one row for each. Leave one of each, or name the column that is unique"
    )
    with pytest.raises(RecordsError, match=message):
        read_records({"diagnosis": CONDITIONS, kind: table})


def test_of_several_visits_of_a_patient_the_first_is_taken():
    visits = pd.DataFrame({"subject_id": ["1", "1", "2"], "ward": ["b", "a", "c"]})
    cohort = read_records({"diagnosis": CONDITIONS, "visit": visits}, unit="patient")
    assert cohort.covariates["ward"].to_pylist() == ["a", "c"]
    assert cohort.ledger.notes[-1] == (
        "visit: 3 rows are of 2 patients, of whom the first is taken"
    )


@pytest.mark.parametrize(
    ("column", "births", "wanted"),
    [
        ("dob", ["1940-03-02", "1950-01-01"], [69.0, 61.0]),
        ("Date of Birth", ["02.03.1940", "31.12.1950"], [69.0, 60.0]),
        ("birth_date", [date(1940, 3, 1), date(2012, 1, 1)], [70.0, None]),
        ("BIRTHDATE", [pd.Timestamp("1940-03-01"), None], [70.0, None]),
        ("year_of_birth", [1940, 1950], [70.0, 61.0]),
        ("Geburtsjahr", ["1940", "1700"], [70.0, None]),
    ],
)
def test_births_become_ages(column, births, wanted):
    cohort = read(pd.DataFrame({"subject_id": ["1", "2"], column: births}))
    assert cohort.covariates["age"].to_pylist() == wanted
    assert column not in cohort.covariates.column_names


def test_dates_that_can_t_be_read_are_told():
    patients = pd.DataFrame({"subject_id": ["1", "2"], "dob": ["1940-03-01", "once"]})
    cohort = read(patients)
    assert cohort.covariates["age"].to_pylist() == [70.0, None]
    assert (
        "patient: 1 values of column 'dob' can't be read as a date and are missing"
        in cohort.ledger.notes
    )


def test_full_years():
    days = pa.chunked_array([pa.array([date(2001, 2, 28), date(2001, 3, 1), None])])
    born = pa.chunked_array([pa.array([date(2000, 2, 29)] * 3)])
    assert ages({"date": days, BIRTH: born}).to_pylist() == [0.0, 1.0, None]
    years = pa.chunked_array([pa.array([1990, 1800, 1990])])
    assert ages({"date": days, BIRTH_YEAR: years}).to_pylist() == [11.0, None, None]
    assert ages({"date": days}) is None
    assert ages({BIRTH: born}) is None
