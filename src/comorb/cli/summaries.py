"""What commands report, as plain values from which both table and JSON are made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from comorb.profiles.outcomes import outcome_rows
from comorb.profiles.rounded import round_count, round_lines, round_notes

if TYPE_CHECKING:
    from comorb.model.select_k import Choice
    from comorb.profiles.profile import Profile
    from comorb.profiles.slices import Slices
    from comorb.records.ledger import Ledger, Line
    from comorb.runs.assign import AssignmentSummary
    from comorb.runs.choose import Split
    from comorb.runs.compare import RunComparison
    from comorb.runs.slices import SlicedRecords, Strata
    from comorb.runs.stability import Stability


def burden_summary(profile: Profile) -> dict[str, Any] | None:
    """Return what the records of each cluster use; None of a profile that doesn't have it."""
    burden = profile.burden
    if burden is None:
        return None
    visits, means = burden.visits_a_patient, burden.means
    rates = {"rate": burden.rate, "low": burden.low, "high": burden.high}
    rates |= {"records": burden.rate_counts, "known": burden.rate_known}

    def of(place: int) -> dict[str, Any]:
        totals = {
            row: _figures({"total": burden.totals}, (row, place))
            | {"mean": _rounded(means[row, place])}
            | _figures({"share": burden.shares, "known": burden.known}, (row, place))
            for row in range(len(burden.columns))
        }
        return {
            **_figures({"records": burden.records, "share": burden.share}, place),
            "patients": _known(burden.patients[place]) if burden.patients.size else None,
            "visits_a_patient": _rounded(visits[place]) if visits.size else None,
            "totals": dict(zip(burden.columns, totals.values(), strict=True)),
            "rates": {name: _figures(rates, (row, place)) for row, name in enumerate(burden.rates)},
        }

    clusters = [_numbered(one) | of(place) for place, one in enumerate(profile.clusters)]
    return {"clusters": clusters, "all": of(profile.k), "notes": list(burden.notes)}


def _figures(arrays: Mapping[str, Any], place: Any) -> dict[str, float | None]:
    """Return the figure of each array at a place, None where it isn't known."""
    return {name: _known(array[place]) for name, array in arrays.items()}


def slices_summary(slices: Slices, run: Profile | SlicedRecords) -> dict[str, Any]:
    """Return the shares of clusters within slices, with their tests."""
    names = [one if isinstance(one, str) else one.name for one in run.clusters]
    arrays = {"records": slices.counts, "share": slices.share, "low": slices.low}
    arrays |= {"high": slices.high, "standardised": slices.standardised}
    parts = [
        {
            "slice": label,
            "records": _known(slices.counts[s, -1]),
            "covered": _known(slices.covered[s]) if slices.mix else None,
            "clusters": [
                {"cluster": number} | _figures(arrays, (s, place))
                for place, number in enumerate(run.numbers)
            ],
        }
        for s, label in enumerate(slices.labels)
    ]
    tests = [
        {"cluster": number, "name": name, "z": _known(z), "p": _known(p)}
        for number, name, z, p in zip(run.numbers, names, slices.z, slices.p, strict=True)
    ]
    return {
        "by": slices.by,
        "test": "trend" if slices.ordered else "difference",
        "standardised_by": list(slices.mix),
        "slices": parts,
        "tests": tests,
        "notes": list(slices.notes),
    }


def sliced_summary(sliced: SlicedRecords) -> dict[str, Any]:
    """Return the slices of records by the clusters of a run, and models of their own."""
    least, notes = sliced.min_cell, sliced.ledger.notes
    return {
        "records": _shown(sliced.records, least),
        "min_cell": least,
        "notes": list(round_notes(notes, least) if least else notes),
        "slices": [slices_summary(one, sliced) for one in sliced.slices],
        "strata": [strata_summary(one, sliced) for one in sliced.strata],
    }


def strata_summary(strata: Strata, sliced: SlicedRecords) -> dict[str, Any]:
    """Return the models of slices, matched to the whole's, and the test of sameness.

    With a least count, in rounded numbers of records and of shares.
    """
    least, places = sliced.min_cell, 2 if sliced.min_cell else 6

    def cluster(one: Any, new: int) -> dict[str, Any]:
        match = one.matches[new]
        top = sorted(range(len(sliced.codes)), key=lambda i: (-one.means[new, i], i))[:3]
        return {
            "cluster": None if match is None else sliced.numbers[match],
            "name": None if match is None else sliced.clusters[match],
            "share": round(float(one.weights[new]), places),
            "distance": round(float(one.distances[new]), min(places, 4)),
            "codes": [sliced.codes[i] for i in top],
        }

    test = strata.test
    return {
        "strata": [
            {
                "slice": one.label,
                "records": _shown(one.records, least),
                "clusters": [cluster(one, new) for new in range(len(one.matches))],
            }
            for one in strata.strata
        ],
        "same_profiles": test and vars(test) | {"records": _shown(test.records, least)},
        "notes": list(round_notes(strata.notes, least) if least else strata.notes),
    }


def rules_summary(profile: Profile) -> dict[str, Any]:
    """Return the rules of each cluster in words, with how often they are right."""
    from comorb.profiles.assignment import REVIEW_BELOW

    clusters = [
        {
            **_numbered(cluster),
            "conditions": [
                _code(profile, one.code)
                | {"says": profile.condition_text(one), "has": one.has, "member": one.member}
                for one in rules.conditions
            ],
            "otherwise": rules.otherwise,
            "right": _known(rules.precision),
            "found": _known(rules.recall),
            "judged_on": _known(rules.members),
            "review": _known(round(rules.review / (rules.members or math.nan), 4)),
            "in_doubt": _in_doubt(profile, place),
        }
        for place, (cluster, rules) in enumerate(zip(profile.clusters, profile.rules, strict=True))
    ]
    return {"review_below": REVIEW_BELOW, "min_cell": profile.min_cell, "clusters": clusters}


def _in_doubt(profile: Profile, place: int) -> dict[str, Any] | None:
    """Return how many records of a cluster are in doubt, and with which others; None if unknown."""
    uncertain = profile.uncertain
    if uncertain is None:
        return None
    between = zip(profile.numbers, uncertain.between[place].tolist(), strict=True)
    others = [{"cluster": number, "records": n} for number, n in between if n > 0]
    others.sort(key=lambda one: -one["records"])
    whole = _figures({"records": uncertain.doubtful, "of": uncertain.members}, place)
    return {**whole, "with": others}


def drift_summary(tally: AssignmentSummary, least: int) -> dict[str, Any]:
    """Return what changed since a model was fitted; with ``least``, in few digits."""
    drift, places = tally.drift, 2 if least else 6
    shown = [not least or size >= least for size in tally.sizes.tolist()]
    return {
        "fits": drift.fits,
        "sentence": drift.sentence,
        "log_likelihood": {
            "then": drift.then and round(drift.then.mean, min(places, 4)),
            "spread_then": drift.then and round(drift.then.spread, min(places, 4)),
            "now": round(drift.now.mean, min(places, 4)),
            "spread_now": round(drift.now.spread, min(places, 4)),
        },
        "clusters": [
            {
                "cluster": number,
                "then": round(one.then, places),
                "now": round(one.now, places) if some else None,
                "p": float(f"{one.p:.1g}") if least else one.p,
            }
            for number, one, some in zip(tally.numbers, drift.clusters, shown, strict=True)
        ],
        "codes": [
            {"code": one.name, "then": round(one.then, places), "now": round(one.now, places)}
            for one in drift.codes
            if not least or one.now * drift.now.records >= least
        ],
    }


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 3)


def profile_summary(profile: Profile, lam: float = 0.6, top: int = 5) -> dict[str, Any]:
    """Return what a table of clusters shows, as plain values; None where it is suppressed."""
    from comorb.views.findings import findings
    from comorb.views.words import Words

    source, caveats = profile.source, profile.caveats
    clusters = [
        _brief(profile, place)
        | {
            "confidence": cluster.top,
            "stability": cluster.stability,
            "codes_a_record": cluster.length,
            "mostly": _mostly(profile, place),
            "diagnoses": [
                _code(profile, i) | {"prevalence": float(profile.prevalence[place, i])}
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
        "temperature": caveats.temperature,
        "codes_a_record": caveats.length,
        "explained_by_length": caveats.explained_by_length,
        "often_together": [
            {
                "codes": [profile.codes[i] for i in (pair.first, pair.second)],
                "names": [profile.labels[i] for i in (pair.first, pair.second)],
                "records": pair.observed,
                "expected": pair.expected,
            }
            for pair in caveats.pairs
        ],
        **_features(profile),
        "clusters": clusters,
        "outcomes": outcome_rows(profile),
        "burden": burden_summary(profile),
        "findings": [
            vars(one) | {"clusters": list(one.clusters)} for one in findings(profile, Words("en"))
        ],
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


def assigned_summary(tally: AssignmentSummary, least: int = 0) -> dict[str, Any]:
    """Return how many records went to each cluster and which codes are unknown, as plain values.

    With ``least``, in rounded numbers of records, and none of fewer.
    """
    all_records, places = int(tally.sizes.sum()), 2 if least else 15
    sizes = zip(tally.sizes.tolist(), tally.sure.tolist(), strict=True)
    clusters = [
        {
            "cluster": number,
            "name": name,
            "records": _shown(size, least),
            "share": None if _shown(size, least) is None else round(size / all_records, places),
            "confidence": round(sure / size, places) if _shown(size, least) else None,
        }
        for number, name, (size, sure) in zip(tally.numbers, tally.clusters, sizes, strict=True)
    ]
    lines, notes, unknown = tally.ledger.lines, tally.ledger.notes, tally.unknown
    if least:
        lines, notes = round_lines(lines, least), round_notes(notes, least)
    return {
        "records": _shown(all_records, least),
        "min_cell": least,
        "rules": _rules(lines),
        "notes": list(notes),
        "clusters": clusters,
        "drift": drift_summary(tally, least),
        "unknown": [
            vars(one) | {"records": n} for one in unknown if (n := _shown(one.records, least))
        ],
    }


def _shown(count: int, least: int) -> int | None:
    return round_count(count, least) if least else count


def cluster_summary(profile: Profile, cluster: int, lam: float, top: int) -> dict[str, Any]:
    """Return the cluster of a number in detail."""
    place = profile.numbers.index(cluster)
    whole: dict[str, Any] = profile_summary(profile, lam, 0)["clusters"][place]
    diagnoses = [
        _code(profile, i)
        | {
            "title": profile.names[i],
            "prevalence": float(profile.prevalence[place, i]),
            "low": float(profile.low[place, i]),
            "high": float(profile.high[place, i]),
            "overall": float(profile.overall[i]),
            "lift": float(profile.lift[place, i]),
        }
        for i in profile.top(place, lam, top)
    ]
    patients = [
        {
            "what": f"{outcome.name}: {value}",
            "kind": outcome.kind,
            "cluster": _known(outcome.estimate[row, place]),
            **_figures({"low": outcome.low, "high": outcome.high}, (row, place)),
            "all": _known(outcome.estimate[row, -1]),
            "events": _known(outcome.counts[row, place]) if outcome.kind == "share" else None,
            "records": _known(outcome.known[place]),
            "corrected": _known(outcome.corrected.estimate[row, place])
            if outcome.corrected is not None and value != "median"
            else None,
        }
        for outcome in (*(one.summary for one in profile.features), *profile.outcomes)
        for row, value in enumerate(outcome.values)
    ]
    missing = {
        one.name: _known(1 - one.summary.known[place] / (profile.clusters[place].size or math.nan))
        for one in profile.features
    }
    return {
        **whole,
        **({"missing": missing} if missing else {}),
        "diagnoses": diagnoses,
        "patients": patients,
        "rules": rules_summary(profile)["clusters"][place] if profile.rules else None,
        "min_cell": profile.min_cell,
    }


def compare_summary(compared: RunComparison, top: int = 4) -> dict[str, Any]:
    """Return the matched clusters of two runs and what differs in them, as plain values."""
    from comorb.profiles.comparison import likeness_word, shared_columns

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
        pairs.append(
            {
                "one": _brief(one, a),
                "two": _brief(two, b),
                "records_in_both": None if flows is None else _known(flows[a, b]),
                "likeness": alike,
                "match": likeness_word(alike),
                "outcomes": _both(one, a, two, b),
                "differences": differences,
            }
        )
    firsts, seconds = ({pair[side] for pair in comparison.pairs} for side in (0, 1))
    runs = [
        {"title": run.source.title, "records": run.source.records, "k": run.k} for run in (one, two)
    ]
    return {
        "one": runs[0],
        "two": runs[1],
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

    They are apart where their 95% intervals don't overlap.
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
            here, there = (row, a), (other.values.index(value), b)
            rows.append(
                {
                    "outcome": outcome.name,
                    "value": value,
                    "kind": outcome.kind,
                    "one": _known(outcome.estimate[here]),
                    "two": _known(other.estimate[there]),
                    "apart": bool(
                        outcome.low[here] > other.high[there]
                        or outcome.high[here] < other.low[there]
                    ),
                }
            )
    return rows


def choice_summary(
    choice: Choice, ledger: Ledger, splits: Sequence[Split], least: int = 0
) -> dict[str, Any]:
    """Return what each number of clusters is worth, and how groups split, as plain values.

    With ``least``, in rounded numbers of records, and none of fewer.
    """
    rows = [vars(row) | {"in_reliable": row.covered} for row in choice.rows]
    if least:
        rows = [row | {"smallest": round_count(round(row["smallest"]), least)} for row in rows]
    return {
        "best": choice.best,
        "main": choice.main,
        "finest": choice.finest,
        "bic": choice.lowest_bic,
        "reason": choice.reason,
        "notes": list(round_notes(ledger.notes, least) if least else ledger.notes),
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
    return _numbered(cluster) | {"records": cluster.size, "share": cluster.share}


def _numbered(cluster: Any) -> dict[str, Any]:
    return {"cluster": cluster.number, "name": cluster.name}


def _code(profile: Profile, column: int) -> dict[str, Any]:
    return {"code": profile.codes[column], "name": profile.labels[column]}


def _mostly(profile: Profile, place: int) -> str | None:
    """Return what a cluster mostly is, where that is how many codes a record has."""
    from comorb.model.diagnostics import CONFIG

    cluster, overall = profile.clusters[place], profile.caveats.length
    if cluster.of_length is None or cluster.of_length <= CONFIG.mostly_length or overall is None:
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
