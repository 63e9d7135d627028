"""Rules: for each cluster a short list of conditions by which a ward sees who belongs to it.

A list is read from the top: the first condition that a record meets decides, and the last line
is for all others. It is learned on one half of the records and judged on the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from comorb.model.arrays import Floats, Ints, Keys, Mask
from comorb.model.blocks import from_csr, snap_to_grid
from comorb.model.subsample import row_uniforms
from comorb.profiles.assignment import REVIEW_BELOW, Assignment
from comorb.records.cohort import Cohort

MAX_CONDITIONS = 5  # conditions of a list
BEAM_WIDTH = 6  # lists that are kept while one grows
MAX_TRAINING = 50_000  # records that lists are learned from, at most
MIN_MEMBERS = 30  # records of a cluster in each half, at least
MIN_F1_GAIN = 0.002  # of F1 that another condition has to bring
MIN_CODE_SHARE = 0.01  # share of the records that have a code of a condition, at least


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
    """A list for one cluster, and how it does on other records; NaN is suppressed."""

    conditions: tuple[Condition, ...]  # none where the cluster has too few records
    otherwise: bool  # whether a record that meets none of them is of the cluster
    matched: float  # records that the list puts into the cluster
    right: float  # those of them that are of it
    members: float  # records of the cluster
    review: float  # those of them whose probability is low
    precision: float  # weighted: how often the list is right
    recall: float  # weighted: how many of the cluster it finds
    cells: RuleCells | None = None

    def holds(self, columns: csc_array[Any]) -> Mask:
        """Return which records the list puts into the cluster."""
        held = np.full(columns.shape[0], self.otherwise)
        for condition in reversed(self.conditions):
            held[_rows_with_code(columns, condition.code) == condition.has] = condition.member
        return held


def _rows_with_code(columns: csc_array[Any], code: int) -> Mask:
    """Return which records have a code."""
    having = np.zeros(columns.shape[0], dtype=bool)
    having[columns.indices[columns.indptr[code] : columns.indptr[code + 1]]] = True
    return having


def learn_rules(
    cohort: Cohort, assigned: Assignment, k: int, keys: Keys | None = None
) -> tuple[RuleList, ...]:
    """Return a list of rules for each cluster; the same for the records in any order.

    Which half a record is in is a hash of what it holds. A list grows by the condition that raises
    F1, the harmonic mean of precision and recall, most; the best few lists go on.
    """
    weights = np.ones(len(cohort)) if cohort.weights is None else cohort.weights
    weights = snap_to_grid(weights, float(weights.sum()))
    matrix, n_codes = cohort.matrix, len(cohort.codes)
    blocks = from_csr(matrix.indptr, matrix.indices, n_codes, cohort.weights)
    drawn = row_uniforms(blocks, cohort.counts() / max(len(cohort), 1), None)
    learned, judged = drawn < min(0.5, MAX_TRAINING / len(cohort)), drawn >= 0.5
    halves = np.flatnonzero(learned), np.flatnonzero(judged)
    first, second = (cohort.matrix[half].tocsc() for half in halves)
    common = np.flatnonzero(np.diff(first.indptr) >= MIN_CODE_SHARE * first.shape[0])
    first = first[:, common]
    lists = []
    for cluster in range(k):
        member = assigned.labels == cluster
        enough = all(int(member[half].sum()) >= MIN_MEMBERS for half in halves)
        grown: tuple[tuple[Condition, ...], bool] = ((), False)
        if enough and k > 1:
            own = weights[halves[0]] * member[halves[0]]
            grown = _Search(first, common, own, weights[halves[0]] - own).best()
        draft = RuleList(*grown, 0.0, 0.0, 0.0, 0.0, np.nan, np.nan)
        lists.append(_evaluate(draft, second, halves[1], member, assigned.top, weights, keys))
    return tuple(lists)


@dataclass(frozen=True, eq=False)
class _PartialList:
    """A list on its way: the records that no condition has met, and what was found before them."""

    conditions: tuple[Condition, ...]
    left: Mask
    found: float  # weight of the cluster's records that the list puts into it
    wrong: float  # weight of others that are
    score: float
    otherwise: bool


@dataclass(frozen=True, eq=False)
class _Search:
    """The records that a list is learned from, and their weight in the cluster and outside.

    ``codes`` are the places of the codes of the columns, which are common ones alone.
    """

    columns: csc_array[Any]
    codes: Ints
    inside: Floats
    outside: Floats

    def best(self) -> tuple[tuple[Condition, ...], bool]:
        """Return the conditions of a list and its answer for the others, by a beam search."""
        best = _PartialList((), np.ones(self.inside.size, dtype=bool), 0.0, 0.0, 0.0, False)
        beam = [best]
        for _ in range(MAX_CONDITIONS):
            grown: list[tuple[float, tuple[int, ...], _PartialList, Condition]] = []
            for place, one in enumerate(beam):
                for score, condition in self._candidates(one):
                    key = (place, condition.code, int(condition.has), int(condition.member))
                    grown.append((-score, key, one, condition))
            grown.sort(key=lambda found: (found[0], found[1]))
            beam = [self._extend(one, condition) for _, _, one, condition in grown[:BEAM_WIDTH]]
            if not beam or beam[0].score < best.score + MIN_F1_GAIN:
                break
            best = beam[0]
        found = [replace(one, code=int(self.codes[one.code])) for one in best.conditions]
        otherwise = best.otherwise
        # Where the last line is 'lacks' and what follows is the other answer, it becomes 'has'.
        if found and not found[-1].has and found[-1].member != otherwise:
            found[-1] = Condition(found[-1].code, True, otherwise)
            otherwise = not otherwise
        return tuple(found), otherwise

    @cached_property
    def _members(self) -> float:
        return float(self.inside.sum())

    @cached_property
    def _rows(self) -> csr_array[Any]:
        """The records of each code."""
        return self.columns.T

    def _candidates(self, one: _PartialList) -> list[tuple[float, Condition]]:
        """Return the best of the conditions that may come next, with the F1 of the longer list."""
        rests = (self.inside * one.left, self.outside * one.left)
        has_in, has_out = (np.asarray(self._rows @ rest) for rest in rests)
        sum_in, sum_out = (float(rest.sum()) for rest in rests)
        barred = np.zeros(self.codes.size, dtype=bool)
        barred[[condition.code for condition in one.conditions]] = True
        found = []
        for has, member in product((True, False), (True, False)):
            met_in, met_out = (has_in, has_out) if has else (sum_in - has_in, sum_out - has_out)
            kept_in, kept_out = (met_in, met_out) if member else (0.0, 0.0)
            alone = _f1(one.found + kept_in, one.wrong + kept_out, self._members)
            with_rest = _f1(
                one.found + kept_in + sum_in - met_in,
                one.wrong + kept_out + sum_out - met_out,
                self._members,
            )
            scores = np.where(barred, -1.0, np.maximum(alone, with_rest))
            found += [
                (round(float(scores[code]), 12), Condition(code, has, member))
                for code in np.argsort(-scores, kind="stable")[:BEAM_WIDTH].tolist()
                if scores[code] >= 0
            ]
        return found

    def _extend(self, one: _PartialList, condition: Condition) -> _PartialList:
        """Return the list with one more condition."""
        met = one.left & (_rows_with_code(self.columns, condition.code) == condition.has)
        left = one.left & ~met
        found, wrong = one.found, one.wrong
        if condition.member:
            found += float(self.inside[met].sum())
            wrong += float(self.outside[met].sum())
        alone = float(_f1(found, wrong, self._members))
        others = float(self.inside[left].sum()), float(self.outside[left].sum())
        rest = float(_f1(found + others[0], wrong + others[1], self._members))
        conditions = (*one.conditions, condition)
        return _PartialList(conditions, left, found, wrong, max(alone, rest), rest > alone)


def _f1(found: Floats | float, wrong: Floats | float, members: float) -> Floats:
    return np.asarray(2 * found / np.maximum(found + wrong + members, 1e-300))


def _evaluate(
    rule: RuleList,
    columns: csc_array[Any],
    rows: Ints,
    member: Mask,
    top: Floats,
    weights: Floats,
    keys: Keys | None,
) -> RuleList:
    """Return a list with its figures on records that it was not learned from."""
    holds = rule.holds(columns) if rule.conditions else np.zeros(rows.size, dtype=bool)
    own, w = member[rows], weights[rows]
    sets = (holds, holds & own, own, own & (top[rows] < REVIEW_BELOW))
    cells = None
    if keys is not None:
        cells = RuleCells(*(np.array([keys[rows][one].sum(dtype=np.uint64)]) for one in sets))
    matched, right, members = (float(w[one].sum()) for one in sets[:3])
    precision, recall = (
        round(right / whole, 6) if rule.conditions and whole else np.nan
        for whole in (matched, members)
    )
    matched, right, members, review = (float(one.sum()) for one in sets)
    counts = (matched, right, members, review)
    return RuleList(rule.conditions, rule.otherwise, *counts, precision, recall, cells)
