"""Suppression: nothing small is shown, and nothing small follows by subtraction."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, linprog, milp

from comorb.errors import InputError
from comorb.insight.profile.contents import Outcome
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.suppression import (
    hide,
    hide_outcome,
    hide_table,
    merge_lines,
    round_table,
)
from comorb.records.ledger import Line
from tests.insight.conftest import sampled

LEAST = 11


def small(counts: np.ndarray) -> bool:
    return bool(np.any((counts > 0) & (counts < LEAST)))


@pytest.mark.parametrize("seed", range(60))
def test_what_is_shown_and_what_follows_from_it_is_never_small(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 7))
    table = rng.poisson(rng.choice([0.5, 5, 20, 200], (k, 3))).astype(float)
    hidden, total = hide(table, rng.random(k) < 0.1, LEAST)
    if total:
        assert hidden.all()
        assert small(table.sum(axis=0))
        return
    assert not small(table[~hidden])
    rest = table.sum(axis=0) - table[~hidden].sum(axis=0)
    assert not small(rest)
    assert hidden.sum() != 1 or k == 1


def test_two_small_counts_with_a_small_sum_need_a_third() -> None:
    table = np.array([[3.0, 97], [4, 96], [30, 70], [500, 500]])
    hidden, _ = hide(table, np.zeros(4, dtype=bool), LEAST)
    assert hidden.tolist() == [True, True, True, False]


def test_those_without_a_code_count_too() -> None:
    table = np.array([[98.0, 2], [60, 40], [50, 50]])
    assert hide(table, np.zeros(3, dtype=bool), LEAST)[0].sum() == 2


@pytest.mark.parametrize("k", [2, 5, 33])
def test_a_suppressed_profile_holds_no_small_count(k: int) -> None:
    full = sampled(k)
    shown = full.suppressed(LEAST)
    sizes = np.array([np.nan if c.size is None else c.size for c in shown.clusters])
    kept = ~np.isnan(sizes)
    assert not small(sizes[kept])
    assert not small(np.array([full.source.records - sizes[kept].sum()]))
    for counts, total, whole in zip(shown.counts.T, shown.totals, full.counts.T, strict=True):
        visible = ~np.isnan(counts)
        assert not visible[~kept].any()
        if np.isnan(total):
            assert not visible.any()
            continue
        np.testing.assert_array_equal(counts[visible], whole[visible])
        assert not small(counts[visible])
        assert not small((sizes - counts)[visible])
        assert not small(np.array([total - counts[visible].sum()]))
    hidden = np.isnan(shown.counts)
    for other in (shown.prevalence, shown.means):
        np.testing.assert_array_equal(np.isnan(other), hidden)
    for other in (shown.overall, shown.expected):
        np.testing.assert_array_equal(np.isnan(other), np.isnan(shown.totals))


@pytest.mark.parametrize("k", [5, 33])
def test_the_heatmap_of_a_suppressed_profile_gives_no_small_count(k: int) -> None:
    full = sampled(k)
    shown = full.suppressed(LEAST)
    assert shown.heatmap.per_line >= LEAST
    rows, start = shown.heatmap.rows(), 0
    for j, lines in enumerate(shown.heatmap.lines):
        dots = rows[start : start + lines].sum(axis=0)
        assert not dots[np.isnan(shown.counts[j, list(shown.heatmap.columns)])].any()
        start += lines


def test_hidden_clusters_lose_their_names_and_their_numbers() -> None:
    full = sampled(33).renamed({0: "Mine"})
    shown = full.suppressed(60)
    hidden = [j for j, c in enumerate(shown.clusters) if c.size is None]
    assert hidden
    for j in hidden:
        cluster = shown.clusters[j]
        assert cluster.name == f"Cluster {j + 1}"
        assert (cluster.share, cluster.soft_share, cluster.soft_size, cluster.top) == (None,) * 4
        assert np.isnan(shown.weights[j])
        assert shown.heatmap.lines[j] == 0
    assert 0 in hidden or shown.clusters[0].name == "Mine"


def test_outcomes_are_hidden_with_their_complements() -> None:
    counts = np.array([[4.0, 40, 50, 94]])
    known = np.array([100.0, 100, 100, 300])
    numbers = np.array([[0.04, 0.4, 0.5, 0.313]])
    outcome = Outcome("died", "share", ("yes",), known, counts, numbers, numbers, numbers)
    shown = hide_outcome(outcome, known[:-1], np.zeros(3, dtype=bool), LEAST)
    assert np.isnan(shown.estimate[0]).tolist() == [True, True, False, False]
    assert np.isnan(shown.counts[0]).tolist() == [True, True, False, False]
    few = hide_outcome(outcome, known[:-1] + np.array([3, 0, 0]), np.zeros(3, dtype=bool), LEAST)
    assert np.isnan(few.estimate).all(), "three records without a value are few in all"


def test_one_rare_category_leaves_the_common_ones_to_be_seen() -> None:
    rows = [[600.0, 500, 400], [300, 80, 400], [60, 48, 70], [40, 5, 130]]
    counts = np.column_stack([rows, np.sum(rows, axis=1)])
    known = counts.sum(axis=0)
    shares = counts / known
    names = ("home", "care", "hospital", "against advice")
    outcome = Outcome("discharge", "share", names, known, counts, shares, shares, shares)
    shown = hide_outcome(outcome, known[:-1], np.zeros(3, dtype=bool), LEAST)
    hidden = np.isnan(shown.estimate)
    assert hidden.astype(int).tolist() == [
        [0, 0, 0, 0],
        [0, 0, 0, 0],
        [1, 1, 0, 0],
        [1, 1, 0, 0],
    ]
    np.testing.assert_array_equal(np.isnan(shown.counts), hidden)
    missing = hide_outcome(outcome, known[:-1] + np.array([4, 40, 0]), np.zeros(3, bool), LEAST)
    assert np.isnan(missing.estimate[:, 0]).all(), "a share and its count tell the four missing"


@pytest.mark.parametrize("seed", range(60))
def test_no_small_cell_of_a_table_follows_from_its_margins(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 6, 2))
    table = rng.poisson(rng.choice([0.5, 5, 20, 200], shape)).astype(float)
    hidden = hide_table(table, LEAST)
    assert not small(table[~hidden])
    if hidden.all():
        return
    for axis in (0, 1):
        assert not small((table * hidden).sum(axis=axis))
    for place in np.argwhere(hidden & (table > 0) & (table < LEAST)):
        spans = []
        for sign in (1, -1):
            aim = np.zeros(shape)
            aim[tuple(place)] = sign
            sums = np.array(
                [(np.arange(shape[0]) == i)[:, None] & hidden for i in range(shape[0])]
                + [(np.arange(shape[1]) == j)[None, :] & hidden for j in range(shape[1])]
            ).reshape(sum(shape), -1)
            found = linprog(aim.ravel(), A_eq=sums, b_eq=sums @ table.ravel(), bounds=(0, None))
            spans.append(abs(found.fun))
        assert spans[1] - spans[0] > 0.5, "only one count would do"


@pytest.mark.parametrize("seed", range(60))
def test_nothing_small_follows_from_rounded_cells(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(2, 6, 2))
    table = rng.poisson(rng.choice([0.5, 5, 200, 900], shape)).astype(float)
    shown, step = round_table(table, LEAST)
    known = ~np.isnan(shown)
    assert not small(shown[known])
    if step == 1:
        return
    assert np.abs(shown - table)[known].max() <= max(step / 2, step - LEAST)
    low = np.where(known, np.maximum(shown - step / 2, LEAST), 0).ravel()
    high = np.where(known, shown + step / 2, LEAST - 1).ravel()
    sums = np.array(
        [np.repeat(np.arange(shape[0]) == i, shape[1]) for i in range(shape[0])]
        + [np.tile(np.arange(shape[1]) == j, shape[0]) for j in range(shape[1])]
    ).astype(float)
    margins = LinearConstraint(sums, sums @ table.ravel(), sums @ table.ravel())
    lines = [line for line in sums.astype(bool) if np.nansum(shown.ravel()[line]) > 0]
    aims = [line & ~known.ravel() for line in lines]
    aims = [aim for aim in aims if small(table.ravel()[aim].sum())]
    aims += [np.arange(table.size) == place for place in np.flatnonzero(~known & (table > 0))]
    for aim in aims:
        ends = [
            milp(
                sign * aim.astype(float),
                integrality=np.ones(table.size),
                bounds=(low, high),
                constraints=margins,
            ).fun
            for sign in (1, -1)
        ]
        assert -ends[1] - ends[0] > 0.5, "only one count would do"


def test_a_mean_is_shown_though_few_values_are_missing() -> None:
    known, sizes = np.array([97.0, 200, 300, 597]), np.array([100.0, 200, 300])
    numbers = np.array([[70.0, 71, 72, 71], [70, 71, 72, 71]])
    outcome = Outcome(
        "age", "number", ("mean", "median"), known, np.empty((0, 4)), numbers, numbers, numbers
    )
    shown = hide_outcome(outcome, sizes, np.zeros(3, dtype=bool), LEAST)
    np.testing.assert_array_equal(shown.estimate, numbers)
    assert np.isnan(shown.known).all(), "the total would tell that three have no value"
    few = hide_outcome(outcome, sizes, np.array([True, True, False]), LEAST)
    assert np.isnan(few.estimate[0]).tolist() == [True, True, False, False]


def test_small_steps_of_the_ledger_are_merged() -> None:
    lines = (
        Line("records", "having 428", 1000, 400),
        Line("records", "age from 18", 400, 397),
        Line("features", "in no record", 50, 40),
        Line("records", "at least 3 codes", 397, 300),
        Line("records", "sex", 300, 298),
    )
    assert merge_lines(lines, LEAST) == (
        Line("records", "having 428; age from 18", 1000, 397),
        Line("records", "at least 3 codes; sex", 397, 298),
        Line("features", "in no record", 50, 40),
    )
    assert merge_lines(lines[1:2], LEAST) == (
        Line("records", "age from 18 (fewer than 11 left out)", 397, 397),
    )


def test_thresholds_that_are_met_change_nothing(full: Profile) -> None:
    assert full.suppressed(0) is full
    assert full.suppressed(1) is full
    shown = full.suppressed(20)
    assert shown.suppressed(11) is shown
    with pytest.raises(InputError, match="this profile is already suppressed below 20; suppress"):
        shown.suppressed(30)


def test_every_union_of_clusters_is_safe() -> None:
    table = np.array([[2.0, 98], [9, 91], [15, 85], [40, 60], [60, 40]])
    hidden, _ = hide(table, np.zeros(5, dtype=bool), LEAST)
    shown = np.flatnonzero(~hidden)
    unions = chain.from_iterable(combinations(shown, r) for r in range(len(shown) + 1))
    for union in unions:
        assert not small(table.sum(axis=0) - table[list(union)].sum(axis=0))
