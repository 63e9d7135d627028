"""Files as people bring them: what is read is what an independent count with pandas finds."""

import gzip
import json
import re
from pathlib import Path

import pandas as pd
import pytest

from comorb.errors import RecordsError
from comorb.records.read import inspect_records, read_records
from tests.records.helpers import sets

ZOO = Path(__file__).parents[3] / "shared" / "data" / "zoo"
pytestmark = pytest.mark.skipif(
    not ZOO.is_dir(), reason="needs ../shared/data/zoo beside the project, which is absent"
)


def frame(name):
    return pd.read_csv(ZOO / name, dtype=str)


def by_code(pairs):
    """The records of each code, of pairs of record and code."""
    pairs = pairs.dropna().drop_duplicates()
    return {code: set(some) for code, some in pairs.groupby(pairs.columns[1])[pairs.columns[0]]}


def of_cohort(cohort):
    records = [(record, code) for record, codes in sets(cohort).items() for code in codes]
    return by_code(pd.DataFrame(records, columns=["record", "code"]))


def most_common(records):
    return sorted(((len(some), code) for code, some in records.items()), reverse=True)[:10]


def check(cohort, expected, renamed=lambda code: code):
    found = {renamed(code): some for code, some in of_cohort(cohort).items()}
    assert len(cohort) == len(set().union(*expected.values()))
    assert len(cohort.codes) == len(found) == len(expected)
    assert most_common(found) == most_common(expected)
    assert cohort.ledger.adds_up


def test_mimic_diagnoses():
    rows = frame("mimic3demo/DIAGNOSES_ICD.csv.gz")
    for unit, column in (("visit", "hadm_id"), ("patient", "subject_id")):
        cohort = read_records(ZOO / "mimic3demo/DIAGNOSES_ICD.csv.gz", level="full", unit=unit)
        check(cohort, by_code(rows[[column, "icd9_code"]]))
    assert cohort.system == "icd9cm"


def test_mimic_procedures():
    path = ZOO / "mimic3demo/PROCEDURES_ICD.csv.gz"
    rows = frame("mimic3demo/PROCEDURES_ICD.csv.gz")
    rows["icd9_code"] = rows["icd9_code"].str.lstrip("0")
    cohort = read_records(path, level="full")
    check(cohort, by_code(rows[["hadm_id", "icd9_code"]]), lambda code: code.lstrip("0"))
    assert cohort.system == "icd9proc"
    assert any("are procedures" in note for note in cohort.ledger.notes)


def test_mimic_by_a_table_of_its_folder_and_by_a_query():
    folder, rows = ZOO / "mimic3demo", frame("mimic3demo/DIAGNOSES_ICD.csv.gz")
    expected = by_code(rows[["hadm_id", "icd9_code"]])
    check(read_records(folder, table="diagnoses_icd", level="full"), expected)
    query = "SELECT * FROM diagnoses_icd JOIN admissions USING (hadm_id)"
    check(read_records(folder, table=query, level="full"), expected)
    with pytest.raises(RecordsError, match="holds 5 tables: ADMISSIONS, DIAGNOSES_ICD"):
        read_records(folder)


def test_mdcr_has_two_editions_and_rows_that_are_no_diagnoses():
    rows = frame("mdcr.csv.gz")
    rows = rows[(rows["dx"] == "1") & ~rows["code"].str.fullmatch("-*")]
    cohort = read_records(ZOO / "mdcr.csv.gz", level="full")
    expected = by_code(rows[["patid", "code"]])
    found = of_cohort(cohort)
    bare = {}
    for code, some in found.items():
        bare.setdefault(code.rpartition(":")[2], set()).update(some)
    assert len(expected.pop("J4598")) == 1, "said to be of ICD-9, and in full in no list"
    assert len(cohort) == len(set().union(*expected.values()))
    assert len(bare) == len(expected)
    assert most_common(bare) == most_common(expected)
    said = {"9": "icd9cm", "10": "icd10cm"}
    rows["code"] = rows["icdv"].map(said) + ":" + rows["code"]
    read = pd.DataFrame(
        [(record, code) for code, some in found.items() for record in some],
        columns=["patid", "code"],
    )
    same = rows.merge(read, on=["patid", "code"])
    moved = [note for note in cohort.ledger.notes if "are said to be icd" in note]
    noted = sum(int(note.split()[0].replace(",", "")) for note in moved)
    assert len(rows) - len(same) == noted + 1
    assert cohort.ledger.chain("rows")[1].rule == "not a diagnosis"
    assert cohort.ledger.adds_up


@pytest.mark.parametrize("source", ["eunomia", "eunomia/CONDITION_ERA.csv.gz"])
def test_eunomia(source):
    eras = frame("eunomia/CONDITION_ERA.csv.gz")
    eras = eras[eras["CONDITION_CONCEPT_ID"] != "0"]
    cohort = read_records(ZOO / source)
    check(cohort, by_code(eras[["PERSON_ID", "CONDITION_CONCEPT_ID"]]))
    dates = pd.to_datetime(eras.groupby("PERSON_ID")["CONDITION_ERA_START_DATE"].min())
    read = dict(zip(cohort.ids.to_pylist(), cohort.covariates["date"].to_pylist(), strict=True))
    assert read == {person: day.date() for person, day in dates.items()}
    if source == "eunomia":
        persons = frame("eunomia/PERSON.csv.gz").set_index("PERSON_ID")
        born = persons["YEAR_OF_BIRTH"].astype(int)
        ages = dict(zip(cohort.ids.to_pylist(), cohort.covariates["age"].to_pylist(), strict=True))
        assert ages == {person: day.year - born[person] for person, day in dates.items()}
        concepts = frame("eunomia/CONCEPT.csv.gz").set_index("CONCEPT_ID")["CONCEPT_NAME"]
        assert cohort.names == tuple(concepts[list(cohort.codes)])
        assert "condition_era was read" in cohort.ledger.notes[0]


def resources(name):
    with gzip.open(ZOO / "fhir" / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def conditions(some):
    rows = [
        (one["subject"]["reference"].split("/")[-1].split(":")[-1], coding["code"])
        for one in some
        for coding in one["code"]["coding"]
        if one.get("verificationStatus", {}).get("coding", [{}])[0].get("code")
        not in ("refuted", "entered-in-error")
    ]
    return by_code(pd.DataFrame(rows, columns=["record", "code"]))


def test_fhir_conditions():
    some = conditions(resources("Condition.000.ndjson.gz"))
    check(read_records(ZOO / "fhir/Condition.000.ndjson.gz"), some)


def bundled():
    bundle = json.loads((ZOO / "fhir/bundle.json").read_text("utf-8"))
    return [entry["resource"] for entry in bundle["entry"]]


def test_a_fhir_bundle():
    some = [one for one in bundled() if one["resourceType"] == "Condition"]
    check(read_records(ZOO / "fhir/bundle.json"), conditions(some))


def test_a_folder_of_fhir_resources():
    lines = {one["id"]: one for one in resources("Condition.000.ndjson.gz")}
    some = lines | {one["id"]: one for one in bundled() if one["resourceType"] == "Condition"}
    cohort = read_records(ZOO / "fhir")
    check(cohort, conditions(some.values()))
    sexes = {one["id"]: one["gender"] for one in resources("Patient.000.ndjson.gz")}
    sexes |= {one["id"]: one["gender"] for one in bundled() if one["resourceType"] == "Patient"}
    read = dict(zip(cohort.ids.to_pylist(), cohort.covariates["sex"].to_pylist(), strict=True))
    assert read == {patient: sexes[patient] for patient in read}


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("mimic3demo/ADMISSIONS.csv.gz", "no column was recognised as holding diagnosis codes"),
        ("mimic3demo/PATIENTS.csv.gz", "no column was recognised as holding diagnosis codes"),
        ("mimic3demo/PRESCRIPTIONS.csv.gz", "no column was recognised as holding diagnosis codes"),
        ("eunomia/PERSON.csv.gz", "no column was recognised as holding diagnosis codes"),
        ("eunomia/CONCEPT.csv.gz", "no column was recognised as holding diagnosis codes"),
        ("fhir/Patient.000.ndjson.gz", "resources of type Patient; records are read from"),
    ],
)
def test_tables_without_diagnoses_are_refused(file, message):
    with pytest.raises(RecordsError, match=message):
        inspect_records(ZOO / file)


@pytest.mark.parametrize(
    "file", ["eunomia/DRUG_ERA.csv.gz", "fhir/MedicationRequest.000.ndjson.gz"]
)
def test_drugs_alone_are_read_with_a_note(file):
    (note,) = (note for note in inspect_records(ZOO / file).ledger.notes if "not diagnoses" in note)
    assert note.endswith("holds drugs, not diagnoses; they are read as what they are")


def test_vermont():
    rows = frame("vermont/vermont_dx.csv.gz")
    cohort = read_records(ZOO / "vermont/vermont_dx.csv.gz", level="full")
    codes = [name for name in rows.columns if name.startswith("DX")]
    check(cohort, by_code(rows.melt("visit_id", codes)[["visit_id", "value"]]))
    died = cohort.covariates["died"].to_pylist()
    assert died == rows["death"].tolist()


def test_brazilian_admissions_whose_claims_share_an_id():
    rows = frame("brazil_sih/RDRS2019.csv.gz")
    cohort = read_records(ZOO / "brazil_sih/RDRS2019.csv.gz", level="full")
    codes = [name for name in rows.columns if re.match("DIAG|CID_", name)]
    pairs = rows.melt("N_AIH", codes)[["N_AIH", "value"]]
    check(cohort, by_code(pairs[~pairs["value"].isin(["0000", "0", "000"])]))
    first = rows.drop_duplicates("N_AIH").set_index("N_AIH").loc[cohort.ids.to_pylist()]
    for ours, theirs in {"died": "MORTE", "los": "DIAS_PERM", "cost": "VAL_TOT"}.items():
        assert sum(cohort.covariates[ours].to_pylist()) == pytest.approx(
            first[theirs].astype(float).sum()
        )
    units = first["COD_IDADE"].map({"2": 365.25, "3": 12, "4": 1, "5": 1}).astype(float)
    years = first["IDADE"].astype(float) / units + 100 * (first["COD_IDADE"] == "5")
    assert cohort.covariates["age"].to_pylist() == pytest.approx(years.tolist())
    assert any("lines of one stay" in note for note in cohort.ledger.notes)


def test_every_file_of_the_zoo_is_tried_here():
    own = Path(__file__).read_text("utf-8")
    files = [file for file in ZOO.rglob("*.*") if file.is_file() and file.name != "README.md"]
    assert [file.name for file in files if file.name not in own] == []


def test_mexican_items_are_one_yes_and_two_no():
    rows = frame("mexico_items/casos.csv.gz")
    cohort = read_records(ZOO / "mexico_items/casos.csv.gz")
    assert len(cohort) == len(rows)
    names = [one.name for one in cohort.features.features]
    yes = dict(zip(names, (cohort.features.values == 1).sum(axis=0).tolist(), strict=True))
    assert {name: yes[name] for name in ("DIABETES", "EPOC", "HIPERTENSION", "OBESIDAD")} == {
        "DIABETES": 3979,
        "EPOC": 356,
        "HIPERTENSION": 6135,
        "OBESIDAD": 6714,
    }
    assert yes == {name: int((rows[name] == "1").sum()) for name in names}
    assert not {"ORIGEN", "NACIONALIDAD", "TOMA_MUESTRA_LAB"} & {*names, *cohort.codes}
