"""The pages on slices and rules: every slice is printed, and what isn't told says so."""

from __future__ import annotations

from dataclasses import replace

from matplotlib.figure import Figure

from comorb.insight.profile.profile import Profile
from comorb.insight.views.charts import burden
from comorb.insight.views.pdf import _charts, _page, _usage
from comorb.insight.views.pdf_usage import rule_pages, slice_pages


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts]


def test_every_slice_and_every_rule_is_printed(full: Profile) -> None:
    pages = slice_pages(full, _page)
    assert len(pages) == len(full.slices)
    for page, one in zip(pages, full.slices, strict=True):
        assert set(one.labels) <= set(words(page))
    (rules,) = rule_pages(full, _page)
    assert any(text.startswith("otherwise: ") for text in words(rules))
    assert len(_usage(full)) == len(pages) + 1


def test_what_isn_t_told_is_few(full: Profile) -> None:
    shown = [word for page in slice_pages(full.protected(400), _page) for word in words(page)]
    assert "few" in shown


def test_a_profile_without_them_has_no_such_pages(full: Profile) -> None:
    old = replace(full, burden=None, slices=(), rules=())
    assert _usage(old) == []
    assert len(_charts(old)) == 2
    assert "no column that can be added up" in burden.draw(old).get_title("left")
