"""Sheets as files, read back by others."""

from __future__ import annotations

import csv
import io

import pytest

from comorb.errors import StorageError
from comorb.views.sheets import save_sheets, workbook

SHEETS = {
    "fit": {"k": [1, 2], "bic": [697.1357, None], "what_is": ["=A1", "a & b_<ü>"]},
    "codes": {"code": ["428", "250"], "p": [0.25, 12.5]},
}


def test_csv_has_a_file_for_each(tmp_path):
    files = save_sheets(SHEETS, tmp_path / "t.csv")
    assert [file.name for file in files] == ["t.csv", "t-codes.csv"]
    with files[0].open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0] == {"k": "1", "bic": "697.1357", "what_is": "'=A1"}
    assert rows[1] == {"k": "2", "bic": "", "what_is": "a & b_<ü>"}


def test_a_workbook_is_read_by_others(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    (file,) = save_sheets(SHEETS, tmp_path / "t.xlsx")
    book = openpyxl.load_workbook(file)
    assert book.sheetnames == ["fit", "codes"]
    rows = [[cell.value for cell in row] for row in book["fit"].iter_rows()]
    assert rows == [["k", "bic", "what_is"], [1, 697.1357, "=A1"], [2, None, "a & b_<ü>"]]
    assert book["fit"]["C2"].data_type == "s"
    first = file.read_bytes()
    save_sheets(SHEETS, file, force=True)
    assert file.read_bytes() == first


def test_a_text_is_no_markup_link_or_formula():
    openpyxl = pytest.importorskip("openpyxl")
    texts = ["<r><t>1</t></r>", "https://a.b", "{=A1}", "=1\x01"]
    book = openpyxl.load_workbook(io.BytesIO(workbook({"a": {"x": texts}})))
    cells = [row[0] for row in book["a"].iter_rows(min_row=2)]
    assert [cell.value for cell in cells] == ["<r><t>1</t></r> ", "https://a.b", "{=A1}", "=1"]
    assert {cell.data_type for cell in cells} == {"s"}
    assert not any(cell.hyperlink for cell in cells)
    assert [cell.quotePrefix for cell in cells] == [False, False, False, True]


def test_a_stata_file_is_read_by_others(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    files = save_sheets(SHEETS, tmp_path / "t.dta")
    frame, meta = pyreadstat.read_dta(files[0])
    assert frame["k"].tolist() == [1, 2]
    assert frame["bic"][0] == 697.1357
    assert frame["bic"].isna().tolist() == [False, True]
    assert frame["what_is"].tolist() == ["=A1", "a & b_<?>"]
    assert meta.column_names == ["k", "bic", "what_is"]
    assert pyreadstat.read_dta(files[1])[0]["code"].tolist() == ["428", "250"]


def test_latex_escapes_what_it_must(tmp_path):
    (file,) = save_sheets(SHEETS, tmp_path / "t.tex")
    text = file.read_text(encoding="utf-8")
    assert r"k & bic & what\_is \\" in text
    assert r"1 & 697.14 & =A1 \\" in text
    assert r"2 & -- & a \& b\_<ü> \\" in text
    assert r"428 & 0.2500 \\" in text
    assert text.count(r"\toprule") == 2


def test_what_is_there_stays(tmp_path):
    (tmp_path / "t-codes.csv").write_text("mine")
    with pytest.raises(StorageError, match=r"t-codes\.csv is there already"):
        save_sheets(SHEETS, tmp_path / "t.csv")
    assert not (tmp_path / "t.csv").exists()
    with pytest.raises(
        StorageError, match=r"ends with \.csv or \.xlsx or \.tex or \.dta; got t.odt"
    ):
        save_sheets(SHEETS, tmp_path / "t.odt")
