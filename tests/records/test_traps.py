"""Files that were once read wrong without a word: each is read right, with a note, or refused."""

import math

import numpy as np
import pyarrow as pa
import pytest

from comorb.errors import RecordsError
from comorb.records.layouts.layout import Layout
from comorb.records.read import inspect_records, read_records
from comorb.records.spec import CohortSpec
from tests.records.helpers import sets

RNG = np.random.default_rng(7)
DISEASES = ["I10", "E11.9", "I50.0", "N18.4", "J44.1", "Z95.5", "F32.9", "K21.0"]


def long_table(key, code, people=120, **others):
    """Three to five codes for each of some people, a row a code."""
    ids, codes = [], []
    for person in range(people):
        for disease in RNG.choice(DISEASES, RNG.integers(3, 6), replace=False):
            ids.append(f"{1000 + person}")
            codes.append(str(disease))
    made = {key: ids, code: codes}
    return pa.table(made | {name: make(len(ids)) for name, make in others.items()})


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("Fallnummer", "ICD"),
        ("N° séjour", "Diagnostic"),
        ("Id episodio", "CIE10"),
        ("Núm. episodi", "Diagnòstic"),
        ("Codice ricovero", "Diagnosi"),
        ("Internamento", "CID10"),
        ("opnamenummer", "Diagnose"),
    ],
)
def test_a_long_table_is_long_in_any_language(key, code):
    inspection = inspect_records(long_table(key, code))
    assert inspection.layout.kind == "long"
    assert inspection.layout.record == key
    assert (inspection.records, inspection.features) == (120, len(DISEASES))


def test_an_id_of_an_unknown_name_that_repeats_is_the_record():
    inspection = inspect_records(long_table("Vorgang", "ICD"))
    assert (inspection.layout.kind, inspection.records) == ("long", 120)
    assert "column 'Vorgang' repeats from row to row" in inspection.ledger.notes[0]


def test_a_column_that_is_unique_makes_no_long_table():
    table = pa.table({"Zeile": [str(i) for i in range(60)], "ICD": DISEASES[:6] * 10})
    assert inspect_records(table).layout.kind == "wide"


def test_an_icu_export_with_two_editions_in_a_cell():
    pairs = ["518.81, J96.00", "428.0, I50.9", "584.9, N17.9", "", "038.9, A41.9"]
    rows = 200
    table = pa.table(
        {
            "diagnosisid": [str(9_000_000 + i) for i in range(rows)],
            "patientunitstayid": [str(141_168 + i // 4) for i in range(rows)],
            "activeupondischarge": ["True", "False"] * (rows // 2),
            "diagnosisoffset": [str(i * 7) for i in range(rows)],
            "diagnosisstring": [f"system|organ|disease {i % 5}" for i in range(rows)],
            "icd9code": [pairs[i % 5] for i in range(rows)],
            "diagnosispriority": ["Primary", "Major", "Other", "Other"] * (rows // 4),
        }
    )
    inspection = inspect_records(table)
    assert inspection.layout.codes == ("icd9code",)
    assert inspection.layout.record == "patientunitstayid"
    assert inspection.records == 50
    codes = {code.rpartition(":")[2] for code, *_ in inspection.most_common}
    assert codes == {"518", "J96", "428", "I50", "584", "N17", "038", "A41"}
    assert any("hold several codes" in note for note in inspection.ledger.notes)


@pytest.mark.parametrize("values", [("9", "10"), ("ICD9", "ICD10"), ("9-CM", "10-CM")])
def test_a_column_of_two_editions_is_the_version(values):
    nine, ten = values
    table = pa.table(
        {
            "patid": ["a", "a", "b", "b"],
            "icdv": [nine, nine, ten, ten],
            "code": ["V58.69", "428.0", "V58.69", "I10"],
        }
    )
    inspection = inspect_records(table)
    assert inspection.layout.version == "icdv"
    assert sets(read_records(table))["a"] == {"icd9cm:V58", "icd9cm:428"}
    assert sets(read_records(table))["b"] == {"icd10cm:V58", "icd10cm:I10"}


def test_rows_that_are_no_diagnoses_are_left_out_by_what_the_table_says():
    flagged = pa.table(
        {
            "patid": ["a", "a", "b", "b"] * 3,
            "code": ["428.0", "38.93", "250.00", "99.15"] * 3,
            "dx": ["1", "0"] * 6,
        }
    )
    read = read_records(flagged)
    assert sets(read) == {"a": {"428"}, "b": {"250"}}
    assert any("says which codes are diagnoses" in note for note in read.ledger.notes)
    assert read.ledger.adds_up
    typed = flagged.drop_columns(["dx"]).append_column("code_type", pa.array(["DX", "PX"] * 6))
    assert sets(read_records(typed)) == sets(read)


@pytest.mark.parametrize("label", ["PROCEDURES_ICD.csv", "Prozeduren.csv", "d_proc.csv"])
def test_procedures_of_two_editions_are_told_by_the_table(label, tmp_path):
    path = tmp_path / label
    rows = ["a,3893,9", "a,0DTJ4ZZ,10", "b,9604,9", "b,5A1955Z,10"]
    path.write_text("hadm_id,icd_code,icd_version\n" + "\n".join(rows) + "\n")
    read = read_records(path, level="full")
    assert sets(read) == {
        "a": {"icd9proc:3893", "icd10pcs:0DTJ4ZZ"},
        "b": {"icd9proc:9604", "icd10pcs:5A1955Z"},
    }
    assert "are procedures, by their names or their values" in read.ledger.notes[0]


def test_procedures_of_a_system_that_is_not_known_stay_as_they_are(tmp_path):
    path = tmp_path / "procedures.csv"
    path.write_text("visit_id,code\na,99213\na,45378\nb,71020\nb,93000\n")
    assert sets(read_records(path)) == {"a": {"99213", "45378"}, "b": {"71020", "93000"}}
    diagnoses = tmp_path / "procedure_diagnoses.csv"
    diagnoses.write_text("visit_id,code\na,42823\na,40391\nb,25000\nb,4019\n")
    assert sets(read_records(diagnoses)) == {"a": {"428", "403"}, "b": {"250", "401"}}


def test_a_comma_in_a_code_is_no_list():
    table = long_table("Fallnummer", "ICD")
    commas = pa.array([code.replace(".", ",") for code in table["ICD"].to_pylist()])
    with_commas = table.set_column(1, "ICD", commas)
    assert inspect_records(with_commas).layout.separator is None
    assert sets(read_records(with_commas, level="full")) == sets(read_records(table, level="full"))


def test_empty_cells_of_items_are_missing_and_never_a_no():
    table = pa.table({"id": ["a", "b", "c"], "CHF": ["1", "0", None], "COPD": ["0", "1", "1"]})
    read = read_records(table)
    assert sets(read) == {"a": set(), "b": {"COPD"}, "c": {"COPD"}}
    assert read.features.values[:2].ravel().tolist() == [1, 0]
    assert math.isnan(read.features.values[2, 0])


def test_items_written_as_yes_or_nothing():
    table = pa.table({"id": ["a", "b", "c"], "CHF": ["1", None, None], "COPD": ["1", "1", None]})
    read = read_records(table)
    assert sets(read) == {"a": {"CHF", "COPD"}, "b": {"COPD"}, "c": set()}
    assert "empty cells were read as no" in read.ledger.notes[0]


def test_items_of_1_and_2():
    table = pa.table({"id": ["a", "b", "c"], "CHF": ["1", "2", "1"], "COPD": ["2", "2", "1"]})
    assert sets(read_records(table)) == {"a": {"CHF"}, "b": set(), "c": {"CHF", "COPD"}}
    assert "1 was read as yes" in read_records(table).ledger.notes[0]
    other = read_records(table, layout=Layout(yes="2"))
    assert sets(other) == {"a": {"COPD"}, "b": {"CHF", "COPD"}, "c": set()}
    rarer = table.set_column(1, "CHF", pa.array(["1", "2", "1"])).set_column(
        2, "COPD", pa.array(["2", "1", "1"])
    )
    assert sets(read_records(rarer)) == {"a": {"COPD"}, "b": {"CHF"}, "c": set()}
    assert "2 was read as yes" in read_records(rarer).ledger.notes[0]


def test_what_stands_for_yes_must_be_there():
    table = pa.table({"id": ["a", "b"], "CHF": ["1", "2"], "COPD": ["2", "1"]})
    with pytest.raises(RecordsError, match="no item holds 'ja', which was said to stand for yes"):
        read_records(table, layout=Layout(yes="ja"))


def test_items_that_are_all_1_are_doubtful():
    table = pa.table({"id": ["a", "b"], "cough": ["1", "1"], "fever": ["1", "1"]})
    cohort = read_records(table)
    assert cohort.matrix.nnz == 4
    assert any("every item of every row is 1" in note for note in cohort.ledger.notes)


def test_few_items_among_other_columns_are_named():
    table = pa.table(
        {
            "id": ["a", "b"],
            "CHF": ["1", "0"],
            "COPD": ["0", "1"],
            "ward": ["x", "y"],
            "rest": ["5", "6"],
            "pulse": ["70", "80"],
        }
    )
    note = "2 columns of yes and no were read as items ('CHF', 'COPD')"
    assert read_records(table).ledger.notes == (note,)


def test_respondents_without_a_yes_are_kept():
    table = pa.table({"a": ["1", "0", "0"], "b": ["1", "1", "0"], "c": ["0", "0", "0"]})
    assert len(CohortSpec().cohort(table)) == 3
    assert len(CohortSpec(at_least=1).cohort(table)) == 2


@pytest.mark.parametrize("memory", [None, "1GB"])
def test_records_without_a_code_are_kept_when_none_is_needed(memory, tmp_path):
    table = pa.table({"id": ["a", "b"], "dx1": ["428.0", None], "dx2": ["250.00", "?"]})
    assert CohortSpec(at_least=1).cohort(table, memory).ids.to_pylist() == ["a"]
    assert CohortSpec(at_least=0).cohort(table, memory).ids.to_pylist() == ["a", "b"]


def test_a_description_beside_the_code_names_it():
    table = pa.table(
        {
            "PATIENT": ["a", "a", "b"],
            "CODE": ["314529007", "73595000", "314529007"],
            "DESCRIPTION": ["Medication review due", "Stress", "Medication review due"],
        }
    )
    read = read_records(table)
    assert dict(zip(read.codes, read.names, strict=True)) == {
        "314529007": "Medication review due",
        "73595000": "Stress",
    }


def test_conditions_without_a_vocabulary_have_the_names_of_their_table():
    table = pa.table(
        {
            "person_id": [1, 1, 2],
            "condition_concept_id": [316139, 201826, 316139],
            "condition_concept_name": ["Heart failure", "Diabetes", "Heart failure"],
        }
    )
    assert read_records(table).names == ("Diabetes", "Heart failure")


@pytest.mark.parametrize("person", [True, False])
def test_eras_have_dates_and_ages(person, tmp_path):
    (tmp_path / "CONDITION_ERA.csv").write_text(
        "PERSON_ID,CONDITION_CONCEPT_ID,CONDITION_ERA_START_DATE\n7,316139,2010-05-01\n"
    )
    (tmp_path / "DRUG_ERA.csv").write_text("PERSON_ID,DRUG_CONCEPT_ID\n7,1\n")
    if person:
        (tmp_path / "PERSON.csv").write_text(
            "PERSON_ID,YEAR_OF_BIRTH,GENDER_CONCEPT_ID\n7,1940,8532\n"
        )
    read = read_records(tmp_path)
    assert str(read.covariates["date"][0].as_py()) == "2010-05-01"
    if person:
        assert read.covariates["age"].to_pylist() == [70.0]
    assert "condition_era was read" in read.ledger.notes[0]
    assert read_records(tmp_path, table="Condition_Era").ledger.notes == ()


def test_decimal_numbers_are_no_codes():
    table = pa.table({"who": ["a", "b", "c"], "score": ["56.59", "48.10", "62.85"]})
    with pytest.raises(RecordsError, match="no column was recognised as holding diagnosis codes"):
        read_records(table)
