"""Burden and drift as plain values: in full, and protected."""

import json

from comorb.cli.usage import burden_summary, slices_summary
from comorb.insight.runs.folder import load_profile


def test_a_profile_tells_what_clusters_use(comorb, run):
    told = json.loads(comorb("profile", run, "--json").stdout)
    used = told["burden"]
    assert [one["cluster"] for one in used["clusters"]] == [1, 2, 3]
    los = used["all"]["totals"]["los"]
    parts = [one["totals"]["los"] for one in used["clusters"]]
    assert sum(part["total"] for part in parts) == los["total"]
    assert los["share"] == 1
    assert 0 < used["all"]["rates"]["died"]["rate"] < 1
    assert {one["by"] for one in told["slices"]} >= {"age", "sex"}


def test_protected_figures_are_others(run):
    full = load_profile(run)
    one, two = (burden_summary(shown) for shown in (full, full.protected()))
    assert one["clusters"][0]["totals"] != two["clusters"][0]["totals"]
    few = [part["records"] for part in slices_summary(full.protected().slices[0], full)["slices"]]
    assert all(count is None or count >= 11 or count == 0 for count in few)


def test_the_printed_profile_has_a_sentence_on_use(comorb, run):
    told = comorb("profile", run).stdout
    assert "What they use" in told
    assert "% of days in bed" in told
    assert " use " in told


def test_new_records_are_told_beside_those_of_the_model(comorb, run, records):
    told = comorb("assign", run, records, "-o", "a.csv")
    assert "The model fits these records as it did its own" in told.stdout
    drift = json.loads(comorb("assign", run, records, "-o", "b.csv", "--json").stdout)["drift"]
    assert drift["fits"] is True
    assert drift["log_likelihood"]["now"] == drift["log_likelihood"]["then"]
    assert [one["now"] for one in drift["clusters"]] == [one["then"] for one in drift["clusters"]]
    words = ("assign", run, records, "--all", "-o", "c.csv")
    other = json.loads(comorb(*words, "--protected", "--json").stdout)["drift"]
    assert other["codes"]
    assert all(round(one["now"], 2) == one["now"] for one in other["codes"])
    assert "Became " in comorb(*words, "--force").stdout
