"""Several sources give the cohort that a plain join of their rows gives; by which ids."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError
from comorb.records import join, stream
from comorb.records.cohort_file import load_cohort
from comorb.records.layouts.layout import Layout
from comorb.records.read import inspect_records, read_records
from comorb.records.spec import CohortSpec
from comorb.records.stream import write_cohort
from tests.records.helpers import sets

ZOO = Path(__file__).parents[3] / "shared" / "data" / "zoo"

CONDITIONS = pd.DataFrame(
    {
        "hadm_id": ["10", "10", "11", "12", "12", "13"],
        "subject_id": ["1", "1", "1", "2", "2", "3"],
        "icd_code": ["428.0", "250.00", "401.9", "585.9", "428.0", "250.00"],
    }
)
DRUGS = pd.DataFrame(
    {
        "hadm_id": ["10", "10", "11", "12", "99", None],
        "subject_id": ["1", "1", "1", "2", "9", "2"],
        "atc_code": ["A10BA02", "C07AB02", "A10BA02", "C03CA01", "C03CA01", "B01AA03"],
    }
)
VISITS = pd.DataFrame(
    {
        "hadm_id": ["10", "11", "12", "14"],
        "subject_id": ["1", "1", "2", "4"],
        "admittime": ["2010-05-01 10:00", "2009-03-04 11:00", "2011-06-30 00:10", "2012-01-01"],
        "died": ["0", "1", "0", "0"],
    }
)
PATIENTS = pd.DataFrame(
    {
        "subject_id": ["1", "2", "3"],
        "gender": ["F", "M", "F"],
        "dob": ["1940-05-02", "1950-06-30", "1960-01-01"],
    }
)
BY_VISIT = {
    "10": {"428", "250", "drug:A10B", "drug:C07A"},
    "11": {"401", "drug:A10B"},
    "12": {"585", "428", "drug:C03C"},
    "13": {"250"},
}
BY_PATIENT = {
    "1": {"428", "250", "401", "drug:A10B", "drug:C07A"},
    "2": {"585", "428", "drug:C03C", "drug:B01A"},
    "3": {"250"},
}


def need(name):
    path = ZOO / name
    if not path.exists():
        pytest.skip(f"needs ../shared/data/zoo/{name} beside the project, which is absent")
    return path


def as_csv(frame, path):
    frame.to_csv(path, index=False)
    return path


def as_parquet(frame, path):
    path = path.with_suffix(".parquet")
    pq.write_table(pa.Table.from_pandas(frame), path, write_page_checksum=True)
    return path


def as_frame(frame, path):
    return frame


@pytest.mark.parametrize("write", [as_csv, as_parquet, as_frame])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_drugs_go_to_their_visit_or_to_its_patient(write, order, tmp_path):
    conditions = CONDITIONS.sample(frac=1, random_state=order)
    drugs = DRUGS.sample(frac=1, random_state=order)
    given = {
        "diagnosis": write(conditions, tmp_path / "conditions.csv"),
        "drug": write(drugs, tmp_path / "drugs.csv"),
    }
    cohort = read_records(given)
    assert sets(cohort) == BY_VISIT
    assert cohort.system == "icd9cm drug:atc"
    assert cohort.names[cohort.codes.index("drug:C03C")] == "High-ceiling diuretics"
    assert cohort.ledger.adds_up
    assert cohort.ledger.notes[-1] == (
        "drug: 4 of 6 rows matched a record by visit id (hadm_id); 2 have none"
    )
    united = read_records(given, unit="patient")
    assert sets(united) == BY_PATIENT
    assert united.ledger.notes[-1] == (
        "drug: 5 of 6 rows matched a record by patient id (subject_id); 1 have none"
    )


def test_what_is_there_alone_keeps_its_bits():
    alone, joined = read_records(CONDITIONS), read_records({"diagnosis": CONDITIONS, "drug": DRUGS})
    own = [place for place, code in enumerate(joined.codes) if ":" not in code]
    assert tuple(joined.codes[place] for place in own) == alone.codes
    assert np.array_equal(joined.matrix[:, own].toarray(), alone.matrix.toarray())
    assert read_records({"diagnosis": CONDITIONS}).digest() == alone.digest()


def test_the_first_kind_has_the_records_when_none_is_diagnosis():
    cohort = read_records({"drug": DRUGS, "condition": CONDITIONS}, unit="patient", level="full")
    assert sets(cohort)["1"] == {
        *("A10BA02", "C07AB02"), *("condition:4280", "condition:25000", "condition:4019")
    }  # fmt: skip


def test_the_rules_work_on_every_kind():
    given = {"diagnosis": CONDITIONS, "drug": DRUGS}
    cohort = read_records(given)
    assert sets(cohort.having("drug:A10B")).keys() == {"10", "11"}
    assert sets(cohort.having("a10b")).keys() == {"10", "11"}
    assert sets(cohort.without("drug:A10B")).keys() == {"12", "13"}
    assert "drug:A10B" not in cohort.drop_codes("drug:A10B").codes
    assert cohort.drop_rare(2).codes == ("250", "428", "drug:A10B")
    assert sets(cohort.at_least(3)).keys() == {"10", "12"}
    full = read_records(given, level="full")
    assert sets(full.having("drug:A10")).keys() == {"10", "11"}
    with pytest.raises(RecordsError, match="No record has the code 'drug:X' at the level"):
        cohort.having("drug:X")


def test_a_plain_code_means_the_records_own():
    procedures = pd.DataFrame({"hadm_id": ["13", "11"], "procedure_code": ["25.1", "42.8"]})
    given = {"diagnosis": CONDITIONS, "procedure": procedures}
    cohort = read_records(given, level="full", system="icd9cm procedure:icd9proc")
    assert "procedure:428" in cohort.codes
    assert sets(cohort.having("428")).keys() == {"10", "12"}
    assert sets(cohort.having("procedure:428")).keys() == {"11"}


@pytest.mark.parametrize("unit", ["visit", "patient"])
def test_visits_and_patients_bring_covariates(unit):
    given = {"diagnosis": CONDITIONS, "patient": PATIENTS, "visit": VISITS}
    cohort = read_records(given, unit=unit)
    columns = {name: cohort.covariates[name].to_pylist() for name in cohort.covariates.column_names}
    if unit == "visit":
        assert list(map(str, columns["date"])) == ["2010-05-01", "2009-03-04", "2011-06-30", "None"]
        assert columns["sex"] == ["F", "F", "M", "F"]
        assert columns["age"] == [69.0, 68.0, 61.0, None]
        assert columns["died"] == [0, 1, 0, None]
        assert cohort.ledger.notes[-3:] == (
            "visit: 3 of 4 rows matched a record by visit id (hadm_id); 1 have none",
            "patient: 3 of 3 rows matched a record by patient id (subject_id)",
            join.AGE_NOTE,
        )
    else:
        assert list(map(str, columns["date"])) == ["2009-03-04", "2011-06-30", "None"]
        assert columns["age"] == [68.0, 61.0, None]
        assert columns["died"] == [1, 0, None]
        assert (
            "visit: 3 rows are of 2 patients, of whom the first by date is taken"
            in cohort.ledger.notes
        )
    assert not {"dob", "hadm_id"} & set(columns)
    assert len(cohort.where(age=(65, None))) == {"visit": 2, "patient": 1}[unit]


def test_patients_are_found_by_their_visits():
    conditions = CONDITIONS.drop(columns="subject_id")
    given = {"diagnosis": conditions, "patient": PATIENTS, "visit": VISITS}
    cohort = read_records(given)
    assert cohort.covariates["sex"].to_pylist() == ["F", "F", "M", None]
    assert cohort.covariates["subject_id"].to_pylist() == ["1", "1", "2", None]
    drugs = read_records(given | {"drug": DRUGS.drop(columns="hadm_id")})
    assert sets(drugs)["11"] == {"401", "drug:A10B", "drug:C07A"}


def test_a_visit_s_drugs_go_to_its_patient_by_the_records_own_ids():
    drugs = DRUGS.drop(columns="subject_id")
    cohort = read_records({"diagnosis": CONDITIONS, "drug": drugs}, unit="patient")
    assert sets(cohort) == BY_PATIENT | {"2": BY_PATIENT["2"] - {"drug:B01A"}}
    assert cohort.ledger.notes[-1] == (
        "drug: 4 of 6 rows matched a record by visit id (hadm_id); 2 have none"
    )


def test_drugs_of_patients_go_to_all_their_visits():
    drugs = DRUGS.drop(columns="hadm_id")
    cohort = read_records({"diagnosis": CONDITIONS, "drug": drugs})
    assert sets(cohort)["11"] == {"401", "drug:A10B", "drug:C07A"}
    assert "by patient id (subject_id)" in cohort.ledger.notes[-1]


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.rename(columns={"hadm_id": "HADM ID"}),
        lambda frame: frame.rename(columns={"hadm_id": "encounter_id"}),
        lambda frame: frame.assign(hadm_id=frame["hadm_id"].astype(float)),
        lambda frame: frame.assign(hadm_id=" " + frame["hadm_id"] + " "),
        lambda frame: frame.assign(id=range(10, 16)),
    ],
    ids=[
        "written otherwise",
        "named otherwise",
        "as numbers",
        "with blanks",
        "beside a number",
    ],
)
def test_ids_are_found_by_names_and_values(change):
    drugs = change(DRUGS.drop(columns="subject_id"))
    assert sets(read_records({"diagnosis": CONDITIONS, "drug": drugs})) == BY_VISIT


def test_a_name_that_is_taken_gets_its_kind():
    conditions = CONDITIONS.assign(age=[50, 50, 51, 60, 60, 70], died="no")
    cohort = read_records({"diagnosis": conditions, "visit": VISITS, "patient": PATIENTS})
    assert cohort.covariates["age"].to_pylist() == [50, 51, 60, 70]
    assert cohort.covariates["died"].to_pylist() == ["no"] * 4
    assert cohort.covariates["visit.died"].to_pylist() == [0, 1, 0, None]
    assert (
        "visit: the records have a column 'died' already; this one is called 'visit.died'"
        in cohort.ledger.notes
    )


def test_a_name_is_taken_whatever_a_part_of_the_records_keeps(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "PART_ROWS", 2)
    conditions = CONDITIONS.assign(ward=["x", "y", "z", "z", "z", "z"])
    given = {"diagnosis": conditions, "visit": VISITS.assign(ward=["a", "b", "c", "d"])}
    rules = CohortSpec(at_least=1)
    whole = rules.cohort(given)
    write_cohort(given, tmp_path / "cohort.parquet", rules)
    read = load_cohort(tmp_path / "cohort.parquet")
    for cohort in (whole, read):
        assert cohort.covariates["visit.ward"].to_pylist() == ["a", "b", "c", None]
    assert read.ledger.notes == whole.ledger.notes


def test_a_birth_without_a_visit_s_date_gives_no_age():
    cohort = read_records({"diagnosis": CONDITIONS, "patient": PATIENTS})
    assert "age" not in cohort.covariates.column_names
    assert cohort.ledger.notes[-1] == join.NO_AGE_NOTE


def test_inspection_tells_every_kind():
    seen = inspect_records({"diagnosis": CONDITIONS, "drug": DRUGS, "visit": VISITS})
    assert (seen.system, seen.features) == ("icd9cm drug:atc", 7)
    assert "date" in seen.covariates
    assert {"drug:A10B", "428"} <= {code for code, _, _ in seen.most_common}


def many(n):
    """Wide records in no order, with drugs and visits that aren't all theirs."""
    draw = np.random.default_rng(7)
    ids = draw.permutation(n)
    codes = np.array(["4280", "25000", "4019", "5859", "2859"])
    records = pa.table(
        {
            "visit_id": [f"v{i}" for i in ids],
            "patient_id": [f"p{i // 3}" for i in ids],
            "dx1": codes[draw.integers(0, 5, n)],
            "dx2": codes[draw.integers(0, 5, n)],
        }
    )
    atc = np.array(["A10BA02", "C07AB02", "C03CA01", "B01AA03", None], object)
    to = draw.integers(0, n + 50, 2 * n)
    drugs = pa.table(
        {
            "visit_id": [f"v{i}" for i in to],
            "patient_id": [f"p{i // 3}" for i in to],
            "atc": atc[draw.integers(0, 5, 2 * n)],
        }
    )
    visits = pa.table(
        {
            "visit_id": [f"v{i}" for i in range(n)],
            "admission_date": [f"2010-01-{1 + i % 28:02}" for i in range(n)],
            "ward": [str(i % 7) for i in range(n)],
        }
    )
    return {"diagnosis": records, "drug": drugs, "visit": visits}


@pytest.mark.parametrize("unit", ["visit", "patient"])
@pytest.mark.parametrize("by", ["visit_id", "patient_id"])
def test_parts_give_the_cohort_of_memory(unit, by, tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "PART_ROWS", 700)
    monkeypatch.setattr(join, "SLICE", 300)
    given = many(3000)
    if by == "patient_id":
        given["drug"] = given["drug"].drop_columns(["visit_id"])
    rules = CohortSpec(unit=unit, at_least=2, without=("drug:B01A",), drop_rare=3)
    write_cohort(given, tmp_path / "cohort.parquet", rules, "1GB")
    whole, read = rules.cohort(given), load_cohort(tmp_path / "cohort.parquet")
    assert len(whole) > 200
    assert (read.codes, read.names, read.system) == (whole.codes, whole.names, whole.system)
    assert read.ids.equals(whole.ids)
    assert np.array_equal(read.matrix.toarray(), whole.matrix.toarray())
    joined = ["date", "ward"]
    assert read.covariates.select(joined).equals(whole.covariates.select(joined))
    assert read.ledger.notes == whole.ledger.notes
    assert read.ledger.adds_up
    assert whole.ledger.adds_up


def joined_by_hand(records, others, key, code, kind):
    """The codes of each record, by pandas."""
    held = others[others[key].isin(records[key])].dropna(subset=[code])
    return {one: {f"{kind}:{c}" for c in some} for one, some in held.groupby(key)[code]}


@pytest.mark.parametrize(("unit", "key"), [("visit", "hadm_id"), ("patient", "subject_id")])
@pytest.mark.parametrize("share", [1.0, 0.6])
def test_mimic_as_pandas_joins_it(unit, key, share, tmp_path):
    folder = need("mimic3demo")
    read = {
        name: pd.read_csv(folder / f"{name}.csv.gz", dtype=str)
        for name in ("DIAGNOSES_ICD", "PRESCRIPTIONS", "PROCEDURES_ICD", "ADMISSIONS", "PATIENTS")
    }
    diagnoses = read["DIAGNOSES_ICD"]
    chosen = sorted(diagnoses["hadm_id"].unique())[: int(share * diagnoses["hadm_id"].nunique())]
    diagnoses = diagnoses[diagnoses["hadm_id"].isin(chosen)]
    diagnoses.to_csv(tmp_path / "dx.csv", index=False)
    cohort = read_records(
        {
            "diagnosis": tmp_path / "dx.csv",
            "drug": folder / "PRESCRIPTIONS.csv.gz",
            "procedure": folder / "PROCEDURES_ICD.csv.gz",
            "visit": folder / "ADMISSIONS.csv.gz",
            "patient": folder / "PATIENTS.csv.gz",
        },
        unit=unit,
        level="full",
    )
    drugs, procedures = read["PRESCRIPTIONS"], read["PROCEDURES_ICD"]
    drugs.loc[drugs["ndc"] == "0", "ndc"] = None
    by_drug = joined_by_hand(diagnoses, drugs, key, "ndc", "drug")
    by_procedure = joined_by_hand(diagnoses, procedures, key, "icd9_code", "procedure")
    found = sets(cohort)
    assert set(found) == set(diagnoses[key])
    for one, codes in found.items():
        kinds = {code for code in codes if ":" in code}
        assert kinds == by_drug.get(one, set()) | by_procedure.get(one, set())
    matched = drugs[key].isin(diagnoses[key]).sum()
    word = "visit" if unit == "visit" else "patient"
    told = f"drug: {matched:,} of {len(drugs):,} rows matched a record by {word} id ({key})"
    assert any(note.startswith(told) for note in cohort.ledger.notes)
    visits = read["ADMISSIONS"].merge(read["PATIENTS"], on="subject_id")
    visits = visits.sort_values("admittime").drop_duplicates(key).set_index(key)
    ids = cohort.ids.to_pylist()
    assert cohort.covariates["sex"].to_pylist() == visits.loc[ids, "gender"].tolist()
    died = [int(one) for one in visits.loc[ids, "hospital_expire_flag"]]
    assert cohort.covariates["died"].to_pylist() == died
    for id_, age in zip(ids, cohort.covariates["age"].to_pylist(), strict=True):
        came, born = visits.loc[id_, "admittime"][:10], visits.loc[id_, "dob"][:10]
        years = int(came[:4]) - int(born[:4]) - (came[5:] < born[5:])
        assert age == (years if 0 <= years <= 130 else None)


def test_kinds_of_a_folder(tmp_path):
    folder = need("mimic3demo")
    kinds = ("diagnosis", "drug", "procedure", "visit", "patient")
    by_kinds = read_records(folder, kinds=kinds)
    by_files = read_records(
        {
            "diagnosis": folder / "DIAGNOSES_ICD.csv.gz",
            "drug": folder / "PRESCRIPTIONS.csv.gz",
            "procedure": folder / "PROCEDURES_ICD.csv.gz",
            "visit": folder / "ADMISSIONS.csv.gz",
            "patient": folder / "PATIENTS.csv.gz",
        }
    )
    by_tables = read_records(
        {
            "diagnosis": folder,
            "drug": "prescriptions",
            "procedure": "SELECT * FROM procedures_icd",
            "visit": "admissions",
            "patient": "PATIENTS.csv",
        },
        table="diagnoses_icd",
    )
    for one in (by_kinds, by_tables):
        assert one.codes == by_files.codes
        assert one.digest() == by_files.digest()
        assert one.covariates.equals(by_files.covariates)
    assert by_files.ids.equals(read_records(folder / "DIAGNOSES_ICD.csv.gz").ids)


def test_kinds_of_omop_and_fhir_as_pandas_joins_them():
    folder = need("eunomia")
    cohort = read_records(folder, kinds=["diagnosis", "drug"])
    drugs = pd.read_csv(folder / "DRUG_ERA.csv.gz", dtype=str)
    by_person = drugs.groupby("PERSON_ID")["DRUG_CONCEPT_ID"].agg(set)
    names = pd.read_csv(folder / "CONCEPT.csv.gz", dtype=str).set_index("CONCEPT_ID")
    for one, codes in sets(cohort).items():
        own = {code.removeprefix("drug:") for code in codes if code.startswith("drug:")}
        assert own == by_person.get(one, set())
    for code, name in zip(cohort.codes, cohort.names, strict=True):
        concept = code.removeprefix("drug:")
        assert name == names["CONCEPT_NAME"].get(concept, concept)


def test_a_source_that_can_t_be_joined_is_refused():
    others = DRUGS.assign(hadm_id="x", subject_id="y")
    message = (
        r"the DataFrame can't be joined as drug: the records are known by 'hadm_id' \(visit\) or "
        r"'subject_id' \(patient\), and no row of it has an id in 'hadm_id', 'subject_id' that the "
        r"records have\. Give the source that belongs to these records, or name the column"
    )
    with pytest.raises(RecordsError, match=message):
        read_records({"diagnosis": CONDITIONS, "drug": others})
    with pytest.raises(RecordsError, match=r"'subject_id' \(patient\), and it has neither"):
        read_records({"diagnosis": CONDITIONS, "drug": DRUGS[["atc_code"]]})


def test_a_named_column_is_the_id_and_has_the_codes():
    drugs = DRUGS.rename(columns={"hadm_id": "came", "atc_code": "given"})[["came", "given"]]
    layouts = {"drug": Layout(record="came", codes=("given",))}
    cohort = read_records({"diagnosis": CONDITIONS, "drug": drugs}, layout=layouts)
    assert sets(cohort) == BY_VISIT


def test_a_synthea_folder(tmp_path):
    pd.DataFrame(
        {
            "START": ["2010-01-01", "2010-01-01", "2011-05-05"],
            "PATIENT": ["a-1", "a-1", "b-2"],
            "ENCOUNTER": ["e-1", "e-1", "e-2"],
            "CODE": ["44054006", "59621000", "44054006"],
            "DESCRIPTION": ["Diabetes", "Hypertension", "Diabetes"],
        }
    ).to_csv(tmp_path / "conditions.csv", index=False)
    pd.DataFrame(
        {
            "START": ["2010-01-02", "2011-05-05"],
            "PATIENT": ["a-1", "b-2"],
            "ENCOUNTER": ["e-1", "e-2"],
            "CODE": ["860975", "860975"],
            "DESCRIPTION": ["Metformin", "Metformin"],
            "REASONCODE": ["44054006", "44054006"],
        }
    ).to_csv(tmp_path / "medications.csv", index=False)
    pd.DataFrame(
        {
            "Id": ["e-1", "e-2", "e-3"],
            "START": ["2010-01-01T08:00:00Z", "2011-05-05T08:00:00Z", "2012-01-01T08:00:00Z"],
            "PATIENT": ["a-1", "b-2", "b-2"],
            "ENCOUNTERCLASS": ["inpatient", "wellness", "wellness"],
            "CODE": ["1", "2", "2"],
        }
    ).to_csv(tmp_path / "encounters.csv", index=False)
    pd.DataFrame(
        {"Id": ["a-1", "b-2"], "BIRTHDATE": ["1950-01-02", "1960-05-05"], "GENDER": ["F", "M"]}
    ).to_csv(tmp_path / "patients.csv", index=False)
    kinds = ("diagnosis", "drug", "visit", "patient")
    cohort = read_records(tmp_path, kinds=kinds, system="opaque")
    assert sets(cohort) == {
        "e-1": {"44054006", "59621000", "drug:860975"},
        "e-2": {"44054006", "drug:860975"},
    }
    assert cohort.names[-1] == "Metformin"
    assert cohort.covariates["sex"].to_pylist() == ["F", "M"]
    assert cohort.covariates["ENCOUNTERCLASS"].to_pylist() == ["inpatient", "wellness"]
    united = read_records(tmp_path, kinds=kinds, unit="patient", system="opaque")
    assert united.ids.to_pylist() == ["a-1", "b-2"]
    assert united.covariates["ENCOUNTERCLASS"].to_pylist()[0] == "inpatient"


STAYS = pd.DataFrame(
    {
        "visit_id": ["1", "2", "3"],
        "patient_id": ["7", "7", "8"],
        "dx1": ["428.0", "250.00", "401.9"],
        "dx2": ["585.9", "401.9", "428.0"],
    }
)
MEDICINES = pd.DataFrame({"patient_id": ["7", "8"], "atc": ["A10BA02", "C07AB02"]})


def test_records_without_an_id_are_joined_by_their_patients():
    cohort = read_records({"diagnosis": STAYS.drop(columns="visit_id"), "drug": MEDICINES})
    assert [{code for code in codes if ":" in code} for codes in sets(cohort).values()] == [
        {"drug:A10B"},
        {"drug:A10B"},
        {"drug:C07A"},
    ]


def test_records_without_any_id_can_t_be_joined():
    message = "has no column that was recognised as the id of a visit or a patient, so nothing can"
    with pytest.raises(RecordsError, match=message):
        read_records({"diagnosis": STAYS[["dx1", "dx2"]], "drug": MEDICINES})


def test_a_visit_of_two_patients_can_t_be_joined_by_them():
    rows = pd.DataFrame(
        {"visit_id": ["1", "1"], "patient_id": ["7", "8"], "icd_code": ["428.0", "250.00"]}
    )
    message = "the column 'patient_id' differs within visits, so nothing can be joined by it"
    with pytest.raises(RecordsError, match=message):
        read_records({"diagnosis": rows, "drug": MEDICINES})


def test_a_table_of_visits_without_their_ids_is_refused():
    visits = pd.DataFrame({"patient_id": ["7", "8"], "ward": ["a", "b"]})
    message = r"can't be joined as visit: the records are known by 'visit_id' \(visit\) or"
    with pytest.raises(RecordsError, match=message):
        read_records({"diagnosis": STAYS, "visit": visits})
    cohort = read_records({"diagnosis": STAYS, "visit": visits}, unit="patient")
    assert cohort.covariates["ward"].to_pylist() == ["a", "b"]


def test_the_number_of_a_row_is_no_visit():
    drugs = MEDICINES.assign(id=["1", "2"])
    cohort = read_records({"diagnosis": STAYS.rename(columns={"visit_id": "id"}), "drug": drugs})
    assert sets(cohort)["2"] == {"250", "401", "drug:A10B"}
    assert cohort.ledger.notes[-1] == (
        "drug: 2 of 2 rows matched a record by patient id (patient_id)"
    )
