"""Columns and layouts are recognised by names and values."""

import random

import pytest

from comorb.errors import RecordsError
from comorb.records.layouts.columns import (
    Columns,
    find_description_column,
    find_kind_column,
    find_repeating_id,
    find_version_column,
)
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.readers import plan_table
from comorb.records.sources.duck import SourceTable


def recognise(columns, given=None):
    table = SourceTable("file.csv", "t", dict.fromkeys(columns, "VARCHAR"))
    known = Columns(table.label, list(columns), given or Layout(), lambda: columns)
    return plan_table(None, table, known).layout


def test_wide_with_the_columns_of_national_surveys():
    layout = recognise(
        {
            "record_id": ["1", "2"],
            "age_years": ["19", "20"],
            "sex": ["female", "male"],
            "discharge": ["home", "dead"],
            "dx1": ["64403", "29623"],
            "dx2": ["2809", "V3000"],
            "dx3": [],
            "drg": ["778", "885"],
        }
    )
    assert layout == Layout(
        "wide",
        ("dx1", "dx2", "dx3"),
        record="record_id",
        age="age_years",
        sex="sex",
        disposition="discharge",
    )


@pytest.mark.parametrize(
    "names", [("diag_1", "diag_2"), ("ICD9_DGNS_CD_1", "ICD9_DGNS_CD_2"), ("I10_DX1", "I10_DX2")]
)
def test_wide_whatever_the_columns_are_called(names):
    layout = recognise({"CLM_ID": ["1"], **{name: ["428.0"] for name in names}})
    assert layout.kind == "wide"
    assert layout.codes == names


def test_procedures_admitting_diagnoses_and_dates_hold_no_codes():
    layout = recognise(
        {
            "CLM_ID": ["1"],
            "ADMTNG_ICD9_DGNS_CD": ["7866"],
            "ICD9_DGNS_CD_1": ["1970"],
            "ICD9_DGNS_CD_2": ["4019"],
            "ICD9_PRCDR_CD_1": ["7092"],
            "diagnosis_date": ["2009-04-12"],
            "diagnosis_description": ["heart failure, unspecified"],
        }
    )
    assert layout.codes == ("ICD9_DGNS_CD_1", "ICD9_DGNS_CD_2")


def test_long_with_a_version():
    columns = {
        "subject_id": ["1", "1"],
        "hadm_id": ["7", "7"],
        "seq_num": ["1", "2"],
        "icd_code": ["4280", "I10"],
        "icd_version": ["9", "10"],
    }
    assert recognise(columns) == Layout(
        "long", ("icd_code",), record="hadm_id", patient="subject_id", version="icd_version"
    )


def test_a_version_column_that_names_no_edition_is_left_alone():
    layout = recognise({"id": ["1"], "code": ["I10"], "version": ["draft"]})
    assert layout.version is None


def test_delimited():
    layout = recognise({"visit": ["1"], "diagnoses": ["I10; E11.9; N18.3"]})
    assert (layout.kind, layout.codes, layout.separator) == ("delimited", ("diagnoses",), ";")


@pytest.mark.parametrize(("text", "mark"), [("I10|E11", "|"), ("I10,E11", ","), ("I10 E11", " ")])
def test_what_stands_between_codes(text, mark):
    assert recognise({"id": ["1"], "codes": [text]}).separator == mark


def test_binary_leaves_outcomes_out():
    layout = recognise(
        {"id": ["7", "8"], "CHF": ["1", "0"], "COPD": ["0", "0"], "died": ["0", "1"]}
    )
    assert (layout.kind, layout.codes, layout.record) == ("binary", ("CHF", "COPD"), "id")


def test_binary_with_codes_as_names():
    layout = recognise({"id": ["7"], "428": ["1"], "250.0": ["0"], "elective": ["1"]})
    assert layout.codes == ("428", "250.0")


def test_codes_in_unnamed_columns_are_known_by_their_look():
    layout = recognise({"id": ["1", "2"], "a": ["I10", "E11.9"], "b": ["J44.1", "N18.3"]})
    assert (layout.kind, layout.codes) == ("wide", ("a", "b"))


def test_what_is_given_stands():
    columns = {"x": ["1"], "y": ["2"], "w": ["1.5"]}
    layout = recognise(columns, Layout(codes=("x", "y"), weight="w"))
    assert layout == Layout("wide", ("x", "y"), weight="w")


def test_outcomes_are_known_by_name_and_values():
    columns = {
        "id": ["1", "2", "3"],
        "dx1": ["I10", "E11", "I10"],
        "dx2": ["I50", "N18", "J44"],
        "days_of_care": ["3", "4", "x"],
        "los": ["3", "4", "5"],
        "died": ["2020-01-01", "", ""],
        "exitus": ["0", "1", "0"],
        "hospital": ["A", "B", "C"],
        "centre": ["A", "A", "A"],
    }
    layout = recognise(columns)
    assert (layout.los, layout.died, layout.site) == ("los", "exitus", "centre")


def test_ignored_columns_are_neither_codes_nor_roles():
    columns = {"id": ["1"], "age": ["70"], "dx1": ["I10"], "dx2": ["E11"], "poa": ["Y"]}
    layout = recognise(columns, Layout(ignored=("dx2", "age")))
    assert (layout.codes, layout.age, layout.ignored) == (("dx1",), None, ("dx2", "age"))
    flags = {"id": ["7"], "gout": ["1"], "asthma": ["0"], "smoker": ["1"]}
    assert recognise(flags, Layout(ignored=("smoker",))).codes == ("gout", "asthma")
    assert recognise(flags, Layout(category=("smoker",))).codes == ("gout", "asthma")


def test_a_column_is_not_ignored_and_used():
    with pytest.raises(RecordsError, match="column 'age' is ignored and has a role, too; say one"):
        recognise({"age": ["1"], "dx1": ["I10"]}, Layout(age="age", ignored=("age",)))


def test_an_ignored_column_has_to_be_there():
    with pytest.raises(RecordsError, match="has no column 'aeg'; the nearest are 'age'"):
        recognise({"age": ["1"], "dx1": ["I10"]}, Layout(ignored=("aeg",)))


def test_spans_of_code_columns_are_spelled_out():
    columns = {name: ["I10"] for name in ("x", "dx1", "poa1", "dx2", "poa2", "dx3", "last")}
    assert recognise(columns, Layout(codes=("dx1-dx2",))).codes == ("dx1", "dx2")
    assert recognise(columns, Layout(codes=("dx3 - last", "x"))).codes == ("dx3", "last", "x")
    with pytest.raises(RecordsError, match="has no column 'last-dx1'"):
        recognise(columns, Layout(codes=("last-dx1",)))
    named = {"a-b": ["I10"], "a": ["I10"], "c": ["I10"], "b": ["I10"]}
    assert recognise(named, Layout(codes=("a-b",))).codes == ("a-b",)


def test_a_single_code_column_without_an_id_is_a_row_a_record():
    assert recognise({"icd": ["I10"]}).kind == "wide"


def test_a_wrong_column_names_the_nearest():
    with pytest.raises(RecordsError, match=r"file.csv has no column 'dx_1'; the nearest are 'dx1'"):
        recognise({"dx1": ["I10"], "dx2": ["I10"]}, Layout(codes=("dx_1",)))


def test_no_codes_at_all():
    with pytest.raises(
        RecordsError,
        match=r"no column was recognised as holding diagnosis codes. Its columns are 'id', 'town';",
    ):
        recognise({"id": ["1"], "town": ["Barcelona"]})


def beside(cells, *codes):
    return [name for name in cells if name not in codes]


def visits(rows, each):
    return [f"{70_000 + row // each}" for row in range(rows)]


@pytest.mark.parametrize(
    "texts", [("9", "10"), ("ICD-9-CM", "ICD-10-CM"), ("09", "10"), ("9", "0")]
)
def test_two_editions_beside_the_codes_are_the_version(texts):
    cells = {"x": [*texts, None] * 3, "code": ["428.0", "I50.9", "I10"] * 3}
    assert find_version_column(cells, ["x"], ["code"]) == "x"


def test_a_count_of_9_or_10_beside_codes_of_one_edition_is_no_version():
    cells = {"days": ["9", "10"] * 5, "code": ["I50.9", "I10"] * 5}
    assert find_version_column(cells, ["days"], ["code"]) is None


def test_a_version_column_may_say_some_other_system():
    cells = {"dx_type": ["09", "10", "SM"], "code": ["428.0", "I10", "38341003"]}
    assert find_version_column(cells, ["dx_type"], ["code"]) == "dx_type"


def test_the_id_of_a_record_repeats_and_is_the_finest_that_does():
    cells = {
        "hospital": ["a"] * 15 + ["b"] * 15,
        "Vorgang": visits(30, 3),
        "day": ["2010-01-01"] * 30,
        "amount": [f"{17 * row % 29}.5" for row in range(30)],
        "line": [str(row) for row in range(30)],
    }
    assert find_repeating_id(cells, list(cells)) == "Vorgang"


def test_the_rows_of_a_record_may_lie_apart():
    keys = visits(300, 3)
    random.Random(5).shuffle(keys)
    days = [str(3 + row % 90) for row in range(300)]
    towns = [str(8000 + 7 * row % 130) for row in range(300)]
    cells = {"los": days, "zip_code": towns, "Vorgang": keys}
    assert find_repeating_id(cells, list(cells)) == "Vorgang"
    assert find_repeating_id(cells, ["los", "zip_code"]) is None


def test_what_is_missing_or_worded_or_unique_is_no_id():
    cells = {
        "gap": [*visits(29, 3), None],
        "words": ["two words"] * 15 + ["three more words"] * 15,
        "own": [str(row) for row in range(30)],
    }
    assert find_repeating_id(cells, list(cells)) is None


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
    column, is_diagnosis = find_kind_column({name: [diagnosis, other, None]}, [name])
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
    assert find_kind_column({name: values}, [name]) is None


def test_a_description_goes_with_the_code():
    cells = {
        "code": ["1", "2", "1", "2"],
        "hospital_name": ["North", "South", "South", "North"],
        "Description": ["Heart failure", "Stress", "Heart failure", "Stress"],
    }
    assert find_description_column(cells, beside(cells, "code"), "code") == "Description"
    del cells["Description"]
    assert find_description_column(cells, beside(cells, "code"), "code") is None
