"""Rules: for each cluster a short list of conditions by which a ward can tell who belongs to it.

A list is read from the top: the first condition that a record meets decides, and the last line
says what the others are. It is learned on one half of the records and judged on the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from comorb.insight.profile.assignment import Assignment
from comorb.model.arrays import Floats, Ints, Keys, Mask
from comorb.model.blocks import from_csr, rounded
from comorb.model.thinning import chances
from comorb.records.cohort import Cohort

MOST = 5  # conditions of a list
BEAM = 6  # lists that are kept while one grows
LEARNED = 50_000  # records that lists are learned from, at most
FEWEST = 30  # records of a cluster in each half, at least
REVIEW = 0.6  # below this probability a record is to be looked at
GAIN = 0.002  # of F1 that another condition has to bring
COMMON = 0.01  # share of the records that have a code of a condition, at least


@dataclass(frozen=True)
class Condition:
    """A record that has a code, or lacks it, is of the cluster, or is not."""

    code: int  # the place of the code
    has: bool
    member: bool  # what follows


@dataclass(frozen=True, eq=False)
class RuleCells:
    """The keys of the sets of records that a list is judged by."""

    matched: Keys  # (1,), like the next two
    right: Keys
    members: Keys
    review: Keys


@dataclass(frozen=True, eq=False)
class RuleList:
    """A list for one cluster, and how it does on other records; NaN isn't told."""

    conditions: tuple[Condition, ...]  # none where the cluster has too few records
    otherwise: bool  # whether a record that meets none of them is of the cluster
    matched: float  # records that the list puts into the cluster
    right: float  # those of them that are of it
    members: float  # records of the cluster
    review: float  # those of them whose probability is low
    precision: float  # weighted: how often the list is right
    recall: float  # weighted: how many of the cluster it finds
    cells: RuleCells | None = None

    def holds(self, matrix: csr_array[Any]) -> Mask:
        """Return which records the list puts into the cluster."""
        said = np.full(matrix.shape[0], self.otherwise)
        columns = matrix.tocsc()
        for condition in reversed(self.conditions):
            met = np.zeros(matrix.shape[0], dtype=bool)
            start, end = columns.indptr[condition.code], columns.indptr[condition.code + 1]
            met[columns.indices[start:end]] = True
            said[met == condition.has] = condition.member
        return said


def learn_rules(
    cohort: Cohort, assigned: Assignment, k: int, keys: Keys | None = None
) -> tuple[RuleList, ...]:
    """Return a list of rules for each cluster; the same for the records in any order.

    Which half a record is in is a hash of what it holds. A list grows by the condition that raises
    F1, the harmonic mean of precision and recall, most; the best few lists go on.
    """
    weights = np.ones(len(cohort)) if cohort.weights is None else cohort.weights
    weights = rounded(weights, float(weights.sum()))
    drawn = _drawn(cohort)
    learned, judged = drawn < min(0.5, LEARNED / len(cohort)), drawn >= 0.5
    halves = np.flatnonzero(learned), np.flatnonzero(judged)
    matrix = cohort.matrix[halves[0]].astype(np.float64).tocsr()
    lists = []
    for cluster in range(k):
        member = assigned.labels == cluster
        enough = all(int(member[half].sum()) >= FEWEST for half in halves)
        grown: tuple[tuple[Condition, ...], bool] = ((), False)
        if enough and k > 1:
            grown = _grow(matrix, member[halves[0]], weights[halves[0]])
        draft = RuleList(*grown, 0.0, 0.0, 0.0, 0.0, np.nan, np.nan)
        lists.append(_judged(draft, cohort, halves[1], member, assigned.top, weights, keys))
    return tuple(lists)


def _drawn(cohort: Cohort) -> Floats:
    blocks = from_csr(
        cohort.matrix.indptr, cohort.matrix.indices, len(cohort.codes), cohort.weights
    )
    first = cohort.counts() / max(len(cohort), 1)
    return chances(blocks, first, None)


@dataclass(frozen=True, eq=False)
class _Grown:
    """A list on its way: the records that no condition has met, and what was found before them."""

    conditions: tuple[Condition, ...]
    left: Mask
    found: float  # weight of the cluster's records that are said to be of it
    wrong: float  # weight of others that are
    score: float
    otherwise: bool


def _grow(
    matrix: csr_array[Any], member: Mask, weights: Floats
) -> tuple[tuple[Condition, ...], bool]:
    """Return the conditions of a list and what it says of the others, by a beam search."""
    inside, outside = weights * member, weights * ~member
    all_inside = float(inside.sum())
    start = np.ones(member.size, dtype=bool)
    best = _Grown((), start, 0.0, 0.0, 0.0, False)
    beam = [best]
    for _ in range(MOST):
        grown: list[tuple[float, tuple[int, ...], _Grown, Condition]] = []
        for place, one in enumerate(beam):
            for score, condition in _next(matrix, one, inside, outside, all_inside):
                key = (place, condition.code, int(condition.has), int(condition.member))
                grown.append((-score, key, one, condition))
        grown.sort(key=lambda found: (found[0], found[1]))
        beam = [
            _followed(matrix, one, condition, inside, outside, all_inside)
            for _, _, one, condition in grown[:BEAM]
        ]
        if not beam or beam[0].score < best.score + GAIN:
            break
        best = beam[0]
    return _plainly(best.conditions, best.otherwise)


def _plainly(
    conditions: tuple[Condition, ...], otherwise: bool
) -> tuple[tuple[Condition, ...], bool]:
    """Return the same list with 'has' in its last line, where what follows is the other answer."""
    if conditions and not conditions[-1].has and conditions[-1].member != otherwise:
        last = Condition(conditions[-1].code, True, otherwise)
        return (*conditions[:-1], last), not otherwise
    return conditions, otherwise


def _next(
    matrix: csr_array[Any], one: _Grown, inside: Floats, outside: Floats, all_inside: float
) -> list[tuple[float, Condition]]:
    """Return the best of the conditions that may come next, each with the F1 of the longer list."""
    rest_in, rest_out = inside * one.left, outside * one.left
    has_in, has_out = (np.asarray(matrix.T @ rest) for rest in (rest_in, rest_out))
    sum_in, sum_out = float(rest_in.sum()), float(rest_out.sum())
    used = {condition.code for condition in one.conditions}
    rare = np.diff(matrix.tocsc().indptr) < COMMON * matrix.shape[0]
    found = []
    for has in (True, False):
        met_in, met_out = (has_in, has_out) if has else (sum_in - has_in, sum_out - has_out)
        for member in (True, False):
            kept_in, kept_out = (met_in, met_out) if member else (0.0, 0.0)
            alone = _f1(one.found + kept_in, one.wrong + kept_out, all_inside)
            with_rest = _f1(
                one.found + kept_in + sum_in - met_in,
                one.wrong + kept_out + sum_out - met_out,
                all_inside,
            )
            scores = np.maximum(alone, with_rest)
            scores[rare] = -1.0
            scores[list(used)] = -1.0
            found += [
                (round(float(scores[code]), 12), Condition(code, has, member))
                for code in np.argsort(-scores, kind="stable")[:BEAM].tolist()
            ]
    return found


def _followed(
    matrix: csr_array[Any],
    one: _Grown,
    condition: Condition,
    inside: Floats,
    outside: Floats,
    all_inside: float,
) -> _Grown:
    column = np.asarray(matrix[:, [condition.code]].todense()).ravel() > 0
    met = one.left & (column == condition.has)
    left = one.left & ~met
    found, wrong = one.found, one.wrong
    if condition.member:
        found, wrong = found + float(inside[met].sum()), wrong + float(outside[met].sum())
    alone = float(_f1(found, wrong, all_inside))
    rest = float(
        _f1(found + float(inside[left].sum()), wrong + float(outside[left].sum()), all_inside)
    )
    conditions = (*one.conditions, condition)
    return _Grown(conditions, left, found, wrong, max(alone, rest), rest > alone)


def _f1(found: Floats | float, wrong: Floats | float, members: float) -> Floats:
    return np.asarray(2 * found / np.maximum(found + wrong + members, 1e-300))


def _judged(
    rule: RuleList,
    cohort: Cohort,
    rows: Ints,
    member: Mask,
    top: Floats,
    weights: Floats,
    keys: Keys | None,
) -> RuleList:
    """Return a list with its figures on records that it was not learned from."""
    holds = rule.holds(cohort.matrix[rows]) if rule.conditions else np.zeros(rows.size, dtype=bool)
    own, w = member[rows], weights[rows]
    sets = (holds, holds & own, own, own & (top[rows] < REVIEW))
    cells = None
    if keys is not None:
        cells = RuleCells(*(np.array([keys[rows][one].sum(dtype=np.uint64)]) for one in sets))
    mass = [float(w[one].sum()) for one in sets]
    told = bool(rule.conditions)
    matched, right, members, review = (float(one.sum()) for one in sets)
    return RuleList(
        rule.conditions,
        rule.otherwise,
        matched,
        right,
        members,
        review,
        round(mass[1] / mass[0], 6) if told and mass[0] else np.nan,
        round(mass[1] / mass[2], 6) if told and mass[2] else np.nan,
        cells,
    )
