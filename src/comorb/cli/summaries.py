"""Summaries: what a command tells, as plain values, from which both table and JSON are made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from comorb.cli.usage import burden_summary, drift_summary, rules_summary, slices_summary
from comorb.insight.profile.corrected import outcome_rows
from comorb.insight.profile.rough import rough, rough_lines, rough_notes

if TYPE_CHECKING:
    from comorb.insight.profile.profile import Profile
    from comorb.insight.runs.assign import Tally
    from comorb.insight.runs.comparing import Compared
    from comorb.insight.runs.stability import Stability
    from comorb.insight.runs.tree import Split
    from comorb.model.choose import Choice
    from comorb.records.ledger import Ledger, Line


def profile_summary(profile: Profile, lam: float = 0.6, top: int = 5) -> dict[str, Any]:
    """Return what a table of clusters shows, as plain values; None where it isn't told."""
    source = profile.source
    clusters = [
        _brief(profile, place)
        | {
            "confidence": cluster.top,
            "stability": cluster.stability,
            "codes_a_record": cluster.length,
            "mostly": _mostly(profile, place),
            "diagnoses": [
                {
                    "code": profile.codes[i],
                    "name": profile.labels[i],
                    "prevalence": float(profile.prevalence[place, i]),
                }
                for i in profile.top(place, lam, top)
            ],
        }
        for place, cluster in enumerate(profile.clusters)
    ]
    return {
        "title": source.title,
        "records": source.records,
        "codes": source.features,
        "system": source.system,
        "level": source.level,
        "k": profile.k,
        "reason": source.reason,
        "rules": _rules(source.lines),
        "notes": list(source.notes),
        "in_every_record": [profile.labels[i] for i in profile.universal],
        "counts": "protected" if profile.min_cell else "full",
        "min_cell": profile.min_cell,
        "temperature": profile.caveats.temperature,
        "codes_a_record": profile.caveats.length,
        "explained_by_length": profile.caveats.explained_by_length,
        "often_together": [
            {
                "codes": [profile.codes[i] for i in (pair.first, pair.second)],
                "names": [profile.labels[i] for i in (pair.first, pair.second)],
                "records": pair.observed,
                "expected": pair.expected,
            }
            for pair in profile.caveats.pairs
        ],
        **_features(profile),
        "clusters": clusters,
        "outcomes": outcome_rows(profile),
        "burden": burden_summary(profile),
        "slices": [slices_summary(one, profile) for one in profile.slices],
    }


def _features(profile: Profile) -> dict[str, Any]:
    """Return what else the clusters were found by: kinds, gaps, and what sets clusters apart."""
    if not profile.features:
        return {}
    records = profile.source.records
    shares = profile.influence if profile.n_codes else dict(list(profile.influence.items())[1:])
    return {
        "influence": {name: round(share, 3) for name, share in shares.items()},
        "features": [
            {
                "name": one.name,
                "kind": one.kind,
                "missing": _known((records - one.summary.known[-1]) / records),
            }
            for one in profile.features
        ],
    }


def assigned_summary(tally: Tally, least: int = 0) -> dict[str, Any]:
    """Return how many records went to each cluster and which codes are unknown, as plain values.

    With ``least``, in rough numbers of records, and none of fewer.
    """
    all_records, places = int(tally.sizes.sum()), 2 if least else 15
    clusters = [
        {
            "cluster": number,
            "name": name,
            "records": _told(size, least),
            "share": None if _told(size, least) is None else round(size / all_records, places),
            "confidence": round(sure / size, places) if _told(size, least) else None,
        }
        for number, name, size, sure in zip(
            tally.numbers,
            tally.clusters,
            tally.sizes.tolist(),
            tally.sure.tolist(),
            strict=True,
        )
    ]
    lines, notes, unknown = tally.ledger.lines, tally.ledger.notes, tally.unknown
    if least:
        lines, notes = rough_lines(lines, least), rough_notes(notes, least)
    return {
        "records": _told(all_records, least),
        "min_cell": least,
        "rules": _rules(lines),
        "notes": list(notes),
        "clusters": clusters,
        "drift": drift_summary(tally, least),
        "unknown": [
            vars(one) | {"records": told} for one in unknown if (told := _told(one.records, least))
        ],
    }


def _told(count: int, least: int) -> int | None:
    return rough(count, least) if least else count


def cluster_summary(profile: Profile, cluster: int, lam: float, top: int) -> dict[str, Any]:
    """Return the cluster of a number in detail."""
    place = profile.numbers.index(cluster)
    places = profile.top(place, lam, top)
    whole: dict[str, Any] = profile_summary(profile, lam, 0)["clusters"][place]
    diagnoses = [
        {
            "code": profile.codes[i],
            "name": profile.labels[i],
            "title": profile.names[i],
            "prevalence": float(profile.prevalence[place, i]),
            "low": float(profile.low[place, i]),
            "high": float(profile.high[place, i]),
            "overall": float(profile.overall[i]),
            "lift": float(profile.lift[place, i]),
        }
        for i in places
    ]
    patients = [
        {
            "what": f"{outcome.name}: {value}",
            "kind": outcome.kind,
            "cluster": _known(outcome.shown.estimate[row, place]),
            "low": _known(outcome.shown.low[row, place]),
            "high": _known(outcome.shown.high[row, place]),
            "all": _known(outcome.estimate[row, -1]),
            "naive": _known(outcome.estimate[row, place]),
            "corrected": outcome.corrected is not None,
        }
        for outcome in (*(one.summary for one in profile.features), *profile.outcomes)
        for row, value in enumerate(outcome.values)
    ]
    missing = {
        one.name: _known(1 - one.summary.known[place] / (profile.clusters[place].size or math.nan))
        for one in profile.features
    }
    return (
        whole
        | ({"missing": missing} if missing else {})
        | {
            "diagnoses": diagnoses,
            "patients": patients,
            "rules": rules_summary(profile)["clusters"][place] if profile.rules else None,
            "min_cell": profile.min_cell,
        }
    )


def compare_summary(compared: Compared, top: int = 4) -> dict[str, Any]:
    """Return the matched clusters of two runs and what differs in them, as plain values."""
    from comorb.insight.profile.compare import how_good, shared_columns

    one, two, comparison = compared.one, compared.two, compared.comparison
    flows, left, right = comparison.flows, *shared_columns(one.codes, two.codes)
    pairs = []
    for (a, b), change, alike in zip(
        comparison.pairs, comparison.differences, comparison.likeness, strict=True
    ):
        order = sorted(range(len(change)), key=lambda i: -abs(_known(change[i]) or 0.0))[:top]
        differences = [
            {
                "code": comparison.codes[i],
                "name": one.labels[left[i]],
                "one": _known(one.prevalence[a, left[i]]),
                "two": _known(two.prevalence[b, right[i]]),
            }
            for i in order
        ]
        both = None if flows is None else _known(flows[a, b])
        matched: dict[str, Any] = {"one": _brief(one, a), "two": _brief(two, b)}
        matched["records_in_both"] = both
        matched |= {"likeness": alike, "match": how_good(alike), "outcomes": _both(one, a, two, b)}
        pairs.append(matched | {"differences": differences})
    firsts, seconds = ({pair[side] for pair in comparison.pairs} for side in (0, 1))
    return {
        "one": {"title": one.source.title, "records": one.source.records, "k": one.k},
        "two": {"title": two.source.title, "records": two.source.records, "k": two.k},
        "same_records": flows is not None,
        "min_cell": max(one.min_cell, two.min_cell),
        "ari": comparison.ari,
        "outcomes": _both(one, one.k, two, two.k),
        "pairs": pairs,
        "only_one": [_brief(one, a) for a in range(one.k) if a not in firsts],
        "only_two": [_brief(two, b) for b in range(two.k) if b not in seconds],
    }


def _both(one: Profile, a: int, two: Profile, b: int) -> list[dict[str, Any]]:
    """Return the outcomes of a cluster in either run, or of all records by the place after them.

    They are apart where their 95% intervals don't meet.
    """
    others = {outcome.name: outcome for outcome in two.outcomes}
    rows = []
    for outcome in one.outcomes:
        other = others.get(outcome.name)
        if other is None or other.kind != outcome.kind:
            continue
        for row, value in enumerate(outcome.values):
            if value not in other.values or value == "median":
                continue
            ours, theirs = outcome.shown, other.shown
            here, there = (row, a), (other.values.index(value), b)
            rows.append(
                {
                    "outcome": outcome.name,
                    "value": value,
                    "kind": outcome.kind,
                    "one": _known(ours.estimate[here]),
                    "two": _known(theirs.estimate[there]),
                    "apart": bool(
                        ours.low[here] > theirs.high[there] or ours.high[here] < theirs.low[there]
                    ),
                }
            )
    return rows


def choice_summary(
    choice: Choice, ledger: Ledger, splits: Sequence[Split], least: int = 0
) -> dict[str, Any]:
    """Return what each number of clusters is worth, and how groups split, as plain values.

    With ``least``, in rough numbers of records, and none of fewer.
    """
    rows = [vars(row) | {"in_reliable": row.covered} for row in choice.rows]
    if least:
        rows = [row | {"smallest": rough(round(row["smallest"]), least)} for row in rows]
    return {
        "best": choice.best,
        "reason": choice.reason,
        "notes": list(rough_notes(ledger.notes, least) if least else ledger.notes),
        "min_cell": least,
        "rows": rows,
        "splits": [vars(split) for split in splits],
    }


def stability_summary(profile: Profile, measured: Stability) -> dict[str, Any]:
    """Return how well clusters come out again, as plain values."""
    return {
        "ari": measured.ari,
        "aris": list(measured.aris),
        "min_cell": profile.min_cell,
        "notes": list(profile.source.notes),
        "clusters": [
            _brief(profile, place) | {"stability": overlap}
            for place, overlap in enumerate(measured.jaccard)
        ],
    }


def _brief(profile: Profile, place: int) -> dict[str, Any]:
    cluster = profile.clusters[place]
    return {
        "cluster": cluster.number,
        "name": cluster.name,
        "records": cluster.size,
        "share": cluster.share,
    }


def _mostly(profile: Profile, place: int) -> str | None:
    """Return what a cluster mostly is, where that is how many codes a record has."""
    from comorb.model.lengths import MOSTLY

    cluster, overall = profile.clusters[place], profile.caveats.length
    if cluster.of_length is None or cluster.of_length <= MOSTLY or overall is None:
        return None
    return "short records" if (cluster.length or 0) < overall else "long records"


def _rules(lines: tuple[Line, ...]) -> list[dict[str, Any]]:
    return [
        {"rule": line.rule, "before": line.before, "after": line.after}
        for line in lines
        if line.unit == "records"
    ]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
