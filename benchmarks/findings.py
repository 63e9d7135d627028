"""Sentences on what stands out: how often chance makes one, and how often a difference does.

``python -m benchmarks findings``: 400 runs with all outcomes permuted among the records, 400 with
deaths and readmissions alone permuted, and 100 for each planted difference. Every second run is
one of heart failure in the discharge survey of 2010 (10 groups), the others are 1,500 claims of
SynPUF (12 groups); each run is looked at in full and protected.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from benchmarks.real import SHARED
from benchmarks.table import Figure, show
from comorb import BernoulliMixture
from comorb.profiles.assignment import assign
from comorb.profiles.build import accumulate_records
from comorb.profiles.build import profile as build_profile
from comorb.profiles.outcomes import summarise
from comorb.records.layouts.layout import Layout
from comorb.records.spec import CohortSpec
from comorb.views.findings import findings
from comorb.views.words import ENGLISH

RUNS, PLANTED_RUNS, CLAIMS = 400, 100, 1500
COLUMNS = ("age", "los", "cost", "died", "readmitted")
RATE = 0.1  # of readmissions in the groups without a planted difference
PLANTED = (0.13, 0.16, 0.2, 0.3)


class Setting:
    """Records and their groups, whose outcomes can be exchanged for others."""

    def __init__(self, cohort, k):
        model = BernoulliMixture(k).fit(cohort.matrix).mixture_
        names = [name for name in COLUMNS if name in cohort.covariates.column_names]
        self.k, self.secret = k, bytes(32)
        self.cohort = replace(cohort, covariates=cohort.covariates.select(names))
        self.labels = assign(model, cohort).labels
        self.shown = build_profile(model, self.cohort, secret=self.secret)

    def tell(self, table, protected):
        """Return the findings of a table of outcomes."""
        cohort = replace(self.cohort, covariates=table)
        n = len(self.labels)
        weights = np.ones(n) if cohort.weights is None else cohort.weights
        keys = np.random.default_rng(n).integers(2**63, size=n, dtype=np.uint64)
        made = replace(
            self.shown,
            outcomes=summarise(table, self.labels, self.k, weights, keys=keys),
            burden=accumulate_records(cohort, self.labels, self.k, self.secret).burden([]),
            slices=(),
            rules=(),
        )
        return findings(made.protected() if protected else made, ENGLISH)

    def deal(self, rng, names):
        """Return the outcomes with some of them permuted among the records, together."""
        table, order = self.cohort.covariates, rng.permutation(len(self.labels))
        columns = {
            name: table[name].take(order) if name in names else table[name]
            for name in table.column_names
        }
        return pa.table(columns)


def settings():
    """Return the settings: a survey with weights, and few claims."""
    survey = CohortSpec(layout=Layout(weight="survey_weight")).read(SHARED / "nhds2010.csv.gz")
    heart = CohortSpec(having=("428",), drop_codes=("428",)).apply(survey)
    claims = CohortSpec().read(SHARED / "synpuf_inpatient.csv.gz")
    few = np.random.default_rng(1).choice(len(claims), CLAIMS, replace=False)
    few = claims.among(claims.ids.take(pa.array(np.sort(few))), "some")
    return [Setting(heart, 10), Setting(few, 12)]


def is_false(setting, finding, names):
    """Return whether a finding on a dealt outcome names a group that has more than others.

    That the largest group uses most is true of dealt amounts, too.
    """
    largest = max(setting.shown.clusters, key=lambda one: one.share).number
    close = finding.text.startswith("Too close")
    used_most = "uses most" in finding.text or "costs most" in finding.text
    right = close or (used_most and finding.clusters == (largest,))
    return bool(finding.clusters) and finding.about in names and not right


def false_runs(every, names, protected):
    """Return the share of runs with a false sentence."""
    found = 0
    for run in range(RUNS):
        setting = every[run % len(every)]
        table = setting.deal(np.random.default_rng(run), names)
        found += any(is_false(setting, one, names) for one in setting.tell(table, protected))
    return found / RUNS


def power(setting, rate):
    """Return how often a group of 5% of the records with a higher rate is named, and others are."""
    sizes = np.bincount(setting.labels, minlength=setting.k) / len(setting.labels)
    place = int(np.argmin(np.abs(sizes - 0.05)))
    number, named, wrong = setting.shown.numbers[place], 0, 0
    for run in range(PLANTED_RUNS):
        rng = np.random.default_rng(run)
        chance = np.where(setting.labels == place, rate, RATE)
        table = setting.cohort.covariates
        if "readmitted" in table.column_names:
            table = table.drop_columns("readmitted")
        table = table.append_column("readmitted", pa.array(rng.random(chance.size) < chance))
        told = [one.clusters for one in setting.tell(table, False) if one.about == "readmitted"]
        named += any(number in clusters for clusters in told)
        wrong += any(set(clusters) - {number} for clusters in told)
    share = setting.shown.clusters[place].size
    return named / PLANTED_RUNS, wrong / PLANTED_RUNS, share


def main():
    """Print how often chance is told, and differences are."""
    every = settings()
    figures = []
    for names in (COLUMNS, ("died", "readmitted")):
        for protected in (False, True):
            what = "all outcomes" if names == COLUMNS else "deaths and readmissions"
            title = f"{what} permuted, {'protected' if protected else 'full'}: a false sentence"
            share = 100 * false_runs(every, names, protected)
            figures.append(Figure(title, share, 5, False, "%"))
    for setting in every:
        for rate in PLANTED:
            named, wrong, size = power(setting, rate)
            title = f"{100 * rate:.0f}% in a group of {size} against {100 * RATE:.0f}%"
            figures.append(Figure(f"{title}: named", 100 * named, 0, True, "%"))
            figures.append(Figure(f"{title}: another is", 100 * wrong, 5, False, "%"))
    show("Findings", figures)


if __name__ == "__main__":
    main()
