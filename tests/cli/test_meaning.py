"""profile, report and compare, as a user meets them."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import call


def test_profile_prints_the_clusters_of_a_run(comorb, run):
    told = comorb("profile", run)
    assert told.exit_code == 0
    assert "records in 3 clusters" in told.stdout
    assert told.stdout == comorb("profile", run / "profile.json").stdout


def test_top_and_lambda_decide_what_is_shown(comorb, run):
    few = json.loads(comorb("profile", run, "--top", 2, "--json").stdout)
    assert {len(cluster["diagnoses"]) for cluster in few["clusters"]} == {2}
    by = {
        lam: json.loads(comorb("profile", run, "--lambda", lam, "--json").stdout)["clusters"]
        for lam in (0, 1)
    }
    shares = [one["prevalence"] for one in by[1][0]["diagnoses"]]
    assert shares == sorted(shares, reverse=True)
    assert by[0] != by[1]
    told = comorb("profile", run, "--lambda", 2)
    assert told.exit_code == 1
    assert "expected λ from 0 (most specific) to 1 (most frequent), got 2.0" in told.stderr


def test_one_cluster_in_detail(comorb, run):
    told = comorb("profile", run, "--cluster", 1)
    assert told.stdout.startswith("Cluster 1: ")
    assert "length_of_stay: mean" in told.stdout
    plain = json.loads(comorb("profile", run, "--cluster", 1, "--json").stdout)
    assert plain["cluster"] == 1
    assert plain["diagnoses"][0]["lift"] > 0
    wrong = comorb("profile", run, "--cluster", 4)
    assert wrong.exit_code == 2
    assert "expected one of the clusters 1, 2, 3, got 4" in wrong.stderr


def test_small_counts_are_hidden_on_request(comorb, run):
    told = comorb("profile", run, "--cluster", 1, "--min-cell", 200)
    assert told.exit_code == 0
    assert "hidden" in told.stdout
    assert comorb("profile", run, "--min-cell", 200, "--json").exit_code == 0


def test_what_is_no_profile_is_told(comorb, run):
    told = comorb("profile", "absent")
    assert told.exit_code == 1
    assert told.stderr == (
        "comorb: There is no profile absent; give the folder of a run, or its profile.json.\n"
    )
    told = comorb("profile", run / "model.comorb")
    assert "model.comorb can't be read as a profile; give the folder of a run" in told.stderr
    Path("cut.json").write_text((run / "profile.json").read_text()[:-50])
    told = comorb("profile", "cut.json")
    assert told.exit_code == 1
    assert told.stderr.startswith("comorb: cut.json: expected a profile as JSON")


def test_a_cluster_is_renamed_for_good(comorb, run, records):
    shutil.copytree(run, "run")
    assert "Kidneys and hearts" in comorb("profile", "run", "--name", "2=Kidneys and hearts").stdout
    assert "Kidneys and hearts" in comorb("profile", "run").stdout
    assert "Kidneys and hearts" in comorb("assign", "run", records).stdout
    assert "Kidneys and hearts" in Path("run/report.html").read_text()
    told = comorb("profile", "run", "--name", "Kidneys")
    assert told.exit_code == 2
    assert "expected the number of a cluster and a name, such as 2=Kidney" in told.stderr
    told = comorb("profile", "run", "--name", "7=Kidneys")
    assert told.exit_code == 2
    assert "expected one of the clusters 1, 2, 3, got 7" in told.stderr
    assert "Kidneys and hearts" in comorb("profile", "run").stdout


def test_report_is_written_again(comorb, run):
    assert comorb("report", run).stdout == "Report: report.html\n"
    assert Path("report.html").read_text() == (run / "report.html").read_text()
    assert comorb("report", run, "--min-cell", 20, "-o", "share.html", "-q").output == ""
    assert Path("share.html").read_text() != Path("report.html").read_text()
    told = comorb("report", run)
    assert told.exit_code == 1
    assert "report.html is there already; name another file, or use --force." in told.stderr
    assert (
        "ends with .html or .pdf; got report.doc."
        in comorb("report", run, "-o", "report.doc").stderr
    )


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("--pdf",), "report.pdf"),
        (("-o", "print.html", "--pdf"), "print.pdf"),
    ],
)
def test_report_for_print(comorb, run, words, name):
    assert comorb("report", run, *words).stdout == f"Report: {name}\n"
    assert Path(name).read_bytes().startswith(b"%PDF")


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
    assert "hardly anything" in comorb("compare", run, run).stdout


def test_compare_as_json(comorb, run, other):
    plain = json.loads(comorb("compare", run, other, "--json").stdout)
    assert plain["same_records"]
    assert [len(plain[key]) for key in ("pairs", "only_one", "only_two")] == [2, 1, 0]
    assert plain["pairs"][0]["records_in_both"] > 0
    assert json.loads(comorb("compare", run, run, "--json").stdout)["ari"] == 1
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
    monkeypatch.setattr("comorb.cli.output.save_chart", lambda ax, *_: drawn.append(ax))
    monkeypatch.setattr("comorb.insight.charts.match", lambda *_: ((0, 0),))
    told = comorb("compare", run, other, "--json", "--chart", "compare.svg")
    pairs = json.loads(told.stdout)["pairs"]
    heads = [text.get_text() for text in drawn[0].get_xticklabels()]
    assert heads == [f"{pair['one']['cluster']}→{pair['two']['cluster']}" for pair in pairs]


def test_compare_draws_a_chart(comorb, run, other):
    told = comorb("compare", run, other, "--chart", "compare.svg")
    assert told.stderr == "Chart: compare.svg\n"
    assert "<svg" in Path("compare.svg").read_text()
    told = comorb("compare", run, other, "--chart", "compare.svg")
    assert "compare.svg is there already; name another file, or use --force." in told.stderr
    told = comorb("compare", run, other, "--chart", "compare.bmp")
    assert "Expected a file that ends with .png or .svg or .pdf; got compare.bmp." in told.stderr
