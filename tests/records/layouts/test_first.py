"""The first visit of a patient, by days in many forms, in any order, in memory and in parts."""

import random
from datetime import date, timedelta

import pytest

from comorb.errors import RecordsError
from comorb.records.archive import load_cohort
from comorb.records.preparation import Preparation
from comorb.records.reading import read_records
from comorb.records.streaming import write_cohort

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
    write_cohort(path, archive, Preparation(unit="patient", at_least=1), "2GB")
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
