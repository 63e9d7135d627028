"""What a command reports, as plain values that JSON takes; in full, and protected."""

import json
from dataclasses import replace

import numpy as np
import pytest

from comorb.cli.render import show_profile
from comorb.cli.summaries import (
    burden_summary,
    cluster_summary,
    profile_summary,
    slices_summary,
    stability_summary,
)
from comorb.profiles.contents import Pair
from comorb.runs.folder import load_profile
from comorb.runs.stability import Stability
from comorb.views.findings import findings
from comorb.views.words import Words


def test_a_profile_is_told_with_its_rules_and_notes(run):
    profile = load_profile(run)
    summary = profile_summary(profile, top=2)
    assert json.loads(json.dumps(summary)) == summary
    assert (summary["k"], summary["records"]) == (3, profile.source.records)
    assert [rule["rule"] for rule in summary["rules"]][-2:] == ["having 585", "at least 3 codes"]
    assert all(len(cluster["diagnoses"]) == 2 for cluster in summary["clusters"])


def test_what_is_not_told_is_none(run):
    profile = load_profile(run).protected(500)
    sizes = [cluster["records"] for cluster in profile_summary(profile)["clusters"]]
    assert any(size is None for size in sizes)


def test_one_cluster_is_told_by_its_number(run):
    summary = cluster_summary(load_profile(run), 2, 0.6, 4)
    assert summary["cluster"] == 2
    assert len(summary["diagnoses"]) == 4
    assert {"cluster", "low", "high", "all"} <= set(summary["patients"][0])


def test_stability_is_told_of_each_cluster(run):
    measured = Stability(0.9, (0.9,), (0.7, 0.8, 0.9))
    summary = stability_summary(load_profile(run), measured)
    assert [cluster["stability"] for cluster in summary["clusters"]] == [0.7, 0.8, 0.9]


def test_what_the_clusters_leave_unexplained_is_told(run, capsys):
    profile = load_profile(run)
    pairs = (Pair(0, 1, 1200, 300.4),)
    caveats = replace(profile.caveats, pairs=pairs, explained_by_length=0.17)
    summary = profile_summary(replace(profile, caveats=caveats))
    assert summary["often_together"] == [
        {
            "codes": list(profile.codes[:2]),
            "names": list(profile.labels[:2]),
            "records": 1200,
            "expected": 300.4,
        }
    ]
    show_profile(summary)
    told = " ".join(capsys.readouterr().out.split())
    assert "The cluster of a record explains 17% of how many codes it has." in told
    both = " + ".join(profile.labels[:2])
    assert f"Often together beyond what the clusters explain: {both} (1,200, expected 300)." in told
    assert "--drop-codes leaves a code out, --map unites two." in told


@pytest.mark.parametrize(
    ("length", "of_length", "mostly"),
    [(4.0, 0.6, "short records"), (9.0, 0.6, "long records"), (4.0, 0.5, None), (4.0, None, None)],
)
def test_a_cluster_that_is_mostly_short_or_long_records_is_called_so(
    run, capsys, length, of_length, mostly
):
    profile = load_profile(run)
    first = replace(profile.clusters[0], length=length, of_length=of_length)
    others = [replace(cluster, of_length=0.0) for cluster in profile.clusters[1:]]
    caveats = replace(profile.caveats, length=6.0)
    summary = profile_summary(replace(profile, clusters=(first, *others), caveats=caveats))
    assert [cluster["mostly"] for cluster in summary["clusters"]] == [mostly, None, None]
    show_profile(summary)
    told = capsys.readouterr().out
    assert ("mostly " in told) == (mostly is not None)
    assert mostly is None or f"mostly {mostly}" in told


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


def test_the_printed_profile_has_the_findings_of_the_page(comorb, run):
    told = comorb("profile", run).stdout
    assert "What they use" in told
    assert "% of days in bed" in told
    page = [one.text for one in findings(load_profile(run), Words("en"))]
    assert page
    assert " ".join(page) in " ".join(told.split())
    summary = json.loads(comorb("profile", run, "--json").stdout)["findings"]
    assert [one["text"] for one in summary] == page


def test_use_beyond_size_is_found_only_where_its_interval_bears_it_out(run):
    full = load_profile(run)
    assert any(") uses m" in one["text"] for one in profile_summary(full)["findings"])
    outcomes = tuple(
        replace(one, low=np.zeros_like(one.low), high=np.full_like(one.high, 1e9))
        for one in full.outcomes
    )
    texts = [one["text"] for one in profile_summary(replace(full, outcomes=outcomes))["findings"]]
    assert not any(") uses m" in text for text in texts)
    assert any(text.startswith("Too close to say who uses most bed-days") for text in texts)


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
