import numpy as np
import pyarrow as pa
import pytest

from comorb.errors import RecordsError
from comorb.records.cohort_file import load_cohort
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.plan import Plan
from comorb.records.layouts.wide import WIDE, identify
from comorb.records.read import read_records
from comorb.records.sources.duck import SourceTable
from comorb.records.spec import CohortSpec
from comorb.records.stream import write_cohort
from tests.records.helpers import sets

TABLE = SourceTable("file.csv", "t", {}, text=True)


def of(ids, layout, unit="visit", codes=None, **others):
    table = pa.table({"id": pa.array(ids, pa.string()), **others})
    mentions = (np.arange(len(ids)), np.array(codes or [0] * len(ids), dtype=np.int32))
    return identify(Plan(WIDE, TABLE, layout, unit), table, lambda: mentions, len(ids))


@pytest.mark.parametrize("ids", [["a", "b", "c"], ["c", "a", "b"], ["only"]])
def test_unique_ids_keep_the_order_of_the_rows(ids):
    known = of(ids, Layout(record="id"))
    assert known.ids.to_pylist() == ids
    assert known.place.tolist() == list(range(len(ids)))
    assert known.by_row


def test_patients_are_united_in_the_order_of_their_ids():
    known = of(["b", None, "a", "b"], Layout(patient="id"), "patient")
    assert known.ids.to_pylist() == ["a", "b"]
    assert known.place.tolist() == [1, -1, 0, 1]
    assert not known.by_row
    assert known.ledger.left("rows") == 3


def test_the_same_row_again_is_left_out():
    known = of(["b", "a", "b"], Layout(record="id"), codes=[5, 6, 5])
    assert known.place.tolist() == [0, 1, -1]
    assert not known.by_row


@pytest.mark.parametrize(("codes", "town"), [([5, 6, 7], "xyx"), ([5, 6, 5], "xyz")])
def test_the_same_id_with_unequal_rows(codes, town):
    with pytest.raises(RecordsError, match="must be unique, but rows 2 and 4 have the same id"):
        of(["b", "a", "b"], Layout(record="id"), codes=codes, town=list(town))


def test_patients_of_several_visits_do_not_name_the_visits():
    known = of(["p", "p"], Layout(patient="id"))
    assert known.ids.to_pylist() == ["1", "2"]
    assert known.column is None


def claims(rows=60, **changed):
    """Claims of which the second and the last are of one stay, with other codes."""
    ids = [f"c{row:03d}" for row in range(rows)]
    ids[-1] = ids[1]
    columns = {
        "claim_id": ids,
        "sex": ["F" if row % 2 else "M" for row in range(rows)],
        "admission_date": [f"2021-03-{1 + row % 28:02d}" for row in range(rows)],
        "los": [str(row % 9) for row in range(rows)],
        "age": ["4"] * rows,
        "age_unit": ["months" if row % 3 else "years" for row in range(rows)],
        "dx1": ["I500" if row % 2 else "E119" for row in range(rows)],
        "dx2": ["0000" if row % 4 else "N183" for row in range(rows)],
    }
    columns["admission_date"][-1] = columns["admission_date"][1]
    columns["dx1"][-1] = "J449"
    return pa.table(columns | changed)


def test_lines_of_a_stay_are_joined_in_memory_and_in_parts(tmp_path):
    cohort = read_records(claims(), level="full")
    write_cohort(
        claims(), tmp_path / "cohort.parquet", CohortSpec(level=("full",), at_least=1), memory="1GB"
    )
    parts = load_cohort(tmp_path / "cohort.parquet")
    for one in (cohort, parts):
        assert sets(one)["c001"] == {"I500", "J449"}
        assert (len(one), set(one.codes)) == (59, {"E119", "I500", "J449", "N183"})
        assert any("lines of one stay" in note for note in one.ledger.notes)
        assert any("zeros alone" in note for note in one.ledger.notes)
        assert one.covariates["age"].to_pylist()[:3] == pytest.approx([4, 4 / 12, 4 / 12])
    assert cohort.ids == parts.ids
    assert (cohort.matrix != parts.matrix).nnz == 0


def test_stays_of_two_people_under_one_id_are_refused(tmp_path):
    other = claims(sex=["F" if row % 2 else "M" for row in range(59)] + ["M"])
    with pytest.raises(RecordsError, match="must be unique"):
        read_records(other)
    with pytest.raises(RecordsError, match="must be unique when records are read"):
        write_cohort(other, tmp_path / "cohort.parquet", memory="1GB")


@pytest.mark.parametrize("write", ["*{}".format, ";{}".format, "|{}".format, "/{}".format])
def test_several_columns_with_several_codes_in_a_cell(write, tmp_path):
    held = [{"I219", "E119"}, {"J440"}, {"N179", "C509", "I500"}, {"K703", "B182"}] * 15
    cells = [sorted(one) for one in held]
    table = pa.table(
        {
            "certificate_id": [f"d{row:02d}" for row in range(len(held))],
            "cause_a": ["".join(map(write, codes[:2])).lstrip(";|/") for codes in cells],
            "cause_b": ["".join(map(write, codes[1:])).lstrip(";|/") or None for codes in cells],
        }
    )
    cohort = read_records(table, level="full")
    assert list(sets(cohort).values()) == held
    write_cohort(table, tmp_path / "cohort.parquet", CohortSpec(level=("full",), at_least=1), "1GB")
    assert sets(load_cohort(tmp_path / "cohort.parquet")) == sets(cohort)


def test_an_asterisk_after_a_code_is_a_mark_of_the_icd():
    pairs = [("E10.4†", "G63.2*"), ("A18.0†", "M49.0*"), ("I10", "N08.3*")] * 10
    one, two = zip(*pairs, strict=True)
    cohort = read_records(pa.table({"dx1": one, "dx2": two}), level="full")
    assert set(cohort.codes) >= {"G632", "M490", "N083"}
    assert cohort.matrix.sum(axis=1).tolist() == [2] * 30
