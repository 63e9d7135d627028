"""The report in print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from comorb.insight import pdf
from comorb.insight.pdf import report_pdf
from comorb.insight.profile import Profile
from tests.insight.conftest import sampled


def pages(path: Path) -> int:
    return len(re.findall(rb"/Type /Page\b", path.read_bytes()))


def test_a_pdf_has_its_pages_and_is_always_the_same(full: Profile, tmp_path: Path) -> None:
    one, two = tmp_path / "one.pdf", tmp_path / "two.pdf"
    report_pdf(full, one)
    report_pdf(full, str(two))
    assert one.read_bytes() == two.read_bytes()
    assert one.read_bytes().startswith(b"%PDF")
    assert pages(one) == 1 + 2 + 1 + 2


def test_many_clusters_take_more_pages(tmp_path: Path) -> None:
    path = tmp_path / "many.pdf"
    report_pdf(sampled(33).suppressed(11), path)
    assert pages(path) == 1 + 3 + 5


def texts(figure: object) -> list[str]:
    return [text.get_text() for text in figure.texts]  # type: ignore[attr-defined]


def test_the_first_page_says_what_was_clustered(full: Profile) -> None:
    found = texts(pdf._summary(full.suppressed(11)))
    assert "Test" in found
    assert "600 records   ·   8 codes   ·   2 clusters" in found
    assert "asked for" in found
    assert "600 records: made for a test" in found
    assert "comorb fit x.csv" in found
    assert any(text.startswith("Counts below 11 are not shown") for text in found)


@pytest.mark.parametrize("place", [0, 1])
def test_outcomes_stand_with_their_intervals(full: Profile, place: int) -> None:
    died = next(outcome for outcome in full.outcomes if outcome.name == "died")
    values = died.estimate[0, place], died.low[0, place], died.high[0, place]
    expected = "{:.1f}% ({:.1f}–{:.1f})".format(*(100 * value for value in values))
    found = [text for figure in pdf._outcomes(full) for text in texts(figure)]
    assert expected in found
    assert "Died" in found
