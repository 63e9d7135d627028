"""OMOP tables, in folders and databases."""

import sqlite3

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError
from comorb.records.layouts.layout import Layout
from comorb.records.read import inspect_records, read_records
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
        pq.write_table(table, folder / f"{name}.parquet", write_page_checksum=True)
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


def test_omop_dates_that_are_none_are_counted(tmp_path):
    conditions = OMOP["condition_occurrence"]
    days = pa.array(["2010-05-01", "12.03.2010", "soon", None])
    place = conditions.column_names.index("condition_start_date")
    source = conditions.set_column(place, "condition_start_date", days)
    cohort = read_records(source, unit="visit")
    days = [str(day) for day in cohort.covariates["date"].to_pylist()]
    assert days == ["2010-05-01", "2010-03-12", "None"]
    assert cohort.ledger.notes == (
        "1 values of column 'date' can't be read as a date and are missing",
    )


def test_a_table_that_is_said_to_be_omop_and_is_not():
    table = pa.table({"id": ["1"], "icd_code": ["I10"]})
    with pytest.raises(RecordsError, match="doesn't have the columns of the layout 'omop'"):
        read_records(table, layout="omop")


MORE = {
    "drug_exposure": pa.table(
        {
            "drug_exposure_id": [1, 2, 3],
            "person_id": [7, 8, 9],
            "drug_concept_id": [1503297, 1503297, 5],
            "drug_exposure_start_date": ["2010-05-02", "2011-01-02", "2011-01-02"],
            "visit_occurrence_id": [70, 80, 90],
        }
    ),
    "procedure_occurrence": pa.table(
        {
            "person_id": [7, 7],
            "procedure_concept_id": [4143316, 0],
            "procedure_date": ["2010-03-01", "2010-03-01"],
            "visit_occurrence_id": [71, 71],
        }
    ),
}


@pytest.mark.parametrize("write", [as_parquet, as_csv, as_duckdb, as_sqlite])
@pytest.mark.parametrize("unit", ["patient", "visit"])
def test_all_kinds_of_omop(write, unit, tmp_path, monkeypatch):
    monkeypatch.setattr("tests.records.layouts.test_omop.OMOP", OMOP | MORE)
    cohort = read_records(write(tmp_path), kinds=("diagnosis", "drug", "procedure"), unit=unit)
    if unit == "patient":
        assert sets(cohort) == {
            "7": {"316139", "201826", "drug:1503297", "procedure:4143316"},
            "8": {"316139", "drug:1503297"},
        }
    else:
        assert {one.removesuffix(".0"): some for one, some in sets(cohort).items()} == {
            "70": {"316139", "drug:1503297"},
            "71": {"201826", "procedure:4143316"},
            "80": {"316139", "drug:1503297"},
        }
    word = "visit id (visit)" if unit == "visit" else "patient id (patient)"
    (unknown,) = (note for note in cohort.ledger.notes if " of persons that aren't in " in note)
    assert unknown.startswith("drug: 1 rows of ")
    assert tuple(note for note in cohort.ledger.notes if note != unknown)[-3:] == (
        f"drug: 2 of 3 rows matched a record by {word}; 1 have none",
        f"procedure: 2 of 2 rows matched a record by {word}",
        "procedure: 1 rows that matched have no code",
    )


def test_drugs_of_omop_by_their_source_value_and_alone():
    drugs = MORE["drug_exposure"].append_column(
        "drug_source_value", pa.array(["A10BA02", "C07AB02", "C03CA01"])
    )
    layouts = {"drug": Layout(codes=("drug_source_value",))}
    given = {"diagnosis": OMOP["condition_occurrence"], "drug": drugs}
    cohort = read_records(given, layout=layouts)
    assert sets(cohort)["8"] == {"316139", "drug:C07A"}
    assert sets(read_records({"drug": drugs}))["9"] == {"5"}


def test_a_person_that_is_there_twice_counts_once_and_is_told(tmp_path):
    plain = read_records(as_parquet(tmp_path))
    again = pa.table({"person_id": [7], "gender_concept_id": [8532], "year_of_birth": [1938]})
    twice = pa.concat_tables([OMOP["person"], again])
    pq.write_table(twice, tmp_path / "person.parquet", write_page_checksum=True)
    cohort = read_records(tmp_path)
    assert cohort.ledger.chain("rows") == plain.ledger.chain("rows")
    assert plain.covariates["age"].to_pylist() == [70, 61]
    assert cohort.covariates["age"].to_pylist() == [72, 61]
    (note,) = (one for one in cohort.ledger.notes if "repeat a person" in one)
    assert note.startswith("1 rows of person.parquet repeat a person")
