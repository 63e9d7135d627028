"""Summaries: what a command tells, as plain values that JSON takes."""

import json

from comorb.cli.summaries import cluster_summary, profile_summary, stability_summary
from comorb.insight.runs.folder import load_profile
from comorb.insight.runs.stability import Stability


def test_a_profile_is_told_with_its_rules_and_notes(run):
    profile = load_profile(run)
    summary = profile_summary(profile, top=2)
    assert json.loads(json.dumps(summary)) == summary
    assert (summary["k"], summary["records"]) == (3, profile.source.records)
    assert [rule["rule"] for rule in summary["rules"]][-2:] == ["having 585", "at least 3 codes"]
    assert all(len(cluster["diagnoses"]) == 2 for cluster in summary["clusters"])


def test_what_is_suppressed_is_none(run):
    profile = load_profile(run).suppressed(500)
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
