"""Protected profiles: what they keep, and that the attacks on small counts find nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import poisson

from comorb import BernoulliMixture
from comorb.errors import InputError
from comorb.model.mixture import Mixture
from comorb.profiles.assignment import assign
from comorb.profiles.build import accumulate_records, profile
from comorb.profiles.contents import Cells
from comorb.profiles.explain import model_from_counts
from comorb.profiles.noise import (
    MAX_HIDDEN_NOISE,
    MAX_NOISE,
    CountProtector,
    count_cells,
    hash_texts,
    record_keys,
)
from comorb.profiles.profile import Profile
from comorb.profiles.protection import MIN_CELL, protect_burden, protect_rules, protect_slices
from comorb.records.cohort import Cohort
from comorb.records.datasets import heart_failure
from tests.small_cohort import MODEL, SECRET, make_cohort, sampled

TARGETS = 200


def listed(full: Profile, shown: Profile) -> list[int]:
    """Return the places in the full profile of the codes that the protected one lists."""
    return [full.codes.index(code) for code in shown.codes]


@pytest.mark.parametrize("k", [1, 2, 5, 33])
def test_few_and_none_are_not_told_and_the_rest_is_near(k: int) -> None:
    full = sampled(k)
    shown = full.protected()
    own = listed(full, shown)
    assert (full.totals[own] >= MIN_CELL).all()
    assert shown.source.features == len(shown.codes) == len(own)
    assert set(np.flatnonzero(full.totals >= MIN_CELL + MAX_NOISE)) <= set(own)
    sizes = np.array([cluster.size for cluster in full.clusters])
    told = np.array([cluster.size or 0 for cluster in shown.clusters])
    assert np.all(np.abs(told - sizes)[told > 0] <= MAX_NOISE + MAX_HIDDEN_NOISE)
    was, now = full.counts[told > 0][:, own], shown.counts[told > 0]
    assert np.isnan(now[was < MIN_CELL]).all()
    assert not np.isnan(now[was >= MIN_CELL + MAX_NOISE + MAX_HIDDEN_NOISE]).any()
    assert np.nanmin(now, initial=MIN_CELL) >= MIN_CELL
    assert np.nanmax(np.abs(now - was)) <= MAX_NOISE + MAX_HIDDEN_NOISE
    assert np.isnan(shown.counts[told == 0]).all()
    assert not np.any(shown.low > shown.prevalence)
    assert not np.any(shown.high < shown.prevalence)


def test_counts_of_clusters_add_up_to_the_whole() -> None:
    full = sampled(4, n=9000)
    shown = full.protected()
    assert sum(cluster.size or 0 for cluster in shown.clusters) == shown.source.records
    own = listed(full, shown)
    plain = (~np.isnan(shown.counts)).all(axis=0) & (full.counts[:, own] > 30).all(axis=0)
    assert plain.sum() >= 3
    np.testing.assert_array_equal(shown.counts[:, plain].sum(axis=0), shown.totals[plain])


@pytest.mark.parametrize("weighted", [False, True])
def test_shares_of_large_clusters_are_within_a_point(weighted: bool) -> None:
    full = profile(MODEL, make_cohort(6000, weighted=weighted), secret=SECRET)
    shown = full.protected()
    told, own = ~np.isnan(shown.prevalence), listed(full, shown)
    near = 0.02 if weighted else 0.01
    assert np.abs(shown.prevalence - full.prevalence[:, own])[told].max() < near
    assert shown.universal == full.universal == (0,)
    for was, now in zip(full.outcomes, shown.outcomes, strict=True):
        if was.kind == "share":
            kept = [was.values.index(value) for value in now.values]
            assert np.nanmax(np.abs(now.estimate - was.estimate[kept])) < near


def test_what_all_have_is_told_like_what_all_but_few_have() -> None:
    cohort = make_cohort(4000)
    first = int(np.flatnonzero(assign(MODEL, cohort).labels == 0)[0])
    matrix = cohort.matrix.tolil()
    matrix[first, 0] = 0
    cohort = replace(cohort, matrix=matrix.tocsr())
    shown = profile(MODEL, cohort, secret=SECRET).protected()
    for place, cluster in enumerate(shown.clusters):
        assert cluster.size is not None
        assert cluster.size - shown.counts[place, 0] == MIN_CELL // 2
        assert 0.99 < shown.prevalence[place, 0] < 1
    assert shown.universal == (0,)


def test_the_document_holds_nothing_exact(full: Profile) -> None:
    shown = full.protected()
    plain = json.loads(shown.to_json())
    assert plain["source"]["digest"] == ""
    assert "cells" not in plain
    np.testing.assert_array_equal(plain["means"], plain["prevalence"])
    assert all(cluster["soft_size"] is None for cluster in plain["clusters"])
    assert [line["after"] for line in plain["source"]["lines"]] == [600]
    assert all(cluster["top"] == round(cluster["top"], 2) for cluster in plain["clusters"])


def test_a_protected_profile_stays_and_one_without_keys_is_refused(full: Profile) -> None:
    shown = full.protected(20)
    assert shown.protected(20) is shown
    with pytest.raises(InputError, match="protected below 20, and 11; protect the full one"):
        shown.protected(11)
    with pytest.raises(InputError, match="got one that is protected below 0, and 0"):
        full.protected(0)
    with pytest.raises(InputError, match="these clusters can't be protected"):
        profile(MODEL, make_cohort()).protected()
    bare = replace(full, outcomes=tuple(replace(one, cells=None) for one in full.outcomes))
    with pytest.raises(InputError, match="this outcome was counted without keys"):
        bare.protected()


def test_the_model_of_protected_counts_is_near_the_full_one(full: Profile) -> None:
    shown = full.protected()
    model = model_from_counts(shown)
    assert np.abs(model.means - full.means[:, listed(full, shown)]).max() < 0.1
    assert model.weights.sum() == pytest.approx(1)
    many = sampled(33)
    assert np.isfinite(model_from_counts(many.protected(100)).means).all()


# Attacks. Each looks for counts from 1 to 10 that are not told, and is held against guessing.


@cache
def clustered(k: int) -> tuple[Cohort, Mixture, Profile, np.ndarray]:
    cohort = heart_failure()
    model = BernoulliMixture(k).fit(cohort.matrix).mixture_
    labels = assign(model, cohort).labels
    return cohort, model, profile(model, cohort, outcomes=(), secret=SECRET), labels


def worlds(k: int, many: int) -> Iterator[tuple[Profile, Profile, Cells]]:
    """Yield the profile, and as it is protected under many secrets, with its keys."""
    cohort, _, full, labels = clustered(k)
    for number in range(many):
        keys = record_keys(cohort, bytes([number]) * 32)
        cells = count_cells(cohort, labels, k, keys, [])
        bare = replace(full, caveats=replace(full.caveats, pairs=()))
        yield full, replace(bare, cells=cells).protected(), cells


def guess(expected: float) -> int:
    """Return the likeliest count from 1 to 10 where so many are expected from the margins."""
    return 1 + int(np.argmax(poisson.pmf(np.arange(1, 11), np.clip(expected, 0.5, 30))))


def assert_no_better(attack: list[float], guesses: list[int], truth: list[float]) -> None:
    assert len(truth) >= TARGETS
    hits = np.sum(np.clip(np.round(attack), 1, 10) == truth)
    by_guess = np.sum(np.array(guesses) == truth)
    assert hits <= by_guess + 2 * np.sqrt(len(truth) * 0.2), (hits, by_guess, len(truth))


@pytest.mark.parametrize("k", [2, 5])
def test_totals_less_the_other_clusters_tell_no_small_count(k: int) -> None:
    attack, guesses, truth = [], [], []
    for full, shown, _ in worlds(k, 14):
        sizes = np.array([cluster.size for cluster in shown.clusters], dtype=float)
        for code, own in enumerate(listed(full, shown)):
            hidden = np.flatnonzero(np.isnan(shown.counts[:, code]))
            if hidden.size == 1 and 1 <= full.counts[hidden[0], own] < MIN_CELL:
                others = np.delete(shown.counts[:, code], hidden[0]).sum()
                attack.append(shown.totals[code] - others)
                share = sizes[hidden[0]] / shown.source.records
                guesses.append(guess(shown.totals[code] * share))
                truth.append(full.counts[hidden[0], own])
    assert_no_better(attack, guesses, truth)


def test_leaving_a_code_out_tells_no_small_total() -> None:
    cohort, _, full, _ = clustered(5)
    keys, columns = record_keys(cohort, SECRET), cohort.matrix.tocsc()
    every = float(len(cohort)), keys.sum(keepdims=True, dtype=np.uint64)
    attack, truth = [], []
    for code in np.flatnonzero((full.totals > 0) & (full.totals < MIN_CELL)):
        carriers = columns[:, [code]].nonzero()[0]
        rest = every[0] - carriers.size, every[1] - keys[carriers].sum(dtype=np.uint64)
        told = [
            CountProtector(MIN_CELL, key[0]).counts(np.array([count]), key)[0]
            for count, key in (every, rest)
        ]
        attack.append(told[0] - told[1])
        truth.append(float(carriers.size))
    times = -(-TARGETS // len(truth))
    commonest = int(np.bincount(np.array(truth, dtype=int)).argmax())
    assert_no_better(attack * times, [commonest] * len(truth) * times, truth * times)


def test_merging_clusters_tells_no_small_count() -> None:
    attack, guesses, truth = [], [], []
    for full, shown, keys in worlds(5, 3):
        for first, second in permutations(range(5), 2):
            own = listed(full, shown)
            united = full.counts[first, own] + full.counts[second, own]
            key = (keys.codes[first] + keys.codes[second])[own]
            both = CountProtector(MIN_CELL, keys.clusters[-1]).counts(united, key)
            one, true = shown.counts[first], full.counts[second, own]
            hidden = np.isnan(shown.counts[second]) & (true > 0) & (true < MIN_CELL)
            size = shown.clusters[second].size or 0
            for code in np.flatnonzero(hidden & (one >= MIN_CELL) & (both >= MIN_CELL)):
                attack.append(both[code] - one[code])
                guesses.append(guess(np.nan_to_num(shown.overall[code]) * size))
                truth.append(true[code])
    assert_no_better(attack, guesses, truth)


def test_three_way_differences_tell_no_small_intersection() -> None:
    cohort, _, full, _ = clustered(5)
    keys = record_keys(cohort, SECRET)
    common = full.common(40)
    dense = cohort.matrix[:, common].toarray().astype(bool)
    rng = np.random.default_rng(5)
    attack, guesses, truth = [], [], []

    def told(mask: np.ndarray) -> float:
        key = keys[mask].sum(dtype=np.uint64)
        protector = CountProtector(
            MIN_CELL, key
        )  # a set that a rule selects is a cohort of its own
        return float(protector.counts(np.array([float(mask.sum())]), np.array([key]))[0])

    while len(truth) < TARGETS:
        a, b, c = dense[:, rng.choice(len(common), 3, replace=False)].T
        wanted = a & b & c
        if not 1 <= wanted.sum() < MIN_CELL:
            continue
        parts = [a, b, c, a | b | c, a | b, a | c, b | c]
        one, two, three, every, ab, ac, bc = (told(part) for part in parts)
        attack.append(every - ab - ac - bc + one + two + three)
        guesses.append(guess(one * two * three / len(cohort) ** 2))
        truth.append(float(wanted.sum()))
    assert not np.isnan(attack).any()
    assert_no_better(attack, guesses, truth)


def test_two_uploads_of_the_same_records_have_the_same_noise() -> None:
    cohort, model, _, _ = clustered(2)
    order = np.random.default_rng(3).permutation(len(cohort))
    other = replace(
        cohort,
        matrix=cohort.matrix[order],
        ids=cohort.ids.take(order),
        covariates=cohort.covariates.take(order),
    )
    one, two = (profile(model, each, secret=SECRET).protected() for each in (cohort, other))
    np.testing.assert_array_equal(one.counts, two.counts)
    assert [c.size for c in one.clusters] == [c.size for c in two.clusters]


def test_ids_of_ones_own_choice_tell_nothing_of_other_keys() -> None:
    keys = hash_texts((f"mine-{i}" for i in range(5000)), SECRET)
    bits = (keys[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.05


MIN_SHOWN = 11


def with_columns(n: int = 900, seed: int = 3) -> Cohort:
    cohort = make_cohort(n, seed=seed)
    rng = np.random.default_rng(seed)
    table = cohort.covariates
    table = table.append_column("los", pa.array(rng.integers(0, 20, n)))
    table = table.append_column("cost", pa.array(rng.lognormal(7, 1.5, n)))
    table = table.append_column("readmitted", pa.array(rng.random(n) < 0.012))
    rare = np.where(rng.random(n) < 0.008, "rare", np.where(rng.random(n) < 0.5, "a", "b"))
    table = table.append_column("site", pa.array(rare))
    table = table.append_column("person", pa.array([f"p{i // 3}" for i in range(n)]))
    return replace(cohort, covariates=table, patient="person")


@pytest.fixture(scope="module")
def whole() -> Profile:
    return profile(MODEL, with_columns(), secret=SECRET)


def told(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)]


def test_no_count_from_one_to_ten_is_told(whole: Profile) -> None:
    shown = whole.protected(MIN_SHOWN)
    assert shown.burden is not None
    assert whole.burden is not None
    counts = [shown.burden.records, shown.burden.known, shown.burden.rate_known]
    counts += [shown.burden.rate_counts, shown.burden.patients]
    counts += [one.counts for one in shown.slices]
    figures = [[one.matched, one.right, one.members, one.review] for one in shown.rules]
    every = np.concatenate([told(np.ravel(one)) for one in (*counts, np.array(figures))])
    assert not (every < MIN_SHOWN).any()
    site = next(one for one in whole.slices if one.by == "site")
    assert ((site.counts > 0) & (site.counts < MIN_SHOWN)).any()
    assert ((whole.burden.rate_counts > 0) & (whole.burden.rate_counts < MIN_SHOWN)).any()


def test_shares_are_those_of_counts_that_are_told(whole: Profile) -> None:
    for one in whole.protected(MIN_SHOWN).slices:
        parts, total = one.counts[:, :-1], one.counts[:, -1:]
        assert np.isnan(one.share[np.isnan(parts)]).all()
        some = ~np.isnan(parts)
        assert one.share[some] == pytest.approx((parts / total)[some], abs=2e-4)
        assert np.isnan(one.standardised[np.isnan(one.share)]).all()


def test_places_of_few_records_are_left_out(whole: Profile) -> None:
    site = next(one for one in whole.protected(MIN_SHOWN).slices if one.by == "site")
    assert site.labels == ("a", "b")
    assert site.counts.shape == (2, 3)
    assert site.notes == ()


def test_totals_move_by_what_the_largest_record_adds(whole: Profile) -> None:
    full, shown = whole.burden, whole.protected(MIN_SHOWN).burden
    assert full is not None
    assert full.cells is not None
    assert shown is not None
    moved = np.abs(shown.totals - full.totals)
    assert (moved <= 10.5 * full.cells.largest[:, -1:] + 1e-6).all()
    assert (moved > 0).any()
    assert shown.shares[:, -1].tolist() == [1.0, 1.0]


def test_one_patient_more_or_less_is_lost_in_the_noise() -> None:
    """The difference of two totals that differ by one record says nothing of that record."""
    cohort = with_columns()
    order = np.argsort(-np.asarray(cohort.covariates["cost"]))
    target = int(order[0])
    rest = np.delete(np.arange(len(cohort)), target)
    without = cohort.among(cohort.ids.take(pa.array(rest)), "one left out")
    true = float(cohort.covariates["cost"][target].as_py())
    labels, guesses = np.arange(len(cohort)) % 2, []
    for turn in range(200):
        secret = bytes([turn]) * 32
        full = (
            accumulate_records(one, own, 2, secret).burden(())
            for one, own in ((cohort, labels), (without, labels[rest]))
        )
        totals = [protect_burden(one, MIN_SHOWN).totals[1, -1] for one in full if one is not None]
        guesses.append(totals[0] - totals[1])
    assert np.std(guesses) > 2 * true


def test_a_rule_s_figures_follow_from_told_counts(whole: Profile) -> None:
    for full, shown in zip(whole.rules, whole.protected(MIN_SHOWN).rules, strict=True):
        assert shown.precision == pytest.approx(full.precision, abs=0.06)
        codes = [whole.codes[one.code] for one in full.conditions]
        assert [whole.protected(MIN_SHOWN).codes[one.code] for one in shown.conditions] == codes


def test_parts_without_keys_are_refused(whole: Profile) -> None:
    assert whole.burden is not None
    for part, protect in (
        (whole.burden, protect_burden),
        (whole.slices[0], protect_slices),
    ):
        with pytest.raises(InputError, match="counted without keys; fit the clusters again"):
            protect(replace(part, cells=None), MIN_SHOWN)  # type: ignore[type-var, operator]
    with pytest.raises(InputError, match="counted without keys; fit the clusters again"):
        protect_rules([replace(whole.rules[0], cells=None)], MIN_SHOWN)
