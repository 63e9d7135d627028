"""What codes become, in every layout, whether a file is read whole or in parts."""

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from comorb.errors import RecordsError
from comorb.records import stream
from comorb.records.codes.code_map import CodeMap, Line
from comorb.records.codes.vocabulary import Coding
from comorb.records.cohort_file import load_cohort
from comorb.records.read import inspect_records, read_records
from comorb.records.spec import CohortSpec
from comorb.records.stream import write_cohort
from tests.records.helpers import sets

RECORDS = {
    "a": ["428.0", "250.00", "250.40", "486"],
    "b": ["196.0", "174.9", "401.9"],
    "c": ["486", "070.9", "486"],
    "d": ["401.1", "V45.81", "278.00"],
}
MAP = CodeMap(
    "m.csv",
    "0",
    (
        Line("428", "heart"),
        Line("250", "diabetes"),
        Line("250.4", "kidney"),
        Line("40", "heart", open=True),
    ),
    (("heart", "Heart and vessels"),),
)


def wide():
    rows = [[*codes, *[None] * (4 - len(codes))] for codes in RECORDS.values()]
    columns = {f"dx{i}": list(column) for i, column in enumerate(zip(*rows, strict=True), 1)}
    return pa.table({"visit_id": list(RECORDS), **columns, "charlson": [9, 8, 7, 6]})


def long():
    pairs = [(visit, code) for visit, codes in RECORDS.items() for code in codes]
    return pa.table({"visit_id": [v for v, _ in pairs], "icd_code": [code for _, code in pairs]})


def delimited():
    return pa.table({"visit_id": list(RECORDS), "codes": [";".join(x) for x in RECORDS.values()]})


LAYOUTS = {"wide": wide, "long": long, "delimited": delimited}


def test_one_or_several():
    assert Coding(("full", "group")).level == "full+group"
    assert Coding().level == "category"
    assert Coding(map=MAP).level == "map"


def test_unknown_levels_and_scores_are_refused():
    with pytest.raises(RecordsError, match=r"level out of category, full, .*; got 'fine'"):
        Coding(("full", "fine"))
    with pytest.raises(RecordsError, match=r"score out of .*; got 'apache'"):
        Coding(scores=("apache",))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_scores_are_covariates_and_no_features(layout):
    plain = read_records(LAYOUTS[layout]())
    scored = read_records(LAYOUTS[layout](), scores=["charlson", "elixhauser"])
    assert scored.covariates["charlson"].to_pylist() == [3, 6, 1, 0]
    assert scored.covariates["elixhauser"].to_pylist() == [7, 12, 11, -4]
    assert scored.codes == plain.codes
    assert sets(scored) == sets(plain)
    assert scored.matrix.dtype == plain.matrix.dtype
    assert scored.ledger.lines == plain.ledger.lines
    if layout == "wide":
        assert scored.covariates["charlson (column)"].to_pylist() == [9, 8, 7, 6]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_chronic_conditions(layout):
    cohort = read_records(LAYOUTS[layout](), chronic=True, scores="charlson")
    assert sets(cohort) == {
        "a": {"428", "250"},
        "b": {"196", "174", "401"},
        "d": {"401", "278"},
    }
    assert cohort.covariates["charlson"].to_pylist() == [3, 6, 0]
    assert cohort.ledger.adds_up
    unit = "rows" if layout == "long" else "codes"
    gone = {line.rule: line.removed for line in cohort.ledger.chain(unit)}
    assert gone["not chronic"] == 5
    assert gone["again in one record"] == 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_groups_of_a_map(layout):
    cohort = read_records(LAYOUTS[layout](), code_map=MAP)
    assert sets(cohort) == {"a": {"heart", "diabetes", "kidney"}, "b": {"heart"}, "d": {"heart"}}
    assert cohort.level == "map"
    assert cohort.names[cohort.codes.index("heart")] == "Heart and vessels"
    assert cohort.ledger.adds_up
    unit = "rows" if layout == "long" else "codes"
    assert {line.rule: line.removed for line in cohort.ledger.chain(unit)}["not in the map"] == 8
    assert "38.5% of 13 codes are in the map m.csv (0); 8 are left out" in cohort.ledger.notes


def test_a_map_may_be_a_file(tmp_path):
    path = tmp_path / "map.csv"
    path.write_text("group,prefix\nheart,428\n")
    assert inspect_records(wide(), code_map=path).most_common == (("heart", "heart", 1),)


def test_one_meaning_in_two_editions():
    table = pa.table(
        {
            "visit_id": ["a", "a", "b", "b", "b"],
            "icd_code": ["428.0", "401.9", "I50.9", "I10", "U07.1"],
            "icd_version": ["9", "9", "10", "10", "10"],
        }
    )
    cohort = read_records(table, level="common")
    assert sets(cohort) == {"a": {"CCS108", "CCS98"}, "b": {"CCS108", "CCS98", "icd10cm:U07"}}
    assert cohort.system == "icd10cm+icd9cm"
    assert cohort.ledger.notes[-1] == (
        "80.0% of 5 codes are in a group that coding systems share; 1 keep their own category"
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "preparation",
    [
        CohortSpec(at_least=1, level=("common", "category"), scores=("elixhauser",)),
        CohortSpec(at_least=1, code_map=MAP, scores=("charlson", "charlson2011")),
        CohortSpec(at_least=1, chronic=True, scores=("charlson",)),
    ],
    ids=["common", "map", "chronic"],
)
def test_parts_give_the_cohort_of_memory(layout, preparation, tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "PART_ROWS", 2)
    pa_csv.write_csv(LAYOUTS[layout](), tmp_path / "records.csv")
    write_cohort(tmp_path / "records.csv", tmp_path / "cohort.parquet", preparation, "1GB")
    whole = preparation.cohort(tmp_path / "records.csv")
    read = load_cohort(tmp_path / "cohort.parquet")
    assert sets(read) == sets(whole)
    assert read.names == whole.names
    assert read.covariates.column_names == whole.covariates.column_names
    for name in whole.covariates.column_names:
        held = read.covariates[name].to_pylist()
        assert list(map(str, held)) == list(map(str, whole.covariates[name].to_pylist()))
    for key in preparation.scores:
        assert pa.types.is_integer(read.covariates[key].type)
    assert read.ledger.notes == whole.ledger.notes
    for unit in ("rows", "codes", "records"):
        assert read.ledger.chain(unit) == whole.ledger.chain(unit)
