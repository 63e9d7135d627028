"""Deaths and readmissions are read where every value is understood, and counted as pandas does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comorb import inspect_records, read_records
from comorb.errors import RecordsError
from comorb.records.cohort import Cohort
from comorb.records.cohort_file import load_cohort
from comorb.records.layouts.events import read_answers
from comorb.records.layouts.layout import Layout
from comorb.records.spec import CohortSpec
from comorb.records.stream import write_cohort

CODES = np.array(["4280", "25000", "4019", "5859", "496", "2724"])


def visits(n: int = 400, seed: int = 3, **columns: Any) -> pd.DataFrame:
    """Return visits with three diagnoses each, and some columns beside them."""
    rng = np.random.default_rng(seed)
    drawn = np.array([rng.choice(CODES, 3, replace=False) for _ in range(n)])
    diagnoses = {f"dx{i + 1}": drawn[:, i] for i in range(3)}
    own = {
        name: rng.choice(values, n, p=np.array(shares) / np.sum(shares))
        for name, (values, shares) in columns.items()
    }
    return pd.DataFrame({"visit_id": [f"v{i:05d}" for i in range(n)], **own, **diagnoses})


def share(cohort: Cohort, event: str) -> tuple[int, int]:
    """Return how many records have the event, and of how many that is known."""
    values = pd.Series(cohort.covariates[event].to_pylist()).dropna()
    yes = values.astype(str).str.lower().isin(["true", "1", "yes", "y", "sí", "ja", "s"])
    return int(yes.sum()), len(values)


def noted(cohort: Cohort, words: str) -> bool:
    return any(words in note for note in cohort.ledger.notes)


@pytest.mark.parametrize(
    ("name", "values", "yes", "missing"),
    [
        ("exitus", ["0", "1"], {"1"}, set()),
        ("verstorben", ["ja", "nein"], {"ja"}, set()),
        ("hospital_expire_flag", ["1", "0"], {"1"}, set()),
        ("MORTE", ["0", "1"], {"1"}, set()),
        ("died", ["Y", "N", "U"], {"Y"}, {"U"}),
        ("death", ["1 = Sí", "2 = No"], {"1 = Sí"}, set()),
        ("exitus", ["1. Vivo", "2. Muerto"], {"2. Muerto"}, set()),
        ("died (1=no, 2=yes)", ["1", "2"], {"2"}, set()),
        ("fallecido", ["Vivo", "Fallecido"], {"Fallecido"}, set()),
        ("décès", ["Vivant", "Décédé", "inconnu"], {"Décédé"}, {"inconnu"}),
        ("TIPALT", ["1", "2", "3", "4", "5"], {"4"}, set()),
        ("DISMETH", ["1", "2", "4", "5", "8"], {"4", "5"}, set()),
        ("PTNT_DSCHRG_STUS_CD", ["01", "03", "20", "41", "62"], {"20", "41"}, set()),
        ("dispuniform", ["1", "2", "5", "20", "99"], {"20"}, set()),
        ("discharge_disposition_id", ["1", "6", "11", "19", "25"], {"11", "19"}, set()),
        ("motivo_alta", ["Domicilio", "Traslado", "Alta por exitus"], {"Alta por exitus"}, set()),
        ("entlassungsgrund", ["regulär entlassen", "Tod", "verlegt"], {"Tod"}, set()),
        ("discharge_to", ["Home", "Expired at home", "SNF", "Unknown"], {"Expired at home"}, set()),
    ],
)
def test_deaths_are_those_that_pandas_counts(
    name: str, values: list[str], yes: set[str], missing: set[str]
) -> None:
    table = visits(**{name: (values, range(len(values), 0, -1))})
    known = table[name][~table[name].isin(missing)]
    assert share(read_records(table), "died") == (known.isin(yes).sum(), len(known))


@pytest.mark.parametrize(
    ("name", "values", "yes"),
    [
        ("readmitted", ["NO", ">30", "<30"], {"<30"}),
        ("readmission", ["no", "≤ 30 days", "> 30 days"], {"≤ 30 days"}),
        ("reingreso", ["0", "1"], {"1"}),
        ("heropname", ["nee", "ja"], {"ja"}),
        ("readmit_status", ["not readmitted", "readmitted"], {"readmitted"}),
    ],
)
def test_readmissions_are_those_that_pandas_counts(
    name: str, values: list[str], yes: set[str]
) -> None:
    table = visits(**{name: (values, range(len(values), 0, -1))})
    assert share(read_records(table), "readmitted") == (table[name].isin(yes).sum(), len(table))


@pytest.mark.parametrize(
    ("event", "name", "values"),
    [
        ("died", "died", ["1", "2"]),
        ("died", "exitus", ["0", "1", "9"]),
        ("died", "fallecido", ["A", "B", "C"]),
        ("died", "overleden", ["alive", "dead or alive"]),
        ("died", "discharge_status", ["1", "2", "6", "11", "20"]),
        ("died", "disposition", ["home", "20", "Z9"]),
        ("readmitted", "readmitted", ["NO", "<90", ">90"]),
        ("readmitted", "rehospitalisation", ["1", "2", "3"]),
    ],
)
def test_a_column_that_is_not_understood_stays_a_category_with_a_note(
    event: str, name: str, values: list[str]
) -> None:
    cohort = read_records(visits(**{name: (values, [1] * len(values))}))
    names = cohort.covariates.column_names
    assert event not in names or event == name
    assert str(cohort.covariates[name].type) == "string"
    assert noted(cohort, f"column '{name}' may say who")
    assert noted(cohort, f"{event}={name}:VALUE")


def test_a_value_of_few_rows_that_is_not_understood_is_not_shown() -> None:
    table = visits(died=(["0", "1"], [5, 1]))
    table.loc[0, "died"] = "sister of J. Doe"
    (note,) = [one for one in read_records(table).ledger.notes if "may say who" in one]
    assert "its values can't be read" in note
    assert "Doe" not in note


def test_a_strange_value_after_the_first_rows_is_seen() -> None:
    table = visits(3000, died=(["0", "1"], [9, 1]))
    table.loc[2500:2600, "died"] = "7"
    assert noted(read_records(table), "'7' can't be read as yes or no")


@pytest.mark.parametrize("values", [["x", ""], ["yes", ""], ["1"]])
def test_a_lone_yes_is_no_rate(values: list[str]) -> None:
    cohort = read_records(visits(exitus=(values, [1] * len(values))))
    assert "died" not in cohort.covariates.column_names
    assert noted(cohort, "may say who died, but")


def test_what_is_said_to_count_counts() -> None:
    table = visits(ending=(["10", "07", "30", "31"], [5, 1, 2, 3]))
    cohort = read_records(table, layout=Layout(died="ending", died_values=("7", "31")))
    assert share(cohort, "died") == (table["ending"].isin(["07", "31"]).sum(), len(table))
    assert str(cohort.covariates["ending"].type) == "string"
    assert noted(cohort, "died is column 'ending' where it is '07', '31'; '10', '30' count as no")


def test_a_lone_mark_that_is_said_to_count_leaves_empty_cells_as_no() -> None:
    table = visits(exitus=(["x", ""], [1, 4]))
    cohort = read_records(table, layout=Layout(died="exitus", died_values=("x",)))
    assert share(cohort, "died") == ((table["exitus"] == "x").sum(), len(table))
    assert noted(cohort, "empty cells count as no")


def test_a_role_whose_values_are_not_understood_is_refused_with_the_way_out() -> None:
    table = visits(ending=(["10", "07", "30"], [5, 1, 2]))
    with pytest.raises(RecordsError, match=r"'07', '10', '30' can't be read .* died=ending:VALUE"):
        read_records(table, layout=Layout(died="ending"))
    with pytest.raises(RecordsError, match=r"no row has '99' in column 'ending'"):
        read_records(table, layout=Layout(died="ending", died_values=("99",)))
    with pytest.raises(RecordsError, match=r"values of readmitted are named, and no column is"):
        read_records(table, layout=Layout(readmitted_values=("1",)))


def test_a_named_column_with_a_published_list_needs_no_values() -> None:
    table = visits(discharge_disposition_id=(["1", "3", "20", "11"], [9, 4, 2, 1]))
    cohort = read_records(table, layout=Layout(died="discharge_disposition_id"))
    dead = table["discharge_disposition_id"].isin(["20", "11"]).sum()
    assert share(cohort, "died") == (dead, len(table))
    assert "discharge_disposition_id" in cohort.covariates.column_names


def test_deaths_follow_from_how_visits_ended_where_their_own_column_is_not_understood() -> None:
    table = visits(died=(["1", "2"], [1, 9]), discharge_status=(["home", "expired"], [9, 1]))
    cohort = read_records(table)
    assert share(cohort, "died") == ((table["discharge_status"] == "expired").sum(), len(table))
    assert "died (column)" in cohort.covariates.column_names


def again(**columns: Any) -> pd.DataFrame:
    table = visits(**columns)
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(np.arange(len(table)), unit="D")
    table["patient_id"] = [f"p{i % 40}" for i in range(len(table))]
    table["admission_date"] = days.strftime("%Y-%m-%d")
    return table


def test_the_file_s_own_readmissions_win_over_those_that_days_tell() -> None:
    table = again(rehospitalised=(["never", "within 30 days"], [8, 1]))
    assert share(read_records(again()), "readmitted")[1]
    table["rehospitalised"] = table["rehospitalised"].replace("never", "no")
    cohort = read_records(table)
    assert "rehospitalised" not in cohort.covariates.column_names
    yes = (table["rehospitalised"] == "within 30 days").sum()
    assert share(cohort, "readmitted") == (yes, len(table))
    assert noted(cohort, "readmitted is column 'rehospitalised' of the file")
    patients = read_records(table, unit="patient")
    each = (table["rehospitalised"] == "within 30 days").groupby(table["patient_id"]).any()
    assert share(patients, "readmitted") == (each.sum(), len(each))


def test_no_readmissions_are_made_beside_a_column_that_is_not_understood() -> None:
    cohort = read_records(again(readmission=(["1", "2", "3"], [1, 1, 1])))
    assert "readmitted" not in cohort.covariates.column_names
    assert noted(cohort, "column 'readmission' may say who was readmitted")
    aside = read_records(
        again(readmission=(["1", "2", "3"], [1, 1, 1])), layout=Layout(category=("readmission",))
    )
    assert noted(aside, "readmitted is a visit of the same patient")


def test_parts_tell_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("comorb.records.stream.PART_ROWS", 70)
    table = visits(tipalt=(["1", "3", "4"], [9, 4, 2]), readmitted=(["NO", "<30"], [4, 1]))
    path = tmp_path / "visits.csv"
    table.to_csv(path, index=False)
    write_cohort(path, tmp_path / "cohort.parquet", CohortSpec(at_least=1), "1GB")
    parts, whole = load_cohort(tmp_path / "cohort.parquet"), read_records(path)
    for event in ("died", "readmitted"):
        assert share(parts, event) == share(whole, event)
    assert share(whole, "died") == ((table["tipalt"] == "4").sum(), len(table))


def test_a_table_of_visits_beside_the_records_tells_it_too() -> None:
    table = visits(discharge_location=(["HOME", "SNF", "DEAD/EXPIRED"], [9, 4, 2]))
    long = table.melt("visit_id", ["dx1", "dx2", "dx3"], value_name="icd_code")
    beside = table[["visit_id", "discharge_location"]]
    cohort = read_records({"diagnosis": long[["visit_id", "icd_code"]], "visit": beside})
    dead = (table["discharge_location"] == "DEAD/EXPIRED").sum()
    assert share(cohort, "died") == (dead, len(table))


def test_words_read_back() -> None:
    layout = Layout(died="a:b", readmitted="again", readmitted_values=("1", "x,y"))
    words = CohortSpec(layout=layout).words()
    assert words == ["--column", "died=a:b:", "--column", 'readmitted=again:1,"x,y"']
    plain = CohortSpec(layout=layout).to_dict()
    assert CohortSpec.from_dict(plain).layout == layout


@pytest.mark.parametrize(
    ("text", "died"),
    [("Expired", True), ("verstorben", True), ("Décès", True), ("Exitus", True), ("Muerto", True),
     ("Overleden", True), ("still birth", True), ("Home", False), ("not deceased", False),
     ("Discharged alive", False), ("Transfer to mortuary", False), ("1", None), ("mañana", None),
     ("alive or dead", None)],
)  # fmt: skip
def test_endings_in_words_of_several_languages(text: str, died: bool | None) -> None:
    found = read_answers([text], "died", "discharge_status", ending=True)
    assert ((text in found.yes) or (False if text in found.no else None)) is died


def test_a_column_that_was_made_is_in_no_layout_that_is_shown() -> None:
    table = visits(tipalt=(["1", "4"], [9, 1]))
    found = inspect_records(table)
    assert found.layout.died is None
    assert {one.name: one.role for one in found.columns}["tipalt"] == "disposition"
    named = inspect_records(table, layout=Layout(died="tipalt", died_values=("4",)))
    assert named.layout.died == "tipalt"
    assert {one.name: one.role for one in named.columns}["tipalt"] == "died"
