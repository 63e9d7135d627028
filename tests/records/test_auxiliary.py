"""Auxiliary tables of codes and covariates: which are read, and what is refused."""

from datetime import date

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from comorb.errors import RecordsError
from comorb.records.auxiliary import AuxiliaryTable, arrange_sources, split_sources
from comorb.records.join import BIRTH, BIRTH_YEAR, ages
from comorb.records.layouts.layout import Layout
from comorb.records.read import read_records
from tests.records.helpers import sets

CONDITIONS = pd.DataFrame({"hadm_id": ["10", "10", "11"], "icd_code": ["428.0", "250.00", "401.9"]})
DRUGS = pd.DataFrame({"hadm_id": ["10", "11"], "atc": ["A10BA02", "C07AB02"]})


def test_one_source_is_read_alone():
    assert arrange_sources("visits.csv") == ("diagnosis", "visits.csv", ())
    assert split_sources("visits.csv") == ("visits.csv", {})


def test_the_diagnoses_have_the_records_and_visits_come_before_patients():
    given = {"drug": "d.csv", "patient": "p.csv", "diagnosis": "c.csv", "visit": "v.csv"}
    kind, records, auxiliary = arrange_sources(
        given, layouts={"drug": Layout("long")}, system="x drug:atc"
    )
    assert (kind, records) == ("diagnosis", "c.csv")
    assert [one.kind for one in auxiliary] == ["visit", "patient", "drug"]
    assert auxiliary[-1] == AuxiliaryTable("drug", "d.csv", None, Layout("long"), "atc")
    main, others = split_sources(given)
    assert main == "c.csv"
    assert others == {"drug": "d.csv", "patient": "p.csv", "visit": "v.csv"}


def test_kinds_are_of_the_records_own_source():
    _, records, auxiliary = arrange_sources("omop", ("diagnosis", "drug"))
    assert auxiliary == (AuxiliaryTable("drug", records),)
    _, _, auxiliary = arrange_sources(
        {"diagnosis": "omop", "lab": "labs.csv"}, ("diagnosis", "drug")
    )
    assert [(one.kind, one.source) for one in auxiliary] == [("lab", "labs.csv"), ("drug", "omop")]


@pytest.mark.parametrize(
    ("source", "kinds", "system", "message"),
    [
        ({}, (), None, "Expected sources by their kind, such as {'diagnosis': …}; got none"),
        ({"Drug X": "d.csv"}, (), None, "Expected a kind of small letters, digits, - and _, such"),
        ({"atc": "d.csv"}, (), None, "'atc' is a coding system; name the kind of what is coded"),
        ({"visit": "v.csv"}, (), None, "Records need codes, and a table of the kind 'visit' has"),
        ({"diagnosis": "a", "drug": "d"}, ("drug",), None, "The kind 'drug' is given more than on"),
        ("folder", ("diagnosis", "drug", "drug"), None, "The kind 'drug' is given more than once"),
        ("a.csv", (), "icd9cm drug:atc", "A source of the kind 'drug' is expected; give it beside"),
        (
            {"diagnosis": "a", "lab": "b"},
            (),
            "drug:atc",
            "A source of the kind 'drug' is expected beside lab; give it beside the records",
        ),
    ],
)
def test_what_is_refused(source, kinds, system, message):
    with pytest.raises(RecordsError, match=message):
        arrange_sources(source, kinds, {}, system)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    CONDITIONS.to_csv(tmp_path / "c.csv", index=False)
    with pytest.raises(RecordsError, match=r"There is no file or folder .*d\.csv; check the name"):
        read_records({"diagnosis": tmp_path / "c.csv", "drug": str(tmp_path / "d.csv")})


@pytest.mark.parametrize("second", ["drug", "procedure"])
def test_a_file_is_of_one_kind(second, tmp_path):
    CONDITIONS.to_csv(tmp_path / "c.csv", index=False)
    DRUGS.to_csv(tmp_path / "d.csv", index=False)
    given = {"diagnosis": tmp_path / "c.csv", "drug": tmp_path / "d.csv"}
    given |= {second: str(tmp_path / ("c.csv" if second == "drug" else "d.csv"))}
    first = {"drug": r"c\.csv is given for 'the records' and for 'drug'"}
    with pytest.raises(
        RecordsError, match=first.get(second, r"d\.csv is given for 'drug' and for 'procedure'")
    ):
        read_records(given)


def test_tables_of_a_database_are_found_by_their_kind(tmp_path):
    path = tmp_path / "hospital.db"
    with duckdb.connect(str(path)) as connection:
        for name, frame in {"Diagnoses": CONDITIONS, "Medications": DRUGS, "notes": DRUGS}.items():
            connection.register("incoming", frame)
            connection.execute(f"CREATE TABLE {name} AS FROM incoming")
    cohort = read_records(path, kinds=("diagnosis", "drug"))
    assert "drug:A10B" in cohort.codes
    by_name = read_records({"diagnosis": path, "drug": "notes"}, table="diagnoses")
    assert by_name.digest() == cohort.digest()
    message = (
        r"hospital\.db has no table that is called after the kind 'procedure'; it has Diagnoses, "
        r"Medications, notes\. Name the table, or its file"
    )
    with pytest.raises(RecordsError, match=message):
        read_records(path, kinds=("diagnosis", "procedure"))


WANTED = {
    "10": {"428", "250", "procedure:38", "procedure:96"},
    "11": {"401", "procedure:96"},
}
LAYOUTS = {
    "long": pd.DataFrame(
        {"hadm_id": ["10", "10", "11", "11"], "icd9_code": ["3893", "9604", "9604", None]}
    ),
    "wide": pd.DataFrame(
        {"hadm_id": ["10", "11"], "px1": ["38.93", "96.04"], "px2": ["96.04", None]}
    ),
    "delimited": pd.DataFrame({"hadm_id": ["10", "11"], "procedures": ["3893;9604", "9604"]}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same(layout):
    cohort = read_records({"diagnosis": CONDITIONS, "procedure": LAYOUTS[layout]})
    assert sets(cohort) == WANTED
    assert cohort.system == "icd9cm procedure:icd9proc"


def test_flags_are_codes():
    flags = pd.DataFrame({"hadm_id": ["10", "11"], "A10BA02": [1, 0], "C07AB02": [1, 1]})
    cohort = read_records({"diagnosis": CONDITIONS, "drug": flags}, level="full")
    assert sets(cohort)["11"] == {"4019", "drug:C07AB02"}


def test_a_version_means_the_procedures_of_that_edition():
    procedures = pd.DataFrame(
        {
            "hadm_id": ["10", "11", "11"],
            "icd_code": ["3893", "02HV33Z", "9604"],
            "icd_version": ["9", "10", "9"],
        }
    )
    cohort = read_records({"diagnosis": CONDITIONS, "procedure": procedures}, level="full")
    assert cohort.system == "icd9cm procedure:icd10pcs+icd9proc"
    assert sets(cohort)["11"] == {
        "4019",
        "procedure:icd10pcs:02HV33Z",
        "procedure:icd9proc:9604",
    }
    assert sets(cohort.having("procedure:icd9proc:9604")).keys() == {"11"}


def test_codes_of_no_known_system_have_the_names_of_their_file():
    drugs = pd.DataFrame(
        {
            "START": ["2010-01-01"] * 3,
            "PATIENT": ["p", "p", "q"],
            "ENCOUNTER": ["10", "11", "11"],
            "CODE": ["860975", "314076", "860975"],
            "DESCRIPTION": ["Metformin 500 MG", "Lisinopril 10 MG", "Metformin 500 MG"],
            "REASONCODE": ["44054006", "59621000", "44054006"],
            "REASONDESCRIPTION": ["Diabetes", "Hypertension", "Diabetes"],
        }
    )
    conditions = CONDITIONS.rename(columns={"hadm_id": "ENCOUNTER"})
    cohort = read_records({"diagnosis": conditions, "drug": drugs})
    names = dict(zip(cohort.codes, cohort.names, strict=True))
    assert names["drug:860975"] == "Metformin 500 MG"
    assert names["drug:314076"] == "Lisinopril 10 MG"
    assert cohort.system == "icd9cm drug:opaque"


def test_rows_and_codes_that_are_of_no_use_are_told():
    drugs = pd.DataFrame({"hadm_id": ["10"] * 4, "ndc": ["00338004904", "0", None, "000"]})
    cohort = read_records({"diagnosis": CONDITIONS, "drug": drugs})
    assert cohort.codes[-1] == "drug:00338004904"
    assert cohort.ledger.notes[-2:] == (
        "drug: 4 of 4 rows matched a record by visit id (hadm_id)",
        "drug: 3 rows that matched have no code",
    )
    codes = pd.DataFrame({"hadm_id": ["10"] * 3, "atc": ["A10BA02", "C07AB02", "?!"]})
    cohort = read_records({"diagnosis": CONDITIONS, "drug": codes}, system="drug:atc")
    assert cohort.ledger.notes[-1] == "drug: 1 codes left out: malformed"


def test_without_a_usable_code_a_kind_is_refused():
    drugs = pd.DataFrame({"hadm_id": ["10", "11"], "atc": ["?", "A10BA02"]})
    message = "the columns 'atc' hold no usable code of the kind 'drug'; check the columns and the"
    with pytest.raises(RecordsError, match=message):
        read_records({"diagnosis": CONDITIONS[:2], "drug": drugs})


def test_numbers_that_were_codes_are_doubted():
    procedures = pd.DataFrame({"hadm_id": ["10", "11"], "icd9_code": [3893, 9604]})
    cohort = read_records({"diagnosis": CONDITIONS, "procedure": procedures})
    assert any(
        note.startswith("procedure: the codes of 'icd9_code' are stored as numbers")
        for note in cohort.ledger.notes
    )


DIAGNOSES = pd.DataFrame(
    {
        "hadm_id": ["10", "10", "11"],
        "subject_id": ["1", "1", "2"],
        "icd_code": ["428.0", "250.00", "401.9"],
        "date": ["2010-03-01", "2010-03-01", "2011-01-01"],
    }
)
PATIENTS = pd.DataFrame({"subject_id": ["1", "2", "2"], "sex": ["F", "M", "M"]})


def read(patients, **more):
    return read_records({"diagnosis": DIAGNOSES, "patient": patients}, **more)


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
        read_records({"diagnosis": DIAGNOSES, kind: table})


def test_of_several_visits_of_a_patient_the_first_is_taken():
    visits = pd.DataFrame({"subject_id": ["1", "1", "2"], "ward": ["b", "a", "c"]})
    cohort = read_records({"diagnosis": DIAGNOSES, "visit": visits}, unit="patient")
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
