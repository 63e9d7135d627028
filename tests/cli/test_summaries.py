"""Summaries: what a command tells, as plain values that JSON takes."""

import json
from dataclasses import replace

import pytest

from comorb.cli.output import show_profile
from comorb.cli.summaries import cluster_summary, profile_summary, stability_summary
from comorb.insight.profile.contents import Pair
from comorb.insight.runs.folder import load_profile
from comorb.insight.runs.stability import Stability


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
