"""The report in print."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from comorb.insight.profile.contents import Caveats, Pair
from comorb.insight.profile.profile import Profile
from comorb.insight.views import pdf
from comorb.insight.views.pdf import report_pdf
from comorb.records.ledger import Ledger
from tests.insight.conftest import sampled


def pages(path: Path) -> int:
    return len(re.findall(rb"/Type /Page\b", path.read_bytes()))


def test_a_pdf_has_its_pages_and_is_always_the_same(full: Profile, tmp_path: Path) -> None:
    one, two = tmp_path / "one.pdf", tmp_path / "two.pdf"
    report_pdf(full, one)
    report_pdf(full, str(two))
    assert one.read_bytes() == two.read_bytes()
    assert one.read_bytes().startswith(b"%PDF")
    assert pages(one) == 1 + 2 + 1 + 2 + 3 + 1


def test_many_clusters_take_more_pages(tmp_path: Path) -> None:
    path = tmp_path / "many.pdf"
    report_pdf(sampled(33).protected(11), path)
    assert pages(path) == 2 + 2 + 5 + 4 + 1


def texts(figure: object) -> list[str]:
    return [text.get_text() for text in figure.texts]  # type: ignore[attr-defined]


def test_the_first_page_says_what_was_clustered(full: Profile) -> None:
    figure = pdf._summary(full.protected(11))[0]
    found = texts(figure)
    assert "Test" in found
    told = full.protected(11).source.records
    assert f"{told} records   ·   8 codes   ·   2 clusters" in found
    assert "asked for" in found
    assert "600 records made for a test" in found
    assert any(text.startswith("Protected: counts have a small noise") for text in found)
    assert figure.axes


def test_what_is_technical_stands_on_the_last_page(full: Profile) -> None:
    digest = f"SHA-256 of the data: {full.source.digest}"
    first, last = texts(pdf._summary(full)[0]), texts(pdf._closing(full)[0])
    for text in ("comorb fit x.csv", digest):
        assert text in last
        assert text not in first


def test_a_rule_stands_next_to_what_it_describes() -> None:
    ledger = Ledger().open("codes", "found", 1105).less("codes", "again in one record", 1)
    ledger = ledger.open("records", "read", 2000).less("records", "without a usable code", 10)
    ledger = ledger.add("records", "having 428", 1990, 600).add("records", "age 18–", 600, 600)
    ledger = ledger.open("features", "read", 1116).less(
        "features", "in no record that is left", 333
    )
    assert pdf._ledger(ledger.lines) == [
        "1,105 codes found",
        "again in one record: 1 code left out, 1,104 remain",
        "2,000 records read",
        "without a usable code: 10 records left out, 1,990 remain",
        "having 428: 600 records kept, 1,390 left out",
        "age 18–: 600 records kept, 0 left out",
        "1,116 features read",
        "in no record that is left: 333 features left out, 783 remain",
    ]


def test_each_cluster_tells_how_sure_it_is(full: Profile) -> None:
    sure = f"confidence {full.clusters[0].top:.0%}"
    found = texts(pdf._tables(full)[0])
    assert sure in found
    assert not any("tability" in text for text in found)
    stable = replace(full.clusters[0], stability=0.912)
    found = texts(pdf._tables(replace(full, clusters=(stable, *full.clusters[1:])))[0])
    assert f"{sure}, stability 0.91" in found
    assert any("Stability: how much" in text for text in found)
    hidden = replace(full.clusters[0], size=None, top=None)
    assert pdf._measures(hidden) == ["too few records to show"]


def test_long_names_are_wrapped_and_not_cut(full: Profile) -> None:
    name = "Chronic kidney disease of every known stage, acute kidney failure"
    label = "Disorders of the bone and of the cartilage"
    long = replace(full.renamed({0: name}), labels=(label,) * len(full.labels))
    for part in (pdf._tables, pdf._outcomes):
        found = " ".join(" ".join(texts(part(long)[0])).split())
        assert "…" not in found
        assert "acute kidney failure" in found
    assert "   cartilage" in texts(pdf._tables(long)[0])


@pytest.mark.parametrize("place", [0, 1])
def test_outcomes_stand_with_their_intervals(full: Profile, place: int) -> None:
    died = next(outcome for outcome in full.outcomes if outcome.name == "died")
    shown = died.corrected
    values = shown.estimate[0, place], shown.low[0, place], shown.high[0, place]
    mark = "*" * died.differs(0, place)
    expected = f"{{:.1f}}%{mark} ({{:.1f}}–{{:.1f}})".format(*(100 * value for value in values))
    found = [text for figure in pdf._outcomes(full) for text in texts(figure)]
    assert expected in found
    assert "Died" in found


def test_what_the_clusters_leave_unexplained_is_told(full: Profile) -> None:
    caveats = replace(full.caveats, explained_by_length=0.17, pairs=(Pair(1, 2, 1200, 300.4),))
    assert pdf._unexplained(replace(full, caveats=caveats)) == [
        "The cluster of a record explains 17% of how many codes it has.",
        f"Often together beyond what the clusters explain: {full.labels[1]} and {full.labels[2]}, "
        "in 1,200 records; 300 are expected.",
    ]
    assert pdf._unexplained(replace(full, caveats=Caveats())) == []


def test_features_stand_with_what_sets_the_clusters_apart(mixed) -> None:
    profile = mixed[2]
    (line,) = pdf.influences(profile)
    assert line.startswith("codes ")
    assert ", age " in line
    found = [text for figure in pdf._features(profile) for text in texts(figure)]
    assert "Other features (with 95% intervals)" in found
    assert any(text.startswith("Hba1c") for text in found)
    assert any("4 features" in text for figure in pdf._summary(profile) for text in texts(figure))


def test_without_features_nothing_is_said_of_them(full: Profile) -> None:
    assert pdf.influences(full) == []
    assert pdf._features(full) == []
