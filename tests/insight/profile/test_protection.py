"""Protected profiles: what they keep, and that the attacks on small counts find nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import poisson

from comorb import BernoulliMixture
from comorb.errors import InputError
from comorb.insight.profile.assignment import assign
from comorb.insight.profile.cells import count_cells
from comorb.insight.profile.contents import Cells
from comorb.insight.profile.feature_models import told_model
from comorb.insight.profile.keys import keys_of, record_keys
from comorb.insight.profile.noise import MOST, protected_counts
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.profiling import profile
from comorb.insight.profile.protection import LEAST
from comorb.model.mixture import Mixture
from comorb.records.cohort import Cohort
from comorb.records.datasets import heart_failure
from tests.insight.conftest import MODEL, SECRET, make_cohort, sampled

TARGETS = 200


@pytest.mark.parametrize("k", [1, 2, 5, 33])
def test_zero_stays_few_are_not_told_and_the_rest_is_near(k: int) -> None:
    full = sampled(k)
    shown = full.protected()
    sizes = np.array([cluster.size for cluster in full.clusters])
    told = np.array([cluster.size or 0 for cluster in shown.clusters])
    assert np.all(np.abs(told - sizes)[told > 0] <= MOST)
    for was, now in ((full.counts[told > 0], shown.counts[told > 0]), (full.totals, shown.totals)):
        np.testing.assert_array_equal(now == 0, was == 0)
        assert np.isnan(now[(was > 0) & (was < LEAST)]).all()
        assert not np.isnan(now[was >= LEAST + MOST]).any()
        assert np.nanmin(now[was >= LEAST]) >= LEAST
    assert np.isnan(shown.counts[told == 0]).all()
    for cluster, kept in zip(shown.clusters, full.clusters, strict=True):
        assert cluster.name == (kept.name if cluster.size else f"Cluster {cluster.number}")
    for place in np.flatnonzero(told):
        seen = [i for i in full.top(place, n=30) if not np.isnan(shown.low[place, i])]
        assert shown.top(place).tolist() == [i for i in seen if shown.low[place, i] >= 0.02][:10]
    for ranked in shown.ranks:
        for place, codes in enumerate(ranked):
            assert not np.isnan(shown.counts[place][list(codes)]).any()
    assert not np.any(shown.low > shown.prevalence)
    assert not np.any(shown.high < shown.prevalence)


@pytest.mark.parametrize("weighted", [False, True])
def test_shares_of_large_clusters_are_within_a_point(weighted: bool) -> None:
    full = profile(MODEL, make_cohort(6000, weighted=weighted), secret=SECRET)
    shown = full.protected()
    told = ~np.isnan(shown.prevalence)
    assert np.abs(shown.prevalence - full.prevalence)[told].max() < 0.01
    assert shown.universal == full.universal == (0,)
    for was, now in zip(full.outcomes, shown.outcomes, strict=True):
        if was.kind == "share":
            assert np.nanmax(np.abs(now.estimate - was.estimate)) < 0.01


def test_what_almost_all_have_is_told_as_that() -> None:
    cohort = make_cohort(4000)
    first = int(np.flatnonzero(assign(MODEL, cohort).labels == 0)[0])
    matrix = cohort.matrix.tolil()
    matrix[first, 0] = 0
    cohort = replace(cohort, matrix=matrix.tocsr())
    shown = profile(MODEL, cohort, secret=SECRET).protected()
    size = shown.clusters[0].size
    assert size is not None
    assert 1 <= size - shown.counts[0, 0] <= 10
    assert 0.99 < shown.prevalence[0, 0] < 1
    assert shown.prevalence[1, 0] == 1


def test_the_document_holds_nothing_exact(full: Profile) -> None:
    shown = full.protected()
    plain = json.loads(shown.to_json())
    assert plain["source"]["digest"] == ""
    assert "cells" not in plain
    np.testing.assert_array_equal(plain["means"], plain["prevalence"])
    assert all(cluster["soft_size"] is None for cluster in plain["clusters"])
    assert plain["source"]["lines"][0]["after"] == 600
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
    model = told_model(full.protected())
    assert np.abs(model.means - full.means).max() < 0.1
    assert model.weights.sum() == pytest.approx(1)
    many = sampled(33)
    assert np.isfinite(told_model(many.protected(100)).means).all()


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
        for code in range(len(full.codes)):
            hidden = np.flatnonzero(np.isnan(shown.counts[:, code]))
            if hidden.size == 1 and full.counts[hidden[0], code] < LEAST <= shown.totals[code]:
                others = np.delete(shown.counts[:, code], hidden[0]).sum()
                attack.append(shown.totals[code] - others)
                share = sizes[hidden[0]] / shown.source.records
                guesses.append(guess(shown.totals[code] * share))
                truth.append(full.counts[hidden[0], code])
    assert_no_better(attack, guesses, truth)


def test_leaving_a_code_out_tells_no_small_total() -> None:
    cohort, _, full, _ = clustered(5)
    keys, columns = record_keys(cohort, SECRET), cohort.matrix.tocsc()
    every = np.array([float(len(cohort))]), np.array([keys.sum(dtype=np.uint64)])
    attack, truth = [], []
    for code in np.flatnonzero((full.totals > 0) & (full.totals < LEAST)):
        carriers = columns[:, [code]].nonzero()[0]
        rest = every[0] - carriers.size, every[1] - keys[carriers].sum(dtype=np.uint64)
        told = [protected_counts(count, key, LEAST)[0] for count, key in (every, rest)]
        attack.append(told[0] - told[1])
        truth.append(float(carriers.size))
    times = -(-TARGETS // len(truth))
    commonest = int(np.bincount(np.array(truth, dtype=int)).argmax())
    assert_no_better(attack * times, [commonest] * len(truth) * times, truth * times)


def test_merging_clusters_tells_no_small_count() -> None:
    attack, guesses, truth = [], [], []
    for full, shown, keys in worlds(5, 3):
        for first, second in permutations(range(5), 2):
            united = full.counts[first] + full.counts[second]
            both = protected_counts(united, keys.codes[first] + keys.codes[second], LEAST)
            one, true = shown.counts[first], full.counts[second]
            hidden = np.isnan(shown.counts[second]) & (true < LEAST)
            size = shown.clusters[second].size or 0
            for code in np.flatnonzero(hidden & (one >= LEAST) & (both >= LEAST)):
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
        key = np.array([keys[mask].sum(dtype=np.uint64)])
        return float(protected_counts(np.array([float(mask.sum())]), key, LEAST)[0])

    while len(truth) < TARGETS:
        a, b, c = dense[:, rng.choice(len(common), 3, replace=False)].T
        wanted = a & b & c
        if not 1 <= wanted.sum() < LEAST:
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
    keys = keys_of((f"mine-{i}" for i in range(5000)), SECRET)
    bits = (keys[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.05
