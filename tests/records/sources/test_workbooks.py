"""Workbooks: sheets, types of cells and formats of numbers."""

import datetime
import sys
import zipfile

import openpyxl
import pytest
import python_calamine
import xlwt

from comorb.errors import RecordsError
from comorb.records.read import inspect_records, read_records
from comorb.records.sources.workbooks import find_zero_formats, list_sheets
from tests.records.helpers import sets

HEAD = ["visit_id", "dx1", "dx2", "admission_date"]
ROWS = [
    ["007", "428.0", "250.00", datetime.date(2010, 2, 3)],
    ["008", "V58.61", None, datetime.date(2011, 12, 31)],
]
SETS = {"007": {"428", "250"}, "008": {"V58"}}


def book(path, *sheets):
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for name, rows in sheets:
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(row)
    workbook.save(path)
    return workbook, path


def old_book(path, rows):
    workbook = xlwt.Workbook()
    sheet = workbook.add_sheet("visits")
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            if cell is not None:
                sheet.write(i, j, str(cell))
    workbook.save(str(path))
    return path


def open_book(path, rows):
    def cell(value):
        if value is None:
            return "<table:table-cell/>"
        return (
            '<table:table-cell office:value-type="string">'
            f"<text:p>{value}</text:p></table:table-cell>"
        )

    body = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr(
            "content.xml",
            f'<?xml version="1.0"?><office:document-content {spaces}><office:body>'
            f'<office:spreadsheet><table:table table:name="visits">{body}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        )
    return path


def test_text_cells_and_days(tmp_path):
    _, path = book(tmp_path / "a.xlsx", ("visits", [HEAD, *ROWS]))
    cohort = read_records(path)
    assert sets(cohort) == SETS
    assert [str(day) for day in cohort.covariates["date"].to_pylist()] == [
        "2010-02-03",
        "2011-12-31",
    ]
    assert cohort.ledger.notes == ()


def test_older_and_open_spreadsheets(tmp_path):
    rows = [HEAD, *ROWS]
    assert sets(read_records(old_book(tmp_path / "a.xls", rows))) == SETS
    assert sets(read_records(open_book(tmp_path / "a.ods", rows))) == SETS


def test_the_first_sheet_or_another(tmp_path):
    other = [["visit_id", "dx1", "dx2"], ["x", "I10", "J44"]]
    _, path = book(tmp_path / "a.xlsx", ("visits", [HEAD, *ROWS]), ("More", other))
    cohort = read_records(path)
    assert sets(cohort) == SETS
    assert cohort.ledger.notes == (
        "the sheet 'visits' was read, the first of 2; the others weren't",
    )
    assert sets(read_records(path, table="more")) == {"x": {"I10", "J44"}}
    query = "SELECT visit_id, dx1, dx2 FROM visits UNION ALL FROM more"
    assert read_records(path, table=query).ids.to_pylist() == ["007", "008", "x"]
    with pytest.raises(RecordsError, match=r"has no table 'absent'; the nearest are visits, More"):
        read_records(path, table="absent")


def test_hidden_sheets_come_last(tmp_path):
    workbook, path = book(tmp_path / "a.xlsx", ("lists", [["a"], ["b"]]), ("visits", [HEAD, *ROWS]))
    workbook["lists"].sheet_state = "hidden"
    workbook.save(path)
    assert sets(read_records(path)) == SETS


def test_codes_stored_as_numbers_are_told(tmp_path):
    rows = [["visit_id", "dx1", "dx2"], ["a", 428, "V58.61"], ["b", 250.1, "E819"], ["c", 38.9, ""]]
    _, path = book(tmp_path / "a.xlsx", ("visits", rows))
    cohort = read_records(path, level="full", system="icd9cm")
    assert sets(cohort) == {"a": {"428", "V5861"}, "b": {"2501", "E819"}, "c": {"0389"}}
    assert (
        "the codes of 'dx1' are stored as numbers, which lose zeros: 250.10 can't be told from "
        "250.1, nor 038 from 38"
    ) in cohort.ledger.notes
    assert any("repaired" in note or "zero" in note for note in cohort.ledger.notes)


def test_numbers_that_are_shown_with_zeros(tmp_path):
    rows = [["visit_id", "dx1", "dx2"], [7, 428, "V58.61"], [8, 250.1, "E819"], [9, 38.9, "V10"]]
    workbook, path = book(tmp_path / "a.xlsx", ("one", [["x"]]), ("visits", rows))
    for row in (2, 3, 4):
        workbook["visits"].cell(row, 1).number_format = "00000"
        workbook["visits"].cell(row, 2).number_format = "000.00"
    workbook.save(path)
    cohort = read_records(path, table="visits", level="full", system="icd9cm")
    assert sets(cohort) == {
        "00007": {"42800", "V5861"},
        "00008": {"25010", "E819"},
        "00009": {"03890", "V10"},
    }
    assert not any("stored as numbers" in note for note in cohort.ledger.notes)


def test_a_title_and_blank_lines_around_a_table(tmp_path):
    rows = [["Discharges of 2010"], [], [None, *HEAD], *([None, *row] for row in ROWS), [], []]
    _, path = book(tmp_path / "a.xlsx", ("visits", rows))
    cohort = read_records(path)
    assert sets(cohort) == SETS
    assert cohort.ledger.notes == ("a.xlsx: 2 rows above the header were left out",)


def test_what_is_no_table(tmp_path):
    _, path = book(tmp_path / "a.xlsx", ("cover", []), ("visits", [HEAD, *ROWS]))
    with pytest.raises(RecordsError, match=r"sheet cover is empty; name another sheet: visits\."):
        read_records(path)
    _, path = book(tmp_path / "a.xlsx", ("visits", []))
    with pytest.raises(RecordsError, match=r"a.xlsx is empty; export it again"):
        read_records(path)
    _, path = book(tmp_path / "a.xlsx", ("visits", [HEAD]))
    with pytest.raises(RecordsError, match=r"a.xlsx holds a header and no rows"):
        read_records(path)
    workbook, path = book(tmp_path / "a.xlsx", ("visits", [HEAD]))
    workbook.create_chartsheet("chart")
    workbook.remove(workbook["visits"])
    workbook.save(path)
    with pytest.raises(RecordsError, match=r"a.xlsx holds no sheet with cells"):
        read_records(path)


def test_a_header_that_is_none(tmp_path):
    _, path = book(tmp_path / "a.xlsx", ("visits", [[7, "428.0"], [8, "I10"]]))
    with pytest.raises(RecordsError, match=r"a.xlsx has no header"):
        read_records(path)


def test_damaged_and_foreign(tmp_path):
    path = tmp_path / "a.xls"
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(RecordsError, match=r"a.xls is a damaged spreadsheet or none at all"):
        read_records(path)


def test_a_password(tmp_path, monkeypatch):
    class Locked:
        @staticmethod
        def from_path(_):
            raise python_calamine.PasswordError("Workbook is password protected")

    monkeypatch.setattr(python_calamine, "CalamineWorkbook", Locked)
    message = "a.xlsx is protected by a password; save it without one."
    assert list_sheets(str(tmp_path / "a.xlsx")) == {"refusal": message}


def test_a_reader_that_is_not_installed(tmp_path, monkeypatch):
    _, path = book(tmp_path / "a.xlsx", ("visits", [HEAD, *ROWS]))
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    message = r"a.xlsx is a spreadsheet, .* pip install 'comorb\[excel\]', or save the sheet as CSV"
    with pytest.raises(RecordsError, match=message):
        read_records(path)


def test_workbooks_in_a_folder(tmp_path):
    book(tmp_path / "First.xlsx", ("visits", [HEAD, *ROWS]), ("more", [HEAD, ROWS[0]]))
    (tmp_path / "other.csv").write_text("id,x\n1,2\n")
    assert sets(read_records(tmp_path, table="first")) == SETS
    assert set(sets(read_records(tmp_path, table="First.more"))) == {"007"}
    assert inspect_records(tmp_path, table="first").table == "First.xlsx, sheet visits"


def formatted(path, **formats):
    workbook = openpyxl.Workbook()
    for place, shown in formats.items():
        workbook.active[place] = 38.5
        workbook.active[place].number_format = shown
    workbook.save(path)
    return path


def test_formats_that_keep_zeros(tmp_path):
    path = formatted(tmp_path / "a.xlsx", A1="0.00", C2="000", AB3="00000.0", B4="General", D5="0")
    assert find_zero_formats(path, "Sheet") == {(0, 0): (1, 2), (1, 2): (3, 0), (2, 27): (5, 1)}


def test_other_sheets_files_and_formats(tmp_path):
    path = formatted(tmp_path / "a.xlsx", A1="0.00")
    assert find_zero_formats(path, "absent") == {}
    assert find_zero_formats(formatted(tmp_path / "b.xlsx", A1="#,##0"), "Sheet") == {}
    path.write_bytes(b"no archive")
    assert find_zero_formats(path, "Sheet") == {}


@pytest.mark.parametrize("part", ["xl/styles.xml", "xl/workbook.xml"])
def test_entities_are_not_expanded(part, tmp_path):
    path = formatted(tmp_path / "a.xlsx", A1="0.00")
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts[part] = b'<!DOCTYPE x [<!ENTITY a "aaa">]>' + parts[part].partition(b"?>")[2]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    assert find_zero_formats(path, "Sheet") == {}
