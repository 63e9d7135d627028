"""Results as frames and as HTML, and what is said where a package is missing."""

import sys

import pytest

from comorb.errors import InputError
from comorb.model.tabular import MAX_ROWS, frame, html_table


def test_a_frame_has_the_columns_of_any_package():
    for package in ("pandas", "polars", "pyarrow"):
        made = frame({"code": ("428", "585"), "share": (0.5, None)}, package)
        names = made.column_names if package == "pyarrow" else list(made.columns)
        assert names == ["code", "share"]
        assert made.shape == (2, 2)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(InputError, match="pip install polars"):
        frame({}, "polars")


def test_html_shows_the_first_rows_and_escapes():
    page = html_table({"name": ["<b>"] * (MAX_ROWS + 1), "n": [1234.0] * (MAX_ROWS + 1)}, "Codes")
    assert page.count("<tr><td>") == MAX_ROWS
    assert "&lt;b&gt;" in page
    assert "1,234" in page
    assert f"the first {MAX_ROWS} of {MAX_ROWS + 1}" in page
