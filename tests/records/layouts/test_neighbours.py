"""What stands beside the codes, told by names and values."""

import random

import pytest

from comorb.records.layouts.neighbours import (
    description_column,
    kind_column,
    repeating_id,
    version_column,
)


def beside(cells, *codes):
    return [name for name in cells if name not in codes]


def visits(rows, each):
    return [f"{70_000 + row // each}" for row in range(rows)]


@pytest.mark.parametrize(
    "texts", [("9", "10"), ("ICD-9-CM", "ICD-10-CM"), ("09", "10"), ("9", "0")]
)
def test_two_editions_beside_the_codes_are_the_version(texts):
    cells = {"x": [*texts, None] * 3, "code": ["428.0", "I50.9", "I10"] * 3}
    assert version_column(cells, ["x"], ["code"]) == "x"


def test_a_count_of_9_or_10_beside_codes_of_one_edition_is_no_version():
    cells = {"days": ["9", "10"] * 5, "code": ["I50.9", "I10"] * 5}
    assert version_column(cells, ["days"], ["code"]) is None


def test_a_version_column_may_say_some_other_system():
    cells = {"dx_type": ["09", "10", "SM"], "code": ["428.0", "I10", "38341003"]}
    assert version_column(cells, ["dx_type"], ["code"]) == "dx_type"


def test_the_id_of_a_record_repeats_and_is_the_finest_that_does():
    cells = {
        "hospital": ["a"] * 15 + ["b"] * 15,
        "Vorgang": visits(30, 3),
        "day": ["2010-01-01"] * 30,
        "amount": [f"{17 * row % 29}.5" for row in range(30)],
        "line": [str(row) for row in range(30)],
    }
    assert repeating_id(cells, list(cells)) == "Vorgang"


def test_the_rows_of_a_record_may_lie_apart():
    keys = visits(300, 3)
    random.Random(5).shuffle(keys)
    days = [str(3 + row % 90) for row in range(300)]
    towns = [str(8000 + 7 * row % 130) for row in range(300)]
    cells = {"los": days, "zip_code": towns, "Vorgang": keys}
    assert repeating_id(cells, list(cells)) == "Vorgang"
    assert repeating_id(cells, ["los", "zip_code"]) is None


def test_what_is_missing_or_worded_or_unique_is_no_id():
    cells = {
        "gap": [*visits(29, 3), None],
        "words": ["two words"] * 15 + ["three more words"] * 15,
        "own": [str(row) for row in range(30)],
    }
    assert repeating_id(cells, list(cells)) is None


@pytest.mark.parametrize(
    ("name", "diagnosis", "other"),
    [
        ("dx", "1", "0"),
        ("is_diagnosis", "Yes", "No"),
        ("PROC_FLAG", "N", "Y"),
        ("code_type", "DX", "PX"),
        ("Typ", "Diagnose", "Prozedur"),
        ("tipo", "diagnóstico", "intervención"),
        ("kind", "icd9 diagnosis", "icd9 procedure"),
    ],
)
def test_a_column_says_which_codes_are_diagnoses(name, diagnosis, other):
    column, is_diagnosis = kind_column({name: [diagnosis, other, None]}, [name])
    assert (column, is_diagnosis(diagnosis), is_diagnosis(other)) == (name, True, False)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("dx_poa", ["Y", "N"]),
        ("primary", ["1", "0"]),
        ("diag_rank", ["1", "0"]),
        ("type", ["emergency", "elective"]),
        ("icd_type", ["9", "10"]),
    ],
)
def test_other_columns_say_nothing_of_the_kind(name, values):
    assert kind_column({name: values}, [name]) is None


def test_a_description_goes_with_the_code():
    cells = {
        "code": ["1", "2", "1", "2"],
        "hospital_name": ["North", "South", "South", "North"],
        "Description": ["Heart failure", "Stress", "Heart failure", "Stress"],
    }
    assert description_column(cells, beside(cells, "code"), "code") == "Description"
    del cells["Description"]
    assert description_column(cells, beside(cells, "code"), "code") is None
