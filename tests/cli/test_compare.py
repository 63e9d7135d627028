"""compare, as a user meets it."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import call


@pytest.fixture(scope="module")
def other(records, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "other"
    words = ("fit", records, "--having", "585", "-k", 2, "--drop-codes", "428", "-o", path, "-q")
    assert call(*words).exit_code == 0
    return path


def test_compare_matches_the_clusters_of_two_runs(comorb, run, other):
    told = comorb("compare", run, other)
    assert told.exit_code == 0
    assert "First run: visits.csv" in told.stdout
    assert "Agreement on the same records (adjusted Rand index): 0." in told.stdout
    assert "no match" in told.stdout
    same = comorb("compare", run, run).stdout
    assert "hardly anything" in same
    assert "very good, 1.00" in " ".join(same.split())


def test_compare_as_json(comorb, run, other):
    plain = json.loads(comorb("compare", run, other, "--json").stdout)
    assert plain["same_records"]
    assert [len(plain[key]) for key in ("pairs", "only_one", "only_two")] == [2, 1, 0]
    assert plain["pairs"][0]["records_in_both"] > 0
    for pair in plain["pairs"]:
        assert 0 < pair["likeness"] < 1
        assert pair["match"] in ("very good", "good", "fair", "poor")
        assert {"age", "died"} <= {one["outcome"] for one in pair["outcomes"]}
    same = json.loads(comorb("compare", run, run, "--json").stdout)
    assert same["ari"] == 1
    assert {pair["likeness"] for pair in same["pairs"]} == {1.0}
    assert not any(one["apart"] for one in same["outcomes"])
    hidden = json.loads(comorb("compare", run, other, "--json", "--min-cell", 50).stdout)
    assert hidden["same_records"]


def test_profiles_without_assignments_are_compared_by_their_codes_alone(comorb, run, other):
    shutil.copy(other / "profile.json", "other.json")
    plain = json.loads(comorb("compare", run, "other.json", "--json").stdout)
    assert not plain["same_records"]
    assert plain["ari"] is None
    assert len(plain["pairs"]) == 2


def test_the_chart_has_the_pairs_of_the_table(comorb, run, other, monkeypatch):
    drawn = []
    monkeypatch.setattr("comorb.cli.render.save_chart", lambda ax, *_: drawn.append(ax))
    monkeypatch.setattr("comorb.views.charts.match_clusters", lambda *_: ((0, 0),))
    told = comorb("compare", run, other, "--json", "--chart", "compare.svg")
    pairs = json.loads(told.stdout)["pairs"]
    heads = [text.get_text() for text in drawn[0].get_xticklabels()]
    assert heads == [f"{pair['one']['cluster']}→{pair['two']['cluster']}" for pair in pairs]


def test_compare_draws_a_chart(comorb, run, other):
    told = comorb("compare", run, other, "--chart", "compare.svg")
    assert told.stderr == "Chart: compare.svg\n"
    assert "<svg" in Path("compare.svg").read_text()
    told = comorb("compare", run, other, "--chart", "compare.svg")
    assert "compare.svg is there already; name another file, or replace it by force." in told.stderr
    told = comorb("compare", run, other, "--chart", "compare.bmp")
    assert "Expected a file that ends with .png or .svg or .pdf; got compare.bmp." in told.stderr
