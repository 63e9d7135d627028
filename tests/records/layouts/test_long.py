"""Long tables as people bring them: several codes in a cell, other kinds of codes, any key."""

import numpy as np
import pyarrow as pa
import pytest

from comorb.errors import RecordsError
from comorb.records.cohort_file import load_cohort
from comorb.records.layouts.columns import Columns
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.long import find_code_columns, find_system
from comorb.records.read import inspect_records, read_records
from comorb.records.spec import CohortSpec
from comorb.records.stream import write_cohort
from tests.records.helpers import sets

BOTH = ["518.81, J96.00", "428.0, I50.9", "584.9, N17.9", "", "038.9, A41.9"]


def icu(between=", ", blank="", rename=str, turned=False, rows=200):
    """An export with codes of two editions in a cell."""
    cells = [text.replace(", ", between) or blank for text in BOTH]
    columns = {
        "diagnosisid": [str(9_000_000 + row) for row in range(rows)],
        "patientunitstayid": [str(141_168 + row // 4) for row in range(rows)],
        "diagnosisoffset": [str(row * 7) for row in range(rows)],
        "diagnosisstring": [f"organ|disease {row % 5}" for row in range(rows)],
        "icd9code": [cells[row % 5] for row in range(rows)],
        "diagnosispriority": ["Primary", "Major", "Other", "Other"] * (rows // 4),
    }
    names = sorted(columns, reverse=turned) if turned else list(columns)
    return pa.table({rename(name): columns[name] for name in names})


@pytest.mark.parametrize("between", [", ", ",", ";", " | ", "/", " "])
@pytest.mark.parametrize("blank", ["", None, "NA"])
def test_both_codes_of_a_cell_are_read_whatever_stands_between(between, blank):
    read = read_records(icu(between, blank))
    assert len(read) == 50
    assert {code.rpartition(":")[2] for code in read.codes} == {
        *("518", "428", "584", "038"),
        *("J96", "I50", "N17", "A41"),
    }
    assert read.ledger.adds_up


@pytest.mark.parametrize("rename", [str.upper, str.title])
def test_the_case_and_the_order_of_columns_do_not_matter(rename):
    assert sets(read_records(icu(rename=rename, turned=True))) == sets(read_records(icu()))


def test_two_editions_of_a_cell_are_counted_once_where_they_mean_the_same():
    read = read_records(icu(), level="common")
    assert read.codes == ("CCS108", "CCS131", "CCS157", "CCS2")
    both = "codes of two systems for one condition, which are two features"
    assert any(both in note for note in read_records(icu()).ledger.notes)
    assert not any(both in note for note in read.ledger.notes)
    alone = [text.partition(",")[0] for text in icu()["icd9code"].to_pylist()]
    nine = icu().set_column(4, "icd9code", pa.array(alone))
    assert sets(read) == sets(read_records(nine, level="common"))


def test_rows_without_a_code_are_counted_and_their_records_kept_when_asked(tmp_path):
    table = pa.table(
        {
            "stay_id": ["a", "a", "b", "c", "c", "d"],
            "icd": ["I10, E11.9", None, "", "I50.9", "I10", None],
        }
    )
    assert sets(read_records(table)).keys() == {"a", "c"}
    every = CohortSpec(at_least=0)
    expected = {"a": {"I10", "E11"}, "b": set(), "c": {"I50", "I10"}, "d": set()}
    assert sets(every.cohort(table)) == expected
    assert every.cohort(table).ledger.adds_up
    write_cohort(table, tmp_path / "c.parquet", every, memory="1GB")
    assert sets(load_cohort(tmp_path / "c.parquet")) == expected


@pytest.mark.parametrize("flags", [("1", "0"), ("Y", "N"), ("true", "false"), ("1.0", "0.0")])
@pytest.mark.parametrize("first", ["diagnoses", "procedures"])
def test_flags_are_read_to_the_end_of_the_table(flags, first):
    yes, no = flags
    rows = [(f"p{row % 900}", "428.0", yes) for row in range(1800)]
    rows += [(f"p{row % 900}", "38.93", no) for row in range(1800)]
    rows += [("p1", "250.00", yes), ("p2", "99.15", None)]
    rows = rows if first == "diagnoses" else rows[::-1]
    patients, codes, kinds = zip(*rows, strict=True)
    table = pa.table({"dx_flag": kinds, "code": codes, "patid": patients})
    read = read_records(table)
    assert set(read.codes) == {"428", "250"}
    assert read.ledger.chain("rows")[1].removed == 1801
    assert "dx_flag" not in read.covariates.column_names


def test_a_table_of_diagnoses_alone_loses_nothing():
    table = pa.table({"patid": ["a", "b"], "dx": ["1", "1"], "code": ["428.0", "250.00"]})
    assert inspect_records(table).ledger.chain("rows")[0].after == 2
    assert inspect_records(table).ledger.notes == ()


def test_rows_of_a_record_that_lie_far_apart():
    rng = np.random.default_rng(11)
    keys = rng.permutation(np.repeat(np.arange(40_000, 44_000), 3)).astype(str)
    codes = rng.choice(["I10", "E11.9", "I50.0", "N18.4"], len(keys))
    inspection = inspect_records(pa.table({"Vorgang": keys, "ICD": codes}))
    assert (inspection.layout.kind, inspection.records) == ("long", 4000)
    assert "'Vorgang' repeats from row to row" in inspection.ledger.notes[0]


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
    assert find_code_columns(columns(TABLES[kind, code]), kind).codes == (code,)


def test_several_columns_that_differ_in_their_number():
    table = {"id": ["1"], "ICD9_PRCDR_CD_1": ["3893"], "ICD9_PRCDR_CD_2": ["9604"], "HCPCS": ["x"]}
    found = find_code_columns(columns(table), "procedure").codes
    assert found == ("ICD9_PRCDR_CD_1", "ICD9_PRCDR_CD_2")


def test_what_is_said_stands():
    table = TABLES["drug", "ndc"]
    assert find_code_columns(columns(table, codes=("gsn",)), "drug").codes == ("gsn",)


def test_names_of_drugs_are_codes_a_row_each():
    assert find_code_columns(columns(TABLES["drug", "medication"]), "drug").given.kind == "long"


@pytest.mark.parametrize("kind", ["drug", "procedure"])
def test_a_table_without_codes_is_refused(kind):
    message = (
        f"the table: no column was recognised as holding codes of the kind '{kind}'. Its columns "
        "are 'ward', 'icd_diagnosis_date'; name those with the codes"
    )
    with pytest.raises(RecordsError, match=message):
        find_code_columns(columns({"ward": ["a"], "icd_diagnosis_date": ["2010-01-01"]}), kind)


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
    assert find_system(kind, dict.fromkeys(codes, 1)) == system
