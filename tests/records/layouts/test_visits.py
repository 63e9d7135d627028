"""What follows from the days and patients of visits, in rows and codes, whole and in parts."""

from __future__ import annotations

import random
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from comorb.errors import RecordsError
from comorb.records.cohort import Cohort
from comorb.records.cohort_file import load_cohort
from comorb.records.layouts.layout import Layout
from comorb.records.read import read_records
from comorb.records.sources.open import open_source
from comorb.records.spec import CohortSpec
from comorb.records.stream import write_cohort

VISITS = {
    "visit_id": ["v1", "v2", "v3", "v4", "v5", "v6"],
    "patient_id": ["a", "a", "b", "a", "c", "b"],
    "admission_date": [
        *("2020-01-01", "2020-01-20", "2020-03-01", "2020-06-01", "2020-06-02", "2020-03-09")
    ],
    "discharge_date": [
        *("2020-01-05", "2020-01-22", "2020-03-09", "2020-05-01", "2020-07-20", "2020-03-12")
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
        *("2020-01-01", "2020-03-01", "2020-06-02")
    ]
    (note,) = [
        note for note in cohort.ledger.notes if "summed over the visits of a patient" in note
    ]
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
    monkeypatch.setattr("comorb.records.stream.PART_ROWS", 2)
    path = tmp_path / "visits.csv"
    lines = [",".join(VISITS), *map(",".join, zip(*VISITS.values(), strict=True))]
    path.write_text("\n".join(lines))
    write_cohort(path, tmp_path / "cohort.parquet", CohortSpec(unit=unit, at_least=1), "1GB")
    parts, whole = load_cohort(tmp_path / "cohort.parquet"), read_records(path, unit=unit)
    assert parts.patient == whole.patient
    for name in whole.covariates.column_names:
        assert column(parts, name) == column(whole, name), name


@pytest.mark.parametrize("unit", ["visit", "patient"])
def test_what_visits_tell_is_worked_out_once(unit: str) -> None:
    with open_source(pa.table(VISITS)) as source:
        table = CohortSpec(unit=unit).plan(source, "diagnosis").table
        ((_, steps),) = source.rows(table, f"EXPLAIN SELECT * FROM {table.sql}")
        names = source.rows(table, "SELECT table_name FROM duckdb_tables()")
    assert "readmitted" in table.columns
    assert "scan" in steps.lower()
    assert not any(step in steps.lower() for step in ("window", "join"))
    assert len(names) == 1


def test_columns_that_are_there_are_kept_and_can_be_named() -> None:
    table = {
        **VISITS,
        "los": ["9"] * 6,
        "readmission": ["yes", "no"] * 3,
        "exit": ["Tod"] + ["Entlassung"] * 5,
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


FORMS = {
    "05.02.2018": lambda day: f"{day:%d.%m.%Y}",
    "5.2.2018": lambda day: f"{day.day}.{day.month}.{day.year}",
    "05/02/2018": lambda day: f"{day:%d/%m/%Y}",
    "02/05/2018": lambda day: f"{day:%m/%d/%Y}",
    "05-02-2018": lambda day: f"{day:%d-%m-%Y}",
    "05FEB2018": lambda day: f"{day:%d%b%Y}".upper(),
    "20180205": lambda day: f"{day:%Y%m%d}",
    "2018-02-05": str,
    "05.02.2018 08:30": lambda day: f"{day:%d.%m.%Y} 08:30",
}
UNKNOWN = {
    "day/month or month/day": lambda day: f"{1 + day.day % 12:02}/{day:%m/%Y}",
    "years of two digits": lambda day: f"{day:%d.%m.%y}",
    "a word before": lambda day: f"on {day:%d.%m.%Y}",
}
LAYOUTS = {"wide": "dx1,dx2", "delimited": "codes", "long": "icd_code"}
REFUSAL = (
    r"^visits.csv: which visit of a patient is the first can't be told, because the dates of "
    r"column 'admission_date' can't be read for sure; write them as YYYY-MM-DD, or have the column"
)


def visits(seed):
    """Three visits on different days for each of 30 patients, in any order."""
    picked = random.Random(seed)
    days = [date(2014, 1, 1) + timedelta(days) for days in picked.sample(range(2500), 90)]
    rows = [(f"p{i % 30:02}", f"v{i:03}", day, f"ward {i}") for i, day in enumerate(days)]
    picked.shuffle(rows)
    return rows


def write(path, rows, form, layout):
    lines = [f"patient_id,visit_id,admission_date,ward,{LAYOUTS[layout]}"]
    for patient, visit, day, ward in rows:
        ends = {"wide": ["428.0,250.00"], "delimited": ["428.0;250.00"], "long": ["428.0", "I10"]}
        lines += [f"{patient},{visit},{form(day)},{ward},{end}" for end in ends[layout]]
    path.write_text("\n".join([*lines, ""]))


def read(path, parts):
    if not parts:
        return read_records(path, unit="patient")
    archive = path.with_name("cohort.parquet")
    write_cohort(path, archive, CohortSpec(unit="patient", at_least=1), "2GB")
    return load_cohort(archive)


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", FORMS)
def test_the_first_visit_is_that_of_the_first_day(form, layout, parts, tmp_path):
    rows = visits(f"{form} {layout}")
    write(tmp_path / "visits.csv", rows, FORMS[form], layout)
    cohort = read(tmp_path / "visits.csv", parts)
    first = {
        patient: (day, ward) for patient, _, day, ward in sorted(rows, key=lambda row: row[2])[::-1]
    }
    assert len(cohort) == 30
    ids = cohort.ids.to_pylist()
    assert cohort.covariates["date"].to_pylist() == [first[id_][0] for id_ in ids]
    if layout != "long":
        assert cohort.covariates["ward"].to_pylist() == [first[id_][1] for id_ in ids]


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", UNKNOWN)
def test_days_that_cannot_be_read_are_refused(form, layout, parts, tmp_path):
    write(tmp_path / "visits.csv", visits(form), UNKNOWN[form], layout)
    with pytest.raises(RecordsError, match=REFUSAL):
        read(tmp_path / "visits.csv", parts)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_they_are_no_matter_where_each_patient_has_one_visit(layout, tmp_path):
    rows = list({row[0]: row for row in visits(1)}.values())
    write(tmp_path / "visits.csv", rows, UNKNOWN["years of two digits"], layout)
    assert len(read(tmp_path / "visits.csv", parts=False)) == 30


def test_visits_beside_the_records(tmp_path):
    rows = visits(2)
    (tmp_path / "codes.csv").write_text(
        "patient_id,icd_code\n" + "".join(f"{row[0]},428.0\n" for row in rows)
    )
    given = {"diagnosis": tmp_path / "codes.csv", "visit": tmp_path / "visits.csv"}
    for form in (FORMS["05.02.2018"], UNKNOWN["years of two digits"]):
        lines = [f"{row[0]},{row[1]},{form(row[2])},{row[3]}\n" for row in rows]
        (tmp_path / "visits.csv").write_text(
            "patient_id,visit_id,admission_date,ward\n" + "".join(lines)
        )
        if form is FORMS["05.02.2018"]:
            cohort = read_records(given, unit="patient")
            first = {row[0]: row[3] for row in sorted(rows, key=lambda row: row[2])[::-1]}
            wards = [first[id_] for id_ in cohort.ids.to_pylist()]
            assert cohort.covariates["ward"].to_pylist() == wards
        else:
            with pytest.raises(RecordsError, match=REFUSAL):
                read_records(given, unit="patient")
