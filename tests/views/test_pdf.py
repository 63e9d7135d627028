"""The board in print: findings first, every slice and rule, the method last."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from comorb.profiles.profile import Profile
from comorb.views import charts, pdf
from comorb.views.board import Board
from comorb.views.pdf import report_pdf, rule_pages, slice_pages
from comorb.views.words import Words
from tests.small_cohort import sampled


def pages(path: Path) -> int:
    return len(re.findall(rb"/Type /Page\b", path.read_bytes()))


def texts(figure: object) -> list[str]:
    return [text.get_text() for text in figure.texts]  # type: ignore[attr-defined]


def test_a_pdf_has_its_pages_and_is_always_the_same(full: Profile, tmp_path: Path) -> None:
    one, two = tmp_path / "one.pdf", tmp_path / "two.pdf"
    board = Board(full, site="General Hospital", date="2026-01-31")
    report_pdf(board, one)
    report_pdf(board, str(two))
    assert one.read_bytes() == two.read_bytes()
    assert one.read_bytes().startswith(b"%PDF")
    assert pages(one) == len(list(pdf.pages(board))) == 1 + 2 + 2 + 3 + 2 + 1 + 1


def test_many_clusters_take_more_pages(tmp_path: Path) -> None:
    path = tmp_path / "many.pdf"
    report_pdf(Board(sampled(33).protected(11), Words("ca")), path)
    assert 2 + 33 + 3 < pages(path) < 2 + 33 + 12


def test_the_first_page_is_of_findings(full: Profile) -> None:
    shown = full.protected(11)
    board = Board(shown, site="General Hospital", date="2026-01-31")
    figure = next(pdf.pages(board))
    found = texts(figure)
    assert found[0] == "Test"
    assert found[1].startswith("General Hospital · 31 January 2026   ·   ")
    assert f"{shown.source.records} records · 2 groups" in found[1]
    assert "What was found" in found
    assert board.findings[0].text.split()[0] in " ".join(found)
    assert not any("SHA-256" in text or "made for a test" in text for text in found)
    assert figure.axes


def test_what_is_technical_stands_on_the_last_page(full: Profile) -> None:
    *_, last = (texts(figure) for figure in pdf.pages(Board(full)))
    assert f"SHA-256 of the data: {full.source.digest}" in last
    assert "comorb fit x.csv" in last
    assert "made for a test" in last
    assert any(text.startswith("Full: these are the exact counts") for text in last)


def test_a_cluster_has_a_page_with_its_note(full: Profile) -> None:
    number = full.clusters[0].number
    note = {"note": "Open a clinic", "owner": "Dr Puig", "pathway": "Heart and kidney"}
    board = Board(full.noted({0: note}))
    found = texts(pdf._cluster(board, 0))
    assert found[0].startswith(f"{number}  ")
    assert {"Open a clinic", "Owner: Dr Puig", "Pathway: Heart and kidney"} < set(found)
    assert {"Who they are", "What marks them out", "How sure this is"} < set(found)
    assert "Note" not in texts(pdf._cluster(Board(full), 0))


def test_long_names_are_wrapped_and_not_cut(full: Profile) -> None:
    name = "Chronic kidney disease of every known stage, acute kidney failure"
    board = Board(full.renamed({0: name}))
    for figure in (
        pdf._cluster(board, 0),
        next(iter(pdf._comparison_pages(board, board.measures, ""))),
    ):
        found = " ".join(" ".join(texts(figure)).split())
        assert "acute kidney failure" in found


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(("language", "mark"), [("en", "."), ("es", ",")])
def test_outcomes_stand_with_their_intervals(
    full: Profile, place: int, language: str, mark: str
) -> None:
    died = next(outcome for outcome in full.outcomes if outcome.name == "died")
    values = died.estimate[0, place], died.low[0, place], died.high[0, place]
    centre, low, high = (f"{100 * value:.1f}".replace(".", mark) for value in values)
    percent = "%" if language == "en" else "\u00a0%"
    board = Board(full, Words(language))
    found = [
        text
        for figure in pdf._comparison_pages(board, board.measures, "")
        for text in texts(figure)
    ]
    assert f"{centre}{percent} ({low}–{high})" in found


def test_a_title_with_dollars_is_no_formula(full: Profile, tmp_path: Path) -> None:
    odd = replace(full, source=replace(full.source, title="Costs of $1 and $2_x"))
    report_pdf(Board(odd), tmp_path / "odd.pdf")
    assert pages(tmp_path / "odd.pdf") > 3


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts]


def test_every_slice_and_every_rule_is_printed(full: Profile) -> None:
    pages = slice_pages(Board(full))
    assert len(pages) == len(full.slices)
    for page, one in zip(pages, full.slices, strict=True):
        assert set(one.labels) <= set(words(page))
    (rules,) = rule_pages(Board(full))
    assert any(text.startswith("otherwise: ") for text in words(rules))


def test_they_are_printed_in_every_language(full: Profile) -> None:
    board = Board(full, Words("ca"))
    (rules,) = rule_pages(board)
    assert any(text.startswith("si no: ") for text in words(rules))
    told = [word for page in slice_pages(board) for word in words(page)]
    assert "registres" in told
    assert not any("records" in word for word in told)


def test_what_isn_t_told_is_few(full: Profile) -> None:
    pages = slice_pages(Board(full.protected(90)))
    assert "few" in [word for page in pages for word in words(page)]


def test_a_profile_without_them_has_no_such_pages(full: Profile) -> None:
    old = replace(full, burden=None, slices=(), rules=())
    assert slice_pages(Board(old)) == rule_pages(Board(old)) == []
    assert "no column that can be added up" in charts.draw_burden(old).get_title("left")
