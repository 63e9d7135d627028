"""The pack as others read it: native charts, no formula, the same bytes."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace

import pytest

from comorb.errors import InputError
from comorb.profiles.profile import Profile
from comorb.views import slides as slides_module
from comorb.views.board import Board
from comorb.views.pack import board_pack, board_workbook
from comorb.views.slides import slides
from comorb.views.words import Words
from tests.small_cohort import sampled

pptx = pytest.importorskip("pptx")
openpyxl = pytest.importorskip("openpyxl")


@pytest.fixture(scope="module")
def board(full: Profile) -> Board:
    named = full.renamed({0: "=HYPERLINK(1)"}).noted({0: {"note": "@note", "owner": "Dr Puig"}})
    return Board(named, Words("es"), "Hospital", "2026-01-31")


def words(deck: object) -> list[list[str]]:
    return [
        [shape.text_frame.text for shape in slide.shapes if shape.has_text_frame]
        for slide in deck.slides  # type: ignore[attr-defined]
    ]


def test_slides_have_native_charts_and_feet(board: Board) -> None:
    made = slides(board)
    assert made == slides(board)
    deck = pptx.Presentation(io.BytesIO(made))
    told = words(deck)
    assert len(told) == 1 + board.profile.k + 1
    assert told[0][0] == "Test"
    assert "Hospital · 31 de enero de 2026" in told[0][1]
    for number, texts in enumerate(told, 1):
        assert f"{number} de {len(told)}" in texts
    charts = [shape.chart for slide in deck.slides for shape in slide.shapes if shape.has_chart]
    assert len(charts) == 1 + board.profile.k
    first = charts[1]
    assert [series.name for series in first.plots[0].series] == [
        "Este grupo",
        "Todos los registros",
    ]
    book = openpyxl.load_workbook(io.BytesIO(first.part.chart_workbook.xlsx_part.blob))
    assert book.active["B1"].value == "Este grupo"
    assert book.active["A2"].value == first.plots[0].categories[0]
    assert any("@note" in text for text in told[1])


def test_no_file_in_the_slides_tells_when_it_was_made(board: Board) -> None:
    with zipfile.ZipFile(io.BytesIO(slides(board))) as archive:
        assert {one.date_time for one in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_many_clusters_have_a_slide_each() -> None:
    deck = pptx.Presentation(io.BytesIO(slides(Board(sampled(33).protected(11)))))
    assert len(deck.slides) == 1 + 33 + 1


def test_the_workbook_has_tidy_sheets_and_no_formula(board: Board) -> None:
    made = board_workbook(board)
    assert made == board_workbook(board)
    book = openpyxl.load_workbook(io.BytesIO(made))
    assert book.sheetnames == ["Hallazgos", "Grupos", "Resultados", "Diagnósticos", "Método"]
    groups = book["Grupos"]
    assert groups["B2"].value == "=HYPERLINK(1)"
    assert groups["B2"].data_type == "s"
    assert groups["B2"].quotePrefix
    assert groups["D2"].number_format == "0.00%"
    assert groups["D2"].value == pytest.approx(board.profile.clusters[0].share, abs=1e-6)
    heads = [cell.value for cell in groups[1]]
    assert heads[-3:] == ["Nota", "Responsable", "Ruta asistencial"]
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert not any(cell.data_type == "f" for cell in cells)
    rows = list(book["Diagnósticos"].iter_rows(min_row=2, values_only=True))
    assert len(rows) == board.profile.k * len(board.profile.codes)
    assert ("250", "Diabetes") in {row[2:4] for row in rows}
    assert book["Grupos"].oddFooter.right.text == "&P de &N"
    assert "Hospital" in book["Grupos"].oddHeader.left.text


def test_what_is_protected_is_empty(full: Profile) -> None:
    book = openpyxl.load_workbook(io.BytesIO(board_workbook(Board(full.protected(400)))))
    told = {row[4] for row in book["Diagnoses"].iter_rows(min_row=2, values_only=True)}
    assert all(count is None or count == 0 or count >= 400 for count in told)


def test_a_pack_without_the_extra_has_no_slides(
    full: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = Board(replace(full, rules=(), slices=()))
    with zipfile.ZipFile(io.BytesIO(board_pack(board))) as archive:
        assert archive.namelist() == ["board.pdf", "board.pptx", "board.xlsx"]
    monkeypatch.setattr("comorb.views.pack.slides_installed", lambda: False)
    monkeypatch.setattr(slides_module, "slides_installed", lambda: False)
    with zipfile.ZipFile(io.BytesIO(board_pack(board))) as archive:
        assert archive.namelist() == ["board.pdf", "board.xlsx"]
    with pytest.raises(InputError, match=r"pip install 'comorb\[slides\]'"):
        slides(board)
