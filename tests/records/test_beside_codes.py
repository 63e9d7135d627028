"""Codes beside the records: every layout, version and system; test_joining.py joins them."""

import pandas as pd
import pytest

from comorb.errors import RecordsError
from comorb.records.reading import read_records
from tests.records.helpers import sets

CONDITIONS = pd.DataFrame({"hadm_id": ["10", "10", "11"], "icd_code": ["428.0", "250.00", "401.9"]})
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
