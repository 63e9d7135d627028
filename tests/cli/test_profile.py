"""profile, as a user meets it."""

import json
import shutil
from pathlib import Path


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
    assert "los: mean" in told.stdout
    plain = json.loads(comorb("profile", run, "--cluster", 1, "--json").stdout)
    assert plain["cluster"] == 1
    assert plain["diagnoses"][0]["lift"] > 0
    wrong = comorb("profile", run, "--cluster", 4)
    assert wrong.exit_code == 2
    assert "expected one of the clusters 1, 2, 3, got 4" in wrong.stderr


def test_counts_are_protected_on_request(comorb, run):
    told = comorb("profile", run, "--cluster", 1, "--min-cell", 200)
    assert told.exit_code == 0
    assert "few" in told.stdout
    assert "few is less than 200" in told.stdout
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


def test_a_profile_is_split_and_said_in_a_language(comorb, run, records):
    told = json.loads(
        comorb("profile", run, "--json", "--split-by", "sex", "--language", "es").stdout
    )
    assert [one["by"] for one in told["slices"]] == ["sex"]
    names = {one["name"] for cluster in told["clusters"] for one in cluster["diagnoses"]}
    assert names & {"Diabetes", "Hipertensión", "Anemia", "Arritmia", "Trastornos de los lípidos"}
    words = ("--split-by", "age:q2", "--records", records, "--protected")
    few = json.loads(comorb("profile", run, "--json", *words).stdout)
    assert len(few["slices"][0]["slices"]) == 2
