"""Attacks on protected profiles: intervals solved for counts, noise averaged, lists subtracted."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from comorb.model.mixture import Mixture
from comorb.profiles import protection
from comorb.profiles.build import profile
from comorb.profiles.contents import Outcome
from comorb.profiles.intervals import wilson_interval
from comorb.profiles.noise import CountProtector
from comorb.profiles.profile import Profile
from comorb.records.cohort import Cohort
from comorb.records.ledger import Ledger
from comorb.views.findings import page_json

SECRET = bytes(range(7, 39))
LEAST, CODES = 11, 70


@cache
def simulated(n: int = 900, seed: int = 4) -> Cohort:
    """Records of three kinds, with common and very rare codes, and columns beside them."""
    rng = np.random.default_rng(seed)
    matrix, _ = mixture(3, seed).sample(n, seed)
    columns = {
        "sex": pa.array(np.where(rng.random(n) < 0.45, "female", "male")),
        "age": pa.array(rng.integers(20, 95, n)),
        "site": pa.array(np.array(["North", "South", "East", "West"])[rng.integers(0, 4, n)]),
        "died": pa.array(rng.random(n) < 0.07),
        "los": pa.array(rng.integers(1, 30, n)),
        "discharge": pa.array(
            np.array(["home", "ward", "nursing home"])[rng.choice(3, n, p=[0.6, 0.3, 0.1])]
        ),
    }
    return Cohort(
        matrix=matrix,
        ids=pa.array([f"r{i}" for i in range(n)]),
        codes=tuple(f"D{i:02d}" for i in range(CODES)),
        names=tuple(f"Disease {i}" for i in range(CODES)),
        system="opaque",
        level="category",
        covariates=pa.table(columns),
        ledger=Ledger.start(n, CODES),
    )


def mixture(k: int, seed: int) -> Mixture:
    rng = np.random.default_rng((k, seed))
    common = np.geomspace(0.5, 0.004, CODES)
    means = np.clip(common * rng.lognormal(0, 0.8, (k, CODES)), 0.001, 0.9)
    return Mixture(rng.dirichlet(np.full(k, 8.0)), means)


def without(cohort: Cohort, rows: list[int]) -> Cohort:
    kept = np.delete(np.arange(len(cohort)), rows)
    return cohort.among(cohort.ids.take(pa.array(kept)), "left out")


def solved(share: float, low: float, high: float, part: float, whole: float) -> tuple[int, int]:
    """Return the count and the number of records whose interval has these ends, if shifted."""
    n, c = np.meshgrid(np.arange(whole - 6, whole + 7), np.arange(part - 6, part + 7))
    inside = (c >= 0) & (c <= n) & (n > 0)
    p = np.where(inside, c / np.maximum(n, 1), 0)
    ends = wilson_interval(p, n)
    miss = np.abs(p - ends[0] - (share - low)) + np.abs(ends[1] - p - (high - share))
    best = np.argmin(np.where(inside, miss, np.inf))
    return int(c.ravel()[best]), int(n.ravel()[best])


def intervals(full: Profile, shown: Profile) -> list[tuple[tuple[float, ...], tuple[int, int]]]:
    """Return told shares with their ends and counts, and the true count and number."""
    found = []
    for was, now in zip(full.slices, shown.slices, strict=True):
        for row, label in enumerate(now.labels):
            true = was.counts[was.labels.index(label)]
            for place in range(full.k):
                figures = (*(one[row, place] for one in (now.share, now.low, now.high)),)
                told = (now.counts[row, place], now.counts[row, -1])
                found.append(((*figures, *told), (int(true[place]), int(true[-1]))))
    for one in shown.outcomes:
        was = next(own for own in full.outcomes if own.name == one.name)
        for row, value in enumerate(one.values if one.kind == "share" else ()):
            true = was.counts[was.values.index(value)]
            for place in range(full.k + 1):
                figures = tuple(a[row, place] for a in (one.estimate, one.low, one.high))
                told = (one.counts[row, place], one.known[place])
                found.append(((*figures, *told), (int(true[place]), int(was.known[place]))))
    assert full.burden is not None
    assert shown.burden is not None
    for place in range(full.k + 1):
        burden = shown.burden
        figures = tuple(a[0, place] for a in (burden.rate, burden.low, burden.high))
        told = (burden.rate_counts[0, place], burden.rate_known[0, place])
        found.append(
            (
                (*figures, *told),
                (int(full.burden.rate_counts[0, place]), int(full.burden.rate_known[0, place])),
            )
        )
    return [one for one in found if not np.isnan(one[0]).any()]


def test_intervals_can_not_be_solved_for_counts() -> None:
    cohort = simulated()
    full = profile(mixture(3, 4), cohort, secret=SECRET)
    cells = intervals(full, full.protected())
    right = sum(solved(*told) == true for told, true in cells)
    guessed = sum((int(told[3]), int(told[4])) == true for told, true in cells)
    assert len(cells) >= 60
    assert right <= guessed + 2, (right, guessed, len(cells))
    assert guessed < 0.15 * len(cells)


def test_other_numbers_of_clusters_and_codes_left_out_are_no_fresh_look() -> None:
    cohort = simulated(500)
    assert cohort.codes
    sizes, totals, whole = set(), set(), set()
    for k in (2, 3, 4):
        for dropped in ((), ("D03",), ("D03", "D10"), ("D20",)):
            model = mixture(k, 4)
            kept = [i for i, code in enumerate(cohort.codes) if code not in dropped]
            own = Mixture(model.weights, model.means[:, kept])
            left = cohort.drop_codes(*dropped) if dropped else cohort
            shown = profile(own, left, outcomes=["died", "los"], secret=SECRET).protected()
            assert all(cluster.size for cluster in shown.clusters)
            assert shown.burden is not None
            for one in (shown.outcomes[0].known, shown.burden.records, shown.burden.totals[0]):
                whole.add(float(one[-1]))
                assert one[:-1].sum() == pytest.approx(one[-1], abs=50)
            sizes.add(sum(cluster.size or 0 for cluster in shown.clusters))
            totals.add(tuple(shown.totals[[shown.codes.index(c) for c in ("D00", "D01", "D02")]]))
            counts = shown.counts[:, shown.codes.index("D00")]
            if not np.isnan(counts).any() and (counts < 0.9 * full_sizes(shown)).all():
                totals.add((counts.sum(), *shown.totals[1:3]))
    assert len(sizes) == 1
    assert len(totals) == 1
    assert len(whole) == 2


def full_sizes(shown: Profile) -> np.ndarray:
    return np.array([float(cluster.size or 0) for cluster in shown.clusters])


def test_two_cohorts_that_differ_by_one_patient_do_not_tell_of_that_patient() -> None:
    """Neither codes that are listed once alone, nor counts that changed, are that patient's."""
    cohort, model = simulated(600, 9), mixture(2, 9)

    def shown(one: Cohort) -> dict[str, float]:
        own = Mixture(model.weights, model.means[:, [cohort.codes.index(c) for c in one.codes]])
        told = profile(own, one, outcomes=(), secret=SECRET).protected()
        return dict(zip(told.codes, np.nan_to_num(told.totals).tolist(), strict=True))

    dense = cohort.matrix.toarray().astype(bool)
    common = dense.mean(axis=0)
    every = shown(cohort)
    claimed, chance, listed = [], [], []
    for patient in range(12):
        other = shown(without(cohort, [patient]))
        for place, code in enumerate(cohort.codes):
            if (code in every) != (code in other):
                listed.append(bool(dense[patient, place]))
            if every.get(code) != other.get(code):
                claimed.append(bool(dense[patient, place]))
                chance.append(common[place])
    assert np.mean(claimed) < np.mean(chance) + 2 * np.sqrt(0.25 / len(claimed))
    assert not listed or np.mean(listed) < 0.5
    assert len(claimed) > 200
    assert min(every.values()) >= LEAST


# The same protected counts give the same bytes, whatever the true ones are.

RELEASED = (
    (CountProtector, ("counts", "table", "fit_within", "weight_ratio")),
    (protection, ("_information",)),
    (protection, ("_noisy_means",)),
    (protection, ("_noisy_totals",)),
)


def moved(profile_: Profile, rng: np.random.Generator) -> Profile:
    """Return a profile with other true counts, and the shares and intervals that these give."""

    def shift(counts: np.ndarray) -> np.ndarray:
        return np.where(counts >= 20, counts + rng.integers(-3, 4, counts.shape), counts)

    def ends(counts: np.ndarray, whole: np.ndarray) -> dict[str, np.ndarray]:
        share = np.clip(counts / np.maximum(whole, 1), 0, 1)
        return dict(
            zip(("share", "low", "high"), (share, *wilson_interval(share, whole)), strict=True)
        )

    def outcome(one: Outcome) -> Outcome:
        if one.kind == "number":
            figures = (figure * rng.uniform(0.9, 1.1) for figure in (one.estimate, one.low))
            return replace(one, **dict(zip(("estimate", "low"), figures, strict=True)))
        counts = shift(one.counts)
        made = ends(counts, one.known)
        return replace(
            one, counts=counts, estimate=made["share"], low=made["low"], high=made["high"]
        )

    counts = shift(profile_.counts)
    sizes = np.array([[float(cluster.size or 0)] for cluster in profile_.clusters])
    made = ends(counts, sizes)
    burden = profile_.burden
    assert burden is not None
    yes = shift(burden.rate_counts)
    rates = ends(yes, burden.rate_known)
    rows = rng.random((sum(profile_.heatmap.lines), len(profile_.heatmap.columns))) < 0.3
    slices = []
    for one in profile_.slices:
        parts = shift(one.counts[:, :-1])
        whole = one.counts[:, -1:]
        slices.append(
            replace(
                one,
                counts=np.hstack([parts, whole]),
                standardised=one.standardised * 0.9,
                **ends(parts, whole),
            )
        )
    other = replace(
        profile_,
        counts=counts,
        prevalence=made["share"],
        low=made["low"],
        high=made["high"],
        means=made["share"] * 0.97,
        totals=shift(profile_.totals),
        outcomes=tuple(outcome(one) for one in profile_.outcomes),
        burden=replace(
            burden, rate_counts=yes, rate=rates["share"], low=rates["low"], high=rates["high"]
        ),
        slices=tuple(slices),
        rules=tuple(replace(one, right=one.right - 1, precision=0.5) for one in profile_.rules),
        heatmap=replace(
            profile_.heatmap, bits=base64.b64encode(np.packbits(rows, axis=1)).decode("ascii")
        ),
    )
    return other.renamed(dict(enumerate(other.automatic_names())))


def recorded(answers: list[Any], method: Callable[..., Any]) -> Callable[..., Any]:
    def record(*given: Any) -> Any:
        answers.append(method(*given))
        return answers[-1]

    return record


def test_the_same_protected_counts_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    full = profile(mixture(3, 4), simulated(), secret=SECRET)
    other = moved(full, np.random.default_rng(2))
    assert page_json(full.protected()) != page_json(other.protected())
    answers: list[Any] = []
    with monkeypatch.context() as patched:
        for owner, names in RELEASED:
            for name in names:
                patched.setattr(owner, name, recorded(answers, getattr(owner, name)))
        first = page_json(full.protected())
    replay = iter(answers)
    for owner, names in RELEASED:
        for name in names:
            monkeypatch.setattr(owner, name, lambda *_: next(replay))
    assert page_json(other.protected()) == first
    assert next(replay, None) is None
