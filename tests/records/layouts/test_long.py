"""Long tables as people bring them: several codes in a cell, other kinds of codes, any key."""

import numpy as np
import pyarrow as pa
import pytest

from comorb.records.archive import load_cohort
from comorb.records.preparation import Preparation
from comorb.records.reading import inspect_records, read_records
from comorb.records.streaming import write_cohort
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
    every = Preparation(at_least=0)
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
