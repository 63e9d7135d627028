"""Protected counts of real records: how much of the full view is left in them.

``python -m benchmarks.protection``: 20 runs on the discharge survey of 2010, of which two are looks
inside the clusters of another.
"""

from __future__ import annotations

import numpy as np

from benchmarks.real import SHARED, SUBSETS
from benchmarks.table import Figure, show
from comorb import BernoulliMixture
from comorb.profiles.assignment import assign
from comorb.profiles.build import profile
from comorb.profiles.noise import own_secret
from comorb.records.spec import CohortSpec

LARGE, SEEN = 1000, 30  # records of a cluster, and of a cell
RUNS = {
    "heart failure": (3, 5, 8, 10),
    "diabetes": (4, 6, 10),
    "COPD": (3, 5, 8),
    "stroke": (3, 4),
    "births": (4, 6),
    "psychiatric": (5, 8),
}


def cohorts():
    """Yield the title, the records and the number of clusters of each run."""
    whole = CohortSpec().read(SHARED / "nhds2010.csv.gz")
    for name, ks in RUNS.items():
        present = [code for code in SUBSETS[name] if code in whole.codes]
        cohort = CohortSpec(having=tuple(present)).apply(whole)
        for k in ks:
            yield name, cohort, k
    heart = CohortSpec(having=("428",), drop_codes=("401",)).apply(whole)
    yield "heart failure without hypertension", heart, 5
    labels = assign(BernoulliMixture(5).fit(heart.matrix).mixture_, heart).labels
    for place in (0, 1):
        inside = heart.ids.filter(labels == place)
        yield f"inside its cluster {place + 1}", heart.among(inside, "inside"), 4
    yield "all records", CohortSpec(at_least=3).apply(whole), 8


def largest(values):
    """Return the largest of some numbers that are known, 0 of none."""
    known = values[~np.isnan(values)]
    return float(known.max()) if known.size else 0.0


def measured(cohort, k, secret):
    """Return the blank cells, the largest errors of shares, and the names that differ."""
    model = BernoulliMixture(k).fit(cohort.matrix).mixture_
    full = profile(model, cohort, secret=secret)
    shown = full.protected()
    sizes = np.array([cluster.size for cluster in full.clusters])
    listed = [full.codes.index(code) for code in shown.codes]
    blank = int(np.sum(full.counts >= SEEN)) - int(np.sum(full.counts[:, listed] >= SEEN))
    blank += int(np.sum(np.isnan(shown.counts) & (full.counts[:, listed] >= SEEN)))
    errors = [largest(np.abs(shown.prevalence - full.prevalence[:, listed])[sizes >= LARGE])]
    told = {one.name: one for one in shown.outcomes}
    for was, now in ((one, told[one.name]) for one in full.outcomes if one.name in told):
        if was.kind == "share":
            kept = [was.values.index(value) for value in now.values if value in was.values]
            same = [now.values.index(was.values[v]) for v in kept]
            blank += int(np.sum(np.isnan(now.counts[same]) & (was.counts[kept] >= SEEN)))
            moved = np.abs(now.estimate[same] - was.estimate[kept])[:, :-1]
            errors.append(largest(moved[:, sizes >= LARGE]))
    names = sum(
        one != two for one, two in zip(full.cluster_names, shown.cluster_names, strict=True)
    )
    return blank, max(errors), names / full.k


def main():
    """Print what protection leaves."""
    secret = own_secret()
    found = []
    for name, cohort, k in cohorts():
        found.append(measured(cohort, k, secret))
        blank, error, names = found[-1]
        print(
            f"{name}, {len(cohort):,} records, k={k}: {blank} blank, {error:.4f}, {names:.0%} names"
        )
    blank, error, names = zip(*found, strict=True)
    show(
        f"Protected counts, {len(found)} runs on NHDS",
        [
            Figure(f"cells of {SEEN} records or more that are blank", sum(blank), 0, False, ""),
            Figure(f"largest error of a share, {LARGE:,} records", max(error), 0.01, False, ""),
            Figure("share of clusters with another name", np.mean(names), 0.15, False, ""),
        ],
    )


if __name__ == "__main__":
    main()
