import datetime
import sys

import pandas as pd
import pyreadstat
import pytest

from comorb.errors import RecordsError
from comorb.records.read import read_records
from comorb.records.sources.duck import quote
from comorb.records.sources.native import read_text_columns
from comorb.records.sources.open import open_source
from comorb.records.sources.statistics import read_statistics
from tests.records.helpers import sets

FRAME = pd.DataFrame(
    {
        "visit_id": ["007", "008", "009"],
        "dx1": ["428.0", "V58.61", "038.9"],
        "dx2": ["250.00", "", "E819"],
        "admission_date": [datetime.date(2010, 2, 3), datetime.date(2011, 12, 31), None],
        "sex": [1.0, 2.0, None],
    }
)
SETS = {"007": {"428", "250"}, "008": {"V58"}, "009": {"038", "E819"}}
LABELS = {"sex": {1: "Male", 2: "Female"}}
WRITERS = {
    "a.sav": lambda path: pyreadstat.write_sav(FRAME, path, variable_value_labels=LABELS),
    "a.zsav": lambda path: pyreadstat.write_sav(
        FRAME, path, variable_value_labels=LABELS, compress=True
    ),
    "a.por": lambda path: pyreadstat.write_por(
        FRAME.rename(columns=str.upper).drop(columns="ADMISSION_DATE"), path
    ),
    "a.dta": lambda path: pyreadstat.write_dta(
        FRAME.assign(sex=[1, 2, 2]), path, variable_value_labels=LABELS
    ),
    "old.dta": lambda path: pyreadstat.write_dta(FRAME, path, version=10),
    "a.xpt": lambda path: pyreadstat.write_xport(FRAME, path, file_format_version=8),
    "old.xpt": lambda path: pyreadstat.write_xport(
        FRAME.rename(columns={"admission_date": "adm"}), path, file_format_version=5
    ),
}


def cells(path):
    """The columns of a file as its table has them."""
    with open_source(path) as source:
        (name,) = source.openers
        table = source.table(name)
        picks = ", ".join(quote(column) for column in table.columns)
        rows = source.rows(table, f"SELECT {picks} FROM {table.sql}")
        columns = dict(zip(table.columns, map(list, zip(*rows, strict=True)), strict=True))
        return columns, source.notes, source.numbers


@pytest.mark.parametrize("name", WRITERS)
def test_every_program(name, tmp_path):
    WRITERS[name](str(tmp_path / name))
    cohort = read_records(tmp_path / name)
    assert sets(cohort) == SETS
    assert not any("stored as numbers" in note for note in cohort.ledger.notes)


@pytest.mark.parametrize("name", ["a.sav", "a.zsav", "a.dta"])
def test_value_labels_and_days(name, tmp_path):
    WRITERS[name](str(tmp_path / name))
    cohort = read_records(tmp_path / name)
    assert cohort.covariates["sex"].to_pylist()[:2] == ["Male", "Female"]
    assert cohort.covariates["date"].to_pylist() == list(FRAME["admission_date"])


def test_parts_of_a_file(tmp_path, monkeypatch):
    frame = pd.DataFrame({"id": [f"{i:05}" for i in range(2500)], "dx1": ["428.0"] * 2500})
    pyreadstat.write_sav(frame, str(tmp_path / "a.sav"))
    monkeypatch.setattr("comorb.records.sources.statistics._BATCH_CELLS", 2)
    answer = read_statistics(str(tmp_path / "a.sav"), "sav", str(tmp_path / "out"))
    assert answer == {"notes": [], "numbers": []}
    assert read_text_columns(tmp_path / "out")["id"].to_pylist() == list(frame["id"])


def test_rows_that_are_missing(tmp_path, monkeypatch):
    path = str(tmp_path / "a.sav")
    WRITERS["a.sav"](path)
    whole = pyreadstat.read_sav

    def short(*arguments, row_limit=0, **others):
        return whole(*arguments, row_limit=1 if row_limit else 0, **others)

    monkeypatch.setattr(pyreadstat, "read_sav", short)
    refusal = read_statistics(path, "sav", str(tmp_path / "out"))["refusal"]
    assert refusal == "a.sav says that it has 3 rows and has 1; copy it again."


def test_which_labels_are_used(tmp_path):
    frame = pd.DataFrame(
        {
            "flag": [0.0, 1.0],
            "ward": [0.0, 1.0],
            "code": [1.0, 2.0],
            "age": [70.0, 85.0],
            "unit": ["1", "2"],
            "icd": ["428", "250"],
            "item": [1.0, 2.0],
        }
    )
    labels = {
        "flag": {0: "No, never", 1: "Yes"},
        "ward": {0: "Surgery", 1: "Medicine"},
        "code": {i: f"Disease {i}" for i in range(1, 60)},
        "age": {85: "85 and over"},
        "unit": {"1": "North", "2": "South"},
        "icd": {"428": "Heart failure"},
        "item": {1: "yes", 2: "no"},
    }
    pyreadstat.write_sav(frame, str(tmp_path / "a.sav"), variable_value_labels=labels)
    columns, notes, numbers = cells(tmp_path / "a.sav")
    assert columns == {
        "flag": ["0", "1"],
        "ward": ["Surgery", "Medicine"],
        "code": ["1", "2"],
        "age": ["70", "85 and over"],
        "unit": ["North", "South"],
        "icd": ["428", "250"],
        "item": ["yes", "no"],
    }
    assert notes == [
        "a.sav: the column 'code' has 59 value labels, too many for categories; its values were "
        "read and not their labels"
    ]
    assert numbers == {"flag", "code"}


def test_numbers_as_they_are_shown(tmp_path):
    frame = pd.DataFrame({"id": [7.0, 12.0], "dx": [250.1, 428.0], "n": [1.5, None]})
    pyreadstat.write_sav(frame, str(tmp_path / "a.sav"), variable_format={"id": "N5"})
    columns, _, numbers = cells(tmp_path / "a.sav")
    assert columns == {"id": ["00007", "00012"], "dx": ["250.1", "428"], "n": ["1.5", None]}
    assert numbers == {"dx", "n"}


def test_short_numbers_and_months_of_stata(tmp_path):
    frame = pd.DataFrame({"dx": pd.Series([250.1, 38.9], dtype="float32")})
    frame.to_stata(tmp_path / "a.dta", write_index=False)
    assert cells(tmp_path / "a.dta")[0] == {"dx": ["250.1", "38.9"]}
    frame = pd.DataFrame({"when": [600.0]})
    pyreadstat.write_dta(frame, str(tmp_path / "a.dta"), variable_format={"when": "%tm"})
    columns, notes, _ = cells(tmp_path / "a.dta")
    assert columns == {"when": ["600"]}
    assert notes == [
        "a.dta: the column 'when' counts weeks, months or quarters since 1960 and was read as a "
        "number"
    ]


def test_codes_stored_as_numbers_are_told(tmp_path):
    frame = pd.DataFrame({"visit_id": ["a", "b"], "dx1": [250.1, 428.0], "dx2": [38.9, 401.9]})
    pyreadstat.write_dta(frame, str(tmp_path / "a.dta"))
    cohort = read_records(tmp_path / "a.dta")
    assert sets(cohort) == {"a": {"250", "038"}, "b": {"428", "401"}}
    assert any("'dx1', 'dx2' are stored as numbers" in note for note in cohort.ledger.notes)


def test_letters_in_another_encoding(tmp_path):
    path = tmp_path / "a.xpt"
    frame = FRAME.drop(columns="admission_date").assign(town=["Vic x", "Olot x", "Berga x"])
    pyreadstat.write_xport(frame, str(path), file_format_version=5)
    path.write_bytes(path.read_bytes().replace(b"Vic x", "Vic ñ".encode("cp1252")))
    columns, notes, _ = cells(path)
    assert columns["town"] == ["Vic ñ", "Olot x", "Berga x"]
    assert notes == [
        "a.xpt doesn't say its encoding rightly and was read as Windows-1252: letters beyond A to "
        "Z may be wrong"
    ]


def test_what_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.sav"
    path.write_bytes(b"$FL2@(#) SPSS DATA FILE")
    with pytest.raises(RecordsError, match=r"a.sav, a file of SPSS, is damaged or cut off; copy"):
        read_records(path)
    path.write_bytes(bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011") * 9)
    with pytest.raises(RecordsError, match=r"a.sav, a file of SAS, is damaged or cut off"):
        read_records(path)
    pyreadstat.write_sav(FRAME.iloc[:0], str(path))
    with pytest.raises(RecordsError, match=r"a.sav holds a header and no rows"):
        read_records(path)
    WRITERS["a.sav"](str(path))
    monkeypatch.setattr(pyreadstat, "read_sav", _no_memory)
    refusal = read_statistics(str(path), "sav", str(tmp_path / "out"))["refusal"]
    assert refusal.startswith("a.sav, a file of SPSS, needs more memory than there is")


def _no_memory(*_, **__):
    raise MemoryError


def test_a_reader_that_is_not_installed(tmp_path, monkeypatch):
    WRITERS["a.dta"](str(tmp_path / "a.dta"))
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    message = r"a.dta is a file of Stata, .* pip install 'comorb\[statistics\]', or export"
    with pytest.raises(RecordsError, match=message):
        read_records(tmp_path / "a.dta")
