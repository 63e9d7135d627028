"""Alignment: new records over a model's codes, and what it does not know."""

import pyarrow as pa
import pytest
from comorb.records.alignment import Unknown, align

from comorb.errors import RecordsError
from comorb.records.reading import read_records

RECORDS = pa.table(
    {
        "id": ["a", "b", "c"],
        "dx1": ["428.0", "250.00", "585.9"],
        "dx2": ["401.9", "585.9", "428.0"],
        "dx3": ["250.00", None, None],
    }
)


def test_the_columns_are_those_of_the_model_in_its_order():
    cohort = read_records(RECORDS)
    aligned, unknown = align(cohort, ["428", "585", "491", "401"], ["HF", "CKD", "COPD", "HT"])
    assert aligned.codes == ("428", "585", "491", "401")
    assert aligned.names == ("HF", "CKD", "COPD", "HT")
    assert aligned.matrix.toarray().tolist() == [[1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 0, 0]]
    assert aligned.matrix.has_sorted_indices
    assert aligned.ids == cohort.ids
    assert unknown == (Unknown("250", "Diabetes mellitus", 2),)


def test_a_code_left_out_on_purpose_is_not_unknown():
    assert align(read_records(RECORDS), ["428", "585", "401"], ["", "", ""], {"250"})[1] == ()


def test_the_ledger_still_adds_up():
    aligned, _ = align(read_records(RECORDS), ["428"], ["Heart failure"])
    assert aligned.ledger.adds_up
    assert aligned.ledger.left("features") == 1
    assert aligned.ledger.left("records") == 3


def test_unknown_codes_come_most_common_first():
    _, unknown = align(read_records(RECORDS), ["428"], ["Heart failure"])
    assert [(one.code, one.records) for one in unknown] == [("250", 2), ("585", 2), ("401", 1)]


def test_records_without_any_known_code_are_refused():
    with pytest.raises(
        RecordsError, match=r"knows none of the 4 codes of these records \(icd9cm, category\); are"
    ):
        align(read_records(RECORDS), ["I50"], ["Heart failure"])
