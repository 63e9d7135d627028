"""Coded: which columns of tables as people have them hold the codes of a kind."""

import pytest

from comorb.errors import RecordsError
from comorb.records.layouts.coded import system_of, with_codes_of
from comorb.records.layouts.columns import Columns
from comorb.records.layouts.description import Layout

ATC = ["A10BA02", "C07AB02", "C03CA01"]
TABLES = {
    ("drug", "ndc"): {"hadm_id": ["1"], "drug": ["Insulin"], "gsn": ["1"], "ndc": ["0033"]},
    ("drug", "atc_code"): {"patient_id": ["1"], "ndc": ["0033"], "atc_code": ATC},
    ("drug", "CODE"): {"START": ["2010-01-01"], "CODE": ["860975"], "REASONCODE": ["44054006"]},
    ("drug", "RXCUI"): {"drug_id": ["5"], "RXCUI": ["860975"], "drug_name": ["Metformin"]},
    ("drug", "Wirkstoffschluessel"): {"Fall": ["1"], "Wirkstoffschluessel": ATC, "n": ["2"]},
    ("drug", "medication"): {"visit_id": ["1"], "medication": ["Metformin 500 mg"], "dose": ["1"]},
    ("drug", "medication_code"): {"medication_id": ["9"], "medication_code": ["M1"]},
    ("procedure", "icd9_code"): {"row_id": ["1"], "seq_num": ["1"], "icd9_code": ["3893"]},
    ("procedure", "procedure_code"): {"procedure_code": ["99213"], "procedure_dt": ["2010-01-01"]},
    ("procedure", "CPT"): {"id": ["1"], "CPT": ["99213"], "diagnosis_code": ["I10"]},
    ("lab", "loinc_code"): {"lab_date": ["2010-01-01"], "loinc_code": ["4548-4"], "value": ["7"]},
    ("allergy", "allergy"): {"id": ["1"], "allergy": ["peanut"]},
}  # fmt: skip


def columns(table, **given):
    return Columns("the table", list(table), Layout(**given), lambda: table)


@pytest.mark.parametrize(("kind", "code"), TABLES)
def test_the_column_with_the_codes(kind, code):
    assert with_codes_of(columns(TABLES[kind, code]), kind).codes == (code,)


def test_several_columns_that_differ_in_their_number():
    table = {"id": ["1"], "ICD9_PRCDR_CD_1": ["3893"], "ICD9_PRCDR_CD_2": ["9604"], "HCPCS": ["x"]}
    found = with_codes_of(columns(table), "procedure").codes
    assert found == ("ICD9_PRCDR_CD_1", "ICD9_PRCDR_CD_2")


def test_what_is_said_stands():
    table = TABLES["drug", "ndc"]
    assert with_codes_of(columns(table, codes=("gsn",)), "drug").codes == ("gsn",)


def test_names_of_drugs_are_codes_a_row_each():
    assert with_codes_of(columns(TABLES["drug", "medication"]), "drug").given.kind == "long"


@pytest.mark.parametrize("kind", ["drug", "procedure"])
def test_a_table_without_codes_is_refused(kind):
    message = (
        f"the table: no column was recognised as holding codes of the kind '{kind}'. Its columns "
        "are 'ward', 'icd_diagnosis_date'; name those with the codes"
    )
    with pytest.raises(RecordsError, match=message):
        with_codes_of(columns({"ward": ["a"], "icd_diagnosis_date": ["2010-01-01"]}), kind)


@pytest.mark.parametrize(
    ("kind", "codes", "system"),
    [
        ("drug", ATC, "atc"),
        ("drug", ["860975", "314076"], "opaque"),
        ("drug", ["428", "250"], "opaque"),
        ("procedure", ["3893", "9604"], "icd9proc"),
        ("procedure", ["02HV33Z"], "icd10pcs"),
        ("procedure", ["99213", "36415"], "opaque"),
        ("lab", ["4548-4"], None),
    ],
)
def test_the_system_is_one_of_the_kind_or_none(kind, codes, system):
    assert system_of(kind, dict.fromkeys(codes, 1)) == system
