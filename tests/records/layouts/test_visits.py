"""What follows from the days and patients of visits, in rows and codes, whole and in parts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from comorb import read_records
from comorb.records.archive import load_cohort
from comorb.records.cohort import Cohort
from comorb.records.layouts.description import Layout
from comorb.records.layouts.visits import SUMMED, dies
from comorb.records.preparation import Preparation
from comorb.records.streaming import write_cohort

VISITS = {
    "visit_id": ["v1", "v2", "v3", "v4", "v5", "v6"],
    "patient_id": ["a", "a", "b", "a", "c", "b"],
    "admission_date": [
        *("2020-01-01", "2020-01-20", "2020-03-01", "2020-06-01", "2020-06-02", "2020-03-09"),
    ],
    "discharge_date": [
        *("2020-01-05", "2020-01-22", "2020-03-09", "2020-05-01", "2020-07-20", "2020-03-12"),
    ],
    "discharge_status": ["home", "home", "home", "home", "expired", "home"],
    "total_cost": ["100", "50.5", "10", "1", "", "5"],
    "dx1": ["4280", "4280", "25000", "4019", "5859", "4280"],
    "dx2": ["25000", "4019", "4019", "5859", "4280", "5859"],
}


def column(cohort: Cohort, name: str) -> dict[str, object]:
    return dict(zip(cohort.ids.to_pylist(), cohort.covariates[name].to_pylist(), strict=True))


def test_stays_deaths_and_readmissions_follow_from_days_and_endings() -> None:
    cohort = read_records(pa.table(VISITS))
    assert column(cohort, "los") == {"v1": 4, "v2": 2, "v3": 8, "v4": None, "v5": 48, "v6": 3}
    assert [one for one, died in column(cohort, "died").items() if died] == ["v5"]
    # 15 days after v1; v6 begins on the day on which v3 ends, so it is a transfer.
    assert column(cohort, "readmitted") == {
        "v1": True,
        "v2": False,
        "v3": False,
        "v4": False,
        "v5": None,
        "v6": False,
    }
    assert column(cohort, "days_between") == {
        "v1": None,
        "v2": 15,
        "v3": None,
        "v4": 131,
        "v5": None,
        "v6": 0,
    }
    notes = " ".join(cohort.ledger.notes)
    assert "the length of stay is the days from column 'admission_date' to" in notes
    assert "died is column 'discharge_status' where it is 'expired'" in notes
    assert "from 1 to 30 days after a discharge" in notes
    assert cohort.patient == "patient_id"


def test_what_isn_t_seen_for_thirty_days_isn_t_known() -> None:
    late = dict(VISITS)
    late["discharge_date"] = [*VISITS["discharge_date"][:4], "2020-06-10", "2020-03-12"]
    late["discharge_status"] = ["home", "rehab", *["home"] * 4]
    assert column(read_records(pa.table(late)), "readmitted")["v5"] is None


def test_a_patient_has_the_sums_of_visits_and_the_first_of_all_else() -> None:
    cohort = read_records(pa.table(VISITS), unit="patient")
    assert column(cohort, "cost") == {"a": 151.5, "b": 15.0, "c": None}
    assert column(cohort, "los") == {"a": 6.0, "b": 11.0, "c": 48.0}
    assert column(cohort, "visits") == {"a": 3, "b": 2, "c": 1}
    assert column(cohort, "died") == {"a": False, "b": False, "c": True}
    assert column(cohort, "readmitted") == {"a": True, "b": False, "c": None}
    assert [str(day) for day in column(cohort, "date").values()] == [
        *("2020-01-01", "2020-03-01", "2020-06-02"),
    ]
    (note,) = [note for note in cohort.ledger.notes if SUMMED in note]
    assert "'total_cost', 'los'" in note
    assert "of any visit: died; of the first visit: all other columns" in note
    assert cohort.patient is None


@pytest.mark.parametrize("unit", ["visit", "patient"])
def test_a_row_a_code_tells_the_same(unit: str) -> None:
    wide = read_records(pa.table(VISITS), unit=unit)
    others = [name for name in VISITS if not name.startswith("dx")]
    rows = {name: [cell for cell in VISITS[name] for _ in range(2)] for name in others}
    rows["icd_code"] = [
        code for pair in zip(VISITS["dx1"], VISITS["dx2"], strict=True) for code in pair
    ]
    long = read_records(pa.table(rows), unit=unit)
    for name in ("los", "cost", "died", "readmitted", "days_between", "visits"):
        assert (name in wide.covariates.column_names) == (name in long.covariates.column_names)
        if name in wide.covariates.column_names:
            assert column(wide, name) == column(long, name), name


@pytest.mark.parametrize("unit", ["visit", "patient"])
def test_parts_tell_the_same(tmp_path: Path, unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("comorb.records.parts.PART_ROWS", 2)
    path = tmp_path / "visits.csv"
    lines = [",".join(VISITS), *map(",".join, zip(*VISITS.values(), strict=True))]
    path.write_text("\n".join(lines))
    write_cohort(path, tmp_path / "cohort.parquet", Preparation(unit=unit, at_least=1), "1GB")
    parts, whole = load_cohort(tmp_path / "cohort.parquet"), read_records(path, unit=unit)
    assert parts.patient == whole.patient
    for name in whole.covariates.column_names:
        assert column(parts, name) == column(whole, name), name


def test_columns_that_are_there_are_kept_and_can_be_named() -> None:
    table = {
        **VISITS,
        "los": ["9"] * 6,
        "readmission": ["yes", "no"] * 3,
        "exit": ["Tod"] + ["x"] * 5,
    }
    layout = Layout(disposition="exit", discharged="discharge_date")
    cohort = read_records(pa.table(table), layout=layout)
    assert set(column(cohort, "los").values()) == {9}
    assert column(cohort, "readmitted")["v1"] == "yes"
    assert [one for one, died in column(cohort, "died").items() if died] == ["v1"]


def test_dates_that_can_t_be_read_for_sure_tell_nothing() -> None:
    unsure = {**VISITS, "admission_date": ["01/02/2020"] * 6}
    names = read_records(pa.table(unsure)).covariates.column_names
    assert not {"los", "readmitted", "days_between"} & set(names)


@pytest.mark.parametrize(
    ("text", "died"),
    [("Expired", True), ("verstorben", True), ("Décès", True), ("Exitus", True), ("20", True),
     ("Overleden", True), ("Home", False), ("1", False), ("Transfer to mortuary", False)],
)  # fmt: skip
def test_endings_in_words_of_several_languages(text: str, died: bool) -> None:
    assert dies(text) is died
