"""Keys: by which ids a source is joined; test_joining.py joins them."""

import pandas as pd
import pytest

from comorb.errors import RecordsError
from comorb.records.reading import read_records
from tests.records.helpers import sets

VISITS = pd.DataFrame(
    {
        "visit_id": ["1", "2", "3"],
        "patient_id": ["7", "7", "8"],
        "dx1": ["428.0", "250.00", "401.9"],
        "dx2": ["585.9", "401.9", "428.0"],
    }
)
DRUGS = pd.DataFrame({"patient_id": ["7", "8"], "atc": ["A10BA02", "C07AB02"]})


def test_records_without_an_id_are_joined_by_their_patients():
    cohort = read_records({"diagnosis": VISITS.drop(columns="visit_id"), "drug": DRUGS})
    assert [{code for code in codes if ":" in code} for codes in sets(cohort).values()] == [
        {"drug:A10B"},
        {"drug:A10B"},
        {"drug:C07A"},
    ]


def test_records_without_any_id_can_t_be_joined():
    message = "has no column that was recognised as the id of a visit or a patient, so nothing can"
    with pytest.raises(RecordsError, match=message):
        read_records({"diagnosis": VISITS[["dx1", "dx2"]], "drug": DRUGS})


def test_a_visit_of_two_patients_can_t_be_joined_by_them():
    rows = pd.DataFrame(
        {"visit_id": ["1", "1"], "patient_id": ["7", "8"], "icd_code": ["428.0", "250.00"]}
    )
    message = "the column 'patient_id' differs within visits, so nothing can be joined by it"
    with pytest.raises(RecordsError, match=message):
        read_records({"diagnosis": rows, "drug": DRUGS})


def test_a_table_of_visits_without_their_ids_is_refused():
    visits = pd.DataFrame({"patient_id": ["7", "8"], "ward": ["a", "b"]})
    message = r"can't be joined as visit: the records are known by 'visit_id' \(visit\) or"
    with pytest.raises(RecordsError, match=message):
        read_records({"diagnosis": VISITS, "visit": visits})
    cohort = read_records({"diagnosis": VISITS, "visit": visits}, unit="patient")
    assert cohort.covariates["ward"].to_pylist() == ["a", "b"]


def test_the_number_of_a_row_is_no_visit():
    drugs = DRUGS.assign(id=["1", "2"])
    cohort = read_records({"diagnosis": VISITS.rename(columns={"visit_id": "id"}), "drug": drugs})
    assert sets(cohort)["2"] == {"250", "401", "drug:A10B"}
    assert cohort.ledger.notes[-1] == (
        "drug: 2 of 2 rows matched a record by patient id (patient_id)"
    )
