"""OMOP tables and FHIR resources, in folders and databases."""

import json
import sqlite3

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError
from comorb.records.layouts.layout import Layout
from comorb.records.reading import inspect_records, read_records
from tests.records.helpers import sets

OMOP = {
    "condition_occurrence": pa.table(
        {
            "condition_occurrence_id": [1, 2, 3, 4],
            "person_id": [7, 7, 8, 8],
            "condition_concept_id": [316139, 201826, 316139, 0],
            "condition_start_date": ["2010-05-01", "2010-03-01", "2011-01-01", "2011-01-01"],
            "visit_occurrence_id": [70, 71, 80, None],
            "condition_source_value": ["I50.9", "E11.9", "I50.1", "Z99"],
        }
    ),
    "person": pa.table(
        {"person_id": [7, 8], "gender_concept_id": [8532, 8507], "year_of_birth": [1940, 1950]}
    ),
    "concept": pa.table(
        {
            "concept_id": [316139, 201826, 5],
            "concept_name": ["Heart failure", "Type 2 diabetes mellitus", "Other"],
        }
    ),
}


def as_parquet(folder):
    for name, table in OMOP.items():
        pq.write_table(table, folder / f"{name}.parquet")
    return folder


def as_csv(folder):
    for name, table in OMOP.items():
        table.to_pandas().to_csv(folder / f"{name.upper()}.csv", index=False, sep="\t")
    return folder


def as_duckdb(folder):
    with duckdb.connect(str(folder / "omop.db")) as connection:
        for name, table in OMOP.items():
            connection.register("incoming", table)
            connection.execute(f"CREATE TABLE {name} AS FROM incoming")
    return folder / "omop.db"


def as_sqlite(folder):
    connection = sqlite3.connect(folder / "omop.db")
    for name, table in OMOP.items():
        table.to_pandas().to_sql(name.upper(), connection, index=False)
    connection.close()
    return folder / "omop.db"


@pytest.mark.parametrize("write", [as_parquet, as_csv, as_duckdb, as_sqlite])
def test_omop(write, tmp_path):
    source = write(tmp_path)
    found = inspect_records(source)
    assert (found.layout.kind, found.unit, found.system) == ("omop", "patient", "opaque")
    cohort = read_records(source)
    assert sets(cohort) == {"7": {"316139", "201826"}, "8": {"316139"}}
    assert cohort.names == ("Type 2 diabetes mellitus", "Heart failure")
    assert cohort.covariates["sex"].to_pylist() == ["female", "male"]
    assert cohort.covariates["age"].to_pylist() == [70.0, 61.0]
    assert str(cohort.covariates["date"][0].as_py()) == "2010-03-01"
    assert cohort.ledger.adds_up
    assert cohort.ledger.chain("rows")[1].rule == "without a code"


def test_omop_by_visit_and_by_source_value(tmp_path):
    source = as_parquet(tmp_path)
    assert sets(read_records(source, unit="visit")).keys() == {"70", "71", "80"}
    cohort = read_records(source, layout=Layout("omop", codes=("condition_source_value",)))
    assert sets(cohort) == {"7": {"I50", "E11"}, "8": {"I50", "Z99"}}
    with pytest.raises(RecordsError, match="has no column 'icd'; name another with the codes"):
        read_records(source, layout=Layout("omop", codes=("icd",)))


def condition(patient, codings, encounter=None, status="confirmed", onset="2012-02-03"):
    return {
        "resourceType": "Condition",
        "id": "x",
        "subject": {"reference": f"Patient/{patient}"},
        **({"encounter": {"reference": f"Encounter/{encounter}"}} if encounter else {}),
        "code": {"coding": codings},
        "verificationStatus": {"coding": [{"code": status}]},
        "onsetDateTime": f"{onset}T10:00:00Z",
    }


def icd(code):
    return {"system": "http://hl7.org/fhir/sid/icd-10-cm", "code": code}


def snomed(code, display):
    return {"system": "http://snomed.info/sct", "code": code, "display": display}


def write_ndjson(path, resources):
    path.write_text("".join(json.dumps(resource) + "\n" for resource in resources))


@pytest.fixture
def bulk(tmp_path):
    write_ndjson(
        tmp_path / "Condition.000.ndjson",
        [
            condition("p1", [snomed("84114007", "Heart failure"), icd("I50.9")], "e1"),
            condition("p1", [icd("E11.9")], "e2", onset="2011-01-01"),
        ],
    )
    write_ndjson(
        tmp_path / "Condition.001.ndjson",
        [
            condition("p2", [icd("I50.1")], "e3"),
            condition("p2", [icd("C50.1")], "e3", status="refuted"),
            condition("p2", [snomed("1", "Only in the other system")], "e3"),
        ],
    )
    write_ndjson(
        tmp_path / "Patient.ndjson",
        [
            {"resourceType": "Patient", "id": "p1", "gender": "female", "birthDate": "1940-06-01"},
            {"resourceType": "Patient", "id": "p2", "gender": "male", "birthDate": "1950-01-01"},
        ],
    )
    return tmp_path


def test_fhir(bulk):
    found = inspect_records(bulk)
    assert (found.layout.kind, found.unit, found.system) == ("fhir", "patient", "icd10cm")
    cohort = read_records(bulk)
    assert sets(cohort) == {"p1": {"I50", "E11"}, "p2": {"I50"}}
    assert cohort.covariates["sex"].to_pylist() == ["female", "male"]
    assert cohort.covariates["age"].to_pylist() == [70.0, 62.0]
    assert [(line.rule, line.removed) for line in cohort.ledger.chain("rows")] == [
        ("read", 0),
        ("refuted or entered in error", 1),
        ("without a code", 1),
    ]
    assert sets(read_records(bulk, unit="visit")).keys() == {"e1", "e2", "e3"}


def test_fhir_in_one_file_with_names_of_its_own(tmp_path):
    write_ndjson(
        tmp_path / "export.ndjson", [condition("p1", [snomed("84114007", "Heart failure")])]
    )
    cohort = read_records(tmp_path / "export.ndjson")
    assert (cohort.codes, cohort.names, cohort.system) == (
        ("84114007",),
        ("Heart failure",),
        "opaque",
    )


def test_fhir_of_another_resource(tmp_path):
    write_ndjson(tmp_path / "export.ndjson", [{"resourceType": "Patient", "id": "p1"}])
    with pytest.raises(RecordsError, match=r"holds FHIR resources of type Patient; .* Condition"):
        read_records(tmp_path / "export.ndjson")


def test_plain_ndjson_with_lists(tmp_path):
    write_ndjson(
        tmp_path / "export.ndjson",
        [{"id": "007", "codes": ["428.0", "250.00"]}, {"id": "008", "codes": ["001.0"]}],
    )
    assert sets(read_records(tmp_path / "export.ndjson")) == {"007": {"428", "250"}, "008": {"001"}}
