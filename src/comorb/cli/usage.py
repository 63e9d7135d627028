"""Usage: burden, slices, rules and drift as plain values, from which table and JSON are made."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from comorb.insight.profile.rough import rough, rough_notes

if TYPE_CHECKING:
    from comorb.insight.profile.profile import Profile
    from comorb.insight.profile.slices import Slices
    from comorb.insight.runs.assign import Tally
    from comorb.insight.runs.slicing import Sliced
    from comorb.insight.runs.strata import Strata


def burden_summary(profile: Profile) -> dict[str, Any] | None:
    """Return what the records of each cluster use; None of a profile that doesn't have it."""
    burden = profile.burden
    if burden is None:
        return None
    visits = burden.visits_a_patient

    def of(place: int) -> dict[str, Any]:
        return {
            "records": _known(burden.records[place]),
            "share": _known(burden.share[place]),
            "patients": _known(burden.patients[place]) if burden.patients.size else None,
            "visits_a_patient": _rounded(visits[place]) if visits.size else None,
            "totals": {
                name: {
                    "total": _known(burden.totals[row, place]),
                    "share": _known(burden.shares[row, place]),
                    "known": _known(burden.known[row, place]),
                }
                for row, name in enumerate(burden.columns)
            },
            "rates": {
                name: {
                    "rate": _known(burden.rate[row, place]),
                    "low": _known(burden.low[row, place]),
                    "high": _known(burden.high[row, place]),
                    "records": _known(burden.rate_counts[row, place]),
                    "known": _known(burden.rate_known[row, place]),
                }
                for row, name in enumerate(burden.rates)
            },
        }

    clusters = [
        {"cluster": one.number, "name": one.name} | of(place)
        for place, one in enumerate(profile.clusters)
    ]
    return {"clusters": clusters, "all": of(profile.k), "notes": list(burden.notes)}


def slices_summary(slices: Slices, run: Profile | Sliced) -> dict[str, Any]:
    """Return the shares of clusters within slices, with their tests."""
    names = [one if isinstance(one, str) else one.name for one in run.clusters]
    parts = [
        {
            "slice": label,
            "records": _known(slices.counts[s, -1]),
            "covered": _known(slices.covered[s]) if slices.mix else None,
            "clusters": [
                {
                    "cluster": number,
                    "records": _known(slices.counts[s, place]),
                    "share": _known(slices.share[s, place]),
                    "low": _known(slices.low[s, place]),
                    "high": _known(slices.high[s, place]),
                    "standardised": _known(slices.standardised[s, place]),
                }
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


def sliced_summary(sliced: Sliced) -> dict[str, Any]:
    """Return the slices of records by the clusters of a run, and models of their own."""
    least, notes = sliced.min_cell, sliced.ledger.notes
    return {
        "records": rough(sliced.records, least) if least else sliced.records,
        "min_cell": least,
        "notes": list(rough_notes(notes, least) if least else notes),
        "slices": [slices_summary(one, sliced) for one in sliced.slices],
        "strata": [strata_summary(one, sliced) for one in sliced.strata],
    }


def strata_summary(strata: Strata, sliced: Sliced) -> dict[str, Any]:
    """Return the models of slices, matched to the whole's, and the test of sameness.

    With a least count, in rough numbers of records and of shares.
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
                "records": rough(one.records, least) if least else one.records,
                "clusters": [cluster(one, new) for new in range(len(one.matches))],
            }
            for one in strata.strata
        ],
        "same_profiles": None
        if test is None
        else vars(test) | {"records": rough(test.records, least) if least else test.records},
        "notes": list(rough_notes(strata.notes, least) if least else strata.notes),
    }


def rules_summary(profile: Profile) -> dict[str, Any]:
    """Return the rules of each cluster in words, with how often they are right."""
    from comorb.insight.profile.rules import REVIEW

    clusters = [
        {
            "cluster": cluster.number,
            "name": cluster.name,
            "conditions": [
                {
                    "code": profile.codes[one.code],
                    "name": profile.labels[one.code],
                    "says": profile.said(one),
                    "has": one.has,
                    "member": one.member,
                }
                for one in rules.conditions
            ],
            "otherwise": rules.otherwise,
            "right": _known(rules.precision),
            "found": _known(rules.recall),
            "judged_on": _known(rules.members),
            "review": _share(rules.review, rules.members),
            "in_doubt": _in_doubt(profile, place),
        }
        for place, (cluster, rules) in enumerate(zip(profile.clusters, profile.rules, strict=True))
    ]
    return {"review_below": REVIEW, "min_cell": profile.min_cell, "clusters": clusters}


def _in_doubt(profile: Profile, place: int) -> dict[str, Any] | None:
    """Return how many records of a cluster are in doubt, and with which others; None if unknown."""
    grey = profile.grey
    if grey is None:
        return None
    others = [
        {"cluster": cluster.number, "records": _known(grey.between[place, other])}
        for other, cluster in enumerate(profile.clusters)
        if grey.between[place, other] > 0
    ]
    others.sort(key=lambda one: -(one["records"] or 0))
    return {
        "records": _known(grey.doubtful[place]),
        "of": _known(grey.members[place]),
        "with": others,
    }


def drift_summary(tally: Tally, least: int) -> dict[str, Any]:
    """Return what changed since a model was fitted; with ``least``, in few digits."""
    drift, places = tally.drift, 2 if least else 6
    told = [not least or size >= least for size in tally.sizes.tolist()]
    return {
        "fits": drift.fits,
        "sentence": drift.sentence,
        "log_likelihood": {
            "then": None if drift.then is None else round(drift.then.mean, min(places, 4)),
            "spread_then": None if drift.then is None else round(drift.then.spread, min(places, 4)),
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
            for number, one, some in zip(tally.numbers, drift.clusters, told, strict=True)
        ],
        "codes": [
            {"code": one.name, "then": round(one.then, places), "now": round(one.now, places)}
            for one in drift.codes
            if not least or one.now * drift.now.records >= least
        ],
    }


def _share(part: float, whole: float) -> float | None:
    if math.isnan(part) or math.isnan(whole):
        return None
    return round(part / whole, 4) if whole else None


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 3)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
