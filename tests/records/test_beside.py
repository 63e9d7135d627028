"""Beside: which sources are read beside the records, and what is refused."""

import duckdb
import pandas as pd
import pytest

from comorb.errors import RecordsError
from comorb.records.beside import Beside, arranged, main_and_beside
from comorb.records.layouts.description import Layout
from comorb.records.reading import read_records

CONDITIONS = pd.DataFrame({"hadm_id": ["10", "10", "11"], "icd_code": ["428.0", "250.00", "401.9"]})
DRUGS = pd.DataFrame({"hadm_id": ["10", "11"], "atc": ["A10BA02", "C07AB02"]})


def test_one_source_is_read_alone():
    assert arranged("visits.csv") == ("diagnosis", "visits.csv", ())
    assert main_and_beside("visits.csv") == ("visits.csv", {})


def test_the_diagnoses_have_the_records_and_visits_come_before_patients():
    given = {"drug": "d.csv", "patient": "p.csv", "diagnosis": "c.csv", "visit": "v.csv"}
    kind, records, besides = arranged(given, layouts={"drug": Layout("long")}, system="x drug:atc")
    assert (kind, records) == ("diagnosis", "c.csv")
    assert [one.kind for one in besides] == ["visit", "patient", "drug"]
    assert besides[-1] == Beside("drug", "d.csv", None, Layout("long"), "atc")
    main, others = main_and_beside(given)
    assert main == "c.csv"
    assert others == {"drug": "d.csv", "patient": "p.csv", "visit": "v.csv"}


def test_kinds_are_of_the_records_own_source():
    _, records, besides = arranged("omop", ("diagnosis", "drug"))
    assert besides == (Beside("drug", records),)
    _, _, besides = arranged({"diagnosis": "omop", "lab": "labs.csv"}, ("diagnosis", "drug"))
    assert [(one.kind, one.source) for one in besides] == [("lab", "labs.csv"), ("drug", "omop")]


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
        arranged(source, kinds, {}, system)


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
