"""The pages on slices and rules: every slice is printed, and what isn't told says so."""

from __future__ import annotations

from dataclasses import replace

from matplotlib.figure import Figure

from comorb.insight.profile.profile import Profile
from comorb.insight.views.board import Board
from comorb.insight.views.charts import burden
from comorb.insight.views.pdf import _page
from comorb.insight.views.pdf_usage import rule_pages, slice_pages
from comorb.insight.views.words import Words


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts]


def test_every_slice_and_every_rule_is_printed(full: Profile) -> None:
    pages = slice_pages(Board(full), _page)
    assert len(pages) == len(full.slices)
    for page, one in zip(pages, full.slices, strict=True):
        assert set(one.labels) <= set(words(page))
    (rules,) = rule_pages(Board(full), _page)
    assert any(text.startswith("otherwise: ") for text in words(rules))


def test_they_are_printed_in_every_language(full: Profile) -> None:
    board = Board(full, Words("ca"))
    (rules,) = rule_pages(board, _page)
    assert any(text.startswith("si no: ") for text in words(rules))
    told = [word for page in slice_pages(board, _page) for word in words(page)]
    assert "registres" in told
    assert not any("records" in word for word in told)


def test_what_isn_t_told_is_few(full: Profile) -> None:
    pages = slice_pages(Board(full.protected(400)), _page)
    assert "few" in [word for page in pages for word in words(page)]


def test_a_profile_without_them_has_no_such_pages(full: Profile) -> None:
    old = replace(full, burden=None, slices=(), rules=())
    assert slice_pages(Board(old), _page) == rule_pages(Board(old), _page) == []
    assert "no column that can be added up" in burden.draw(old).get_title("left")
