"""One list of sections: the page, the PDF and the downloads show the same charts in one order."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from comorb.profiles.profile import Profile
from comorb.views import charts, pdf
from comorb.views.board import Board
from comorb.views.report import asset, script
from comorb.web.worker.downloads import AGGREGATES

LISTED = re.findall(r"^  \{ (id: .*) \},$", asset("sections.js"), re.MULTILINE)
SECTIONS = [dict(re.findall(r'(\w+): "?(\w+)"?', line)) for line in LISTED]
FOLDER = Path(charts.__file__).parent


def test_the_charts_are_those_of_the_pages_sections_in_their_order() -> None:
    assert tuple(part["chart"] for part in SECTIONS if "chart" in part) == charts.CHARTS
    assert all(hasattr(charts, f"draw_{name}") for name in charts.CHARTS)


def test_every_section_that_a_module_makes_is_listed_once() -> None:
    made = re.findall(r'\bsection\(\s*"(\w+)"', script())
    listed = [part["id"] for part in SECTIONS]
    assert sorted(set(made)) == sorted(listed)
    keys = [part["key"] for part in SECTIONS if "key" in part]
    assert len(set(keys)) == len(keys)


def test_every_chart_is_printed_and_can_be_downloaded(
    full: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    draw = charts.draw
    monkeypatch.setattr(charts, "draw", lambda name, *rest: drawn.append(name) or draw(name, *rest))
    assert full.burden is not None
    used = replace(
        full, burden=replace(full.burden, columns=("los",), shares=np.array([[0.6, 0.4, 1.0]]))
    )
    list(pdf.pages(Board(used)))
    assert sorted(drawn) == sorted(charts.CHARTS)
    assert {f"{name}.{end}" for name in charts.CHARTS for end in ("svg", "png")} < set(AGGREGATES)
