"""The documentation site: tutorials run, links lead somewhere, nothing comes from outside."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

import comorb

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site as ``make docs`` does, into a folder of the test's own."""
    made = runpy.run_path(str(ROOT / "docs" / "build.py"))
    folder = tmp_path_factory.mktemp("site") / "site"
    made["main"].__globals__["SITE"] = folder
    made["main"]()
    return folder


def test_every_page_of_the_documentation_is_in_the_plan(site):
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    made = {path.relative_to(site).with_suffix(".md") for path in site.rglob("*.html")}
    assert {page for page in pages if page.parts[0] != "reproduction"} <= made


def test_the_folder_opens_with_get_started(site):
    assert (site / "index.html").read_bytes() == (site / "start.html").read_bytes()


def test_no_page_asks_for_anything_outside(site):
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        assert not re.findall(r'(?:src|<link[^>]*href)="(?:https?:)?//[^"]*"', text), page
    assert "url(" not in (site / "style.css").read_text("utf-8")


def test_tutorials_show_what_their_code_gave_and_are_notebooks(site):
    notebooks = list((site / "tutorials").glob("*.ipynb"))
    assert len(notebooks) == len(list((ROOT / "docs" / "tutorials").glob("*.md")))
    for file in notebooks:
        cells = json.loads(file.read_text("utf-8"))["cells"]
        codes = [cell for cell in cells if cell["cell_type"] == "code"]
        assert sum(bool(cell["outputs"]) for cell in codes) >= len(codes) / 2
        assert 'class="output"' in file.with_suffix(".html").read_text("utf-8")


def test_the_reference_has_every_public_name(site):
    text = (site / "reference.html").read_text("utf-8")
    for name in comorb.__all__:
        if name != "__version__":
            assert f'id="{name.lower()}"' in text, name


def test_a_link_that_leads_nowhere_ends_the_build(tmp_path):
    made = runpy.run_path(str(ROOT / "docs" / "build.py"))
    page = made["Page"]("a.html", "A", "[one](b.md) [two](#there) [three](#here)\n\n# Here\n")
    texts = {"a.html": made["rendered"](page)}
    made["check"].__globals__["SITE"] = tmp_path
    assert made["check"]({"a.html": page}, texts) == [
        "a.html: b.html leads nowhere",
        "a.html: nothing is called #there in a.html",
    ]


def test_code_that_fails_ends_the_build():
    made = runpy.run_path(str(ROOT / "docs" / "build.py"))
    with pytest.raises(ZeroDivisionError):
        made["run_page"]("# A\n\n```python\n1 / 0\n```\n", "a")
