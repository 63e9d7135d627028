"""Comparison: two runs, which of their clusters match, what differs, where records went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from comorb.errors import InputError
from comorb.model.arrays import Floats, Ints, Keys
from comorb.model.diagnostics import adjusted_rand
from comorb.model.tabular import Tabular
from comorb.profiles.noise import CountProtector
from comorb.profiles.profile import Profile

Matches = tuple[tuple[int, int], ...]
MAX_CODES_NAMED = 3  # codes that are named of a pair, that are more or less common
LIKENESS_WORDS = ((0.85, "very good"), (0.7, "good"), (0.55, "fair"), (0.0, "poor"))


@dataclass(frozen=True, eq=False)
class Comparison(Tabular):
    """Two runs side by side; flows and ARI are None unless they are on the same records."""

    pairs: Matches  # places of matched clusters in either run; some may have no match
    codes: tuple[str, ...]  # those that both runs have
    differences: Floats  # (pairs, codes): prevalence in the second less the first; NaN is hidden
    flows: Floats | None = None  # (k_a, k_b): records of each cluster in each of the second; or NaN
    ari: float | None = None  # adjusted Rand index: 1 for the same clusters, 0 for chance
    likeness: tuple[float, ...] = ()  # of each pair: how much of their codes is the same, 0 to 1
    numbers: tuple[tuple[int, ...], ...] = ()  # of the clusters, by place, in either run

    def columns(self) -> dict[str, list[Any]]:
        """Return the matched clusters, by columns: how alike, and the codes that differ most."""
        shared = [np.nan if self.flows is None else self.flows[pair] for pair in self.pairs]
        return {
            "first": [self.numbers[0][a] for a, _ in self.pairs],
            "second": [self.numbers[1][b] for _, b in self.pairs],
            "likeness": list(self.likeness),
            "match": [likeness_word(alike) for alike in self.likeness],
            "records": [None if n != n else int(n) for n in shared],
            "more": [self._codes(-row) for row in self.differences],
            "less": [self._codes(row) for row in self.differences],
        }

    def _codes(self, losses: Floats) -> str:
        """Return the codes that lose most in a row of losses, the first first."""
        order = [i for i in np.argsort(losses, kind="stable")[:MAX_CODES_NAMED] if losses[i] < 0]
        return ", ".join(self.codes[i] for i in order)


def compare(
    one: Profile, two: Profile, labels: tuple[Ints, Ints] | None = None, keys: Keys | None = None
) -> Comparison:
    """Compare two runs; with the cluster of each record in either, also record by record.

    Protected profiles are compared in protected counts, by the stricter of their thresholds; that
    takes the ``keys`` of the records.
    """
    codes, left, right = _shared_codes(one, two)
    flows, ari = None, None
    pairs = match_clusters(one, two)
    if labels is not None:
        first, second = labels
        if first.shape != second.shape:
            raise InputError("compare.records", one=first.size, two=second.size)
        flows = np.zeros((one.k, two.k))
        np.add.at(flows, (first, second), 1)
        pairs, ari = _hungarian(flows), adjusted_rand(first, second)
        if min_cell := max(one.min_cell, two.min_cell):
            if keys is None:
                raise InputError("compare.no_keys")
            cells = np.zeros((one.k, two.k), dtype=np.uint64)
            np.add.at(cells, (first, second), keys)
            protector = CountProtector(min_cell, keys.sum(dtype=np.uint64))
            flows, ari = protector.cross_table(flows, cells), round(ari, 2)
    differences = [two.prevalence[b][right] - one.prevalence[a][left] for a, b in pairs]
    ours, theirs = _filled_prevalences(one)[:, left], _filled_prevalences(two)[:, right]
    alike = tuple(likeness(ours[a], theirs[b]) for a, b in pairs)
    numbers = (tuple(one.numbers), tuple(two.numbers))
    return Comparison(pairs, codes, np.array(differences), flows, ari, alike, numbers)


def likeness(one: Floats, two: Floats) -> float:
    """Return Σ min(p, q) / Σ max(p, q) of two profiles: 1 for the same, 0 for nothing in common.

    Clusters of one run are up to 0.5 alike, the same cluster in other patients mostly above 0.8.

    >>> likeness(np.array([0.5, 0.2]), np.array([0.5, 0.0]))
    0.71
    """
    whole = float(np.maximum(one, two).sum())
    return round(float(np.minimum(one, two).sum()) / whole, 2) if whole else 1.0


def likeness_word(alike: float) -> str:
    """Return a likeness as a word.

    >>> likeness_word(0.9), likeness_word(0.3)
    ('very good', 'poor')
    """
    return next(word for min_cell, word in LIKENESS_WORDS if alike >= min_cell)


def match_clusters(one: Profile, two: Profile) -> Matches:
    """Match the clusters of two runs so that the prevalences of shared codes differ least.

    Hungarian assignment on Σᵢ (√pᵢ − √qᵢ)², Hellinger's distance; a suppressed prevalence counts
    as that of the code over all records.
    """
    _, left, right = _shared_codes(one, two)
    ours, theirs = _filled_prevalences(one), _filled_prevalences(two)
    return _hungarian(-hellinger(ours[:, left], theirs[:, right]))


def _filled_prevalences(run: Profile) -> Floats:
    """Return prevalences in which suppressed ones are as over all records."""
    return np.nan_to_num(np.where(np.isnan(run.prevalence), run.overall, run.prevalence))


def hellinger(one: Floats, two: Floats) -> Floats:
    """Return Σᵢ (√pᵢ − √qᵢ)² between each row p of one array and each row q of another."""
    return np.asarray(np.sum((np.sqrt(one)[:, None] - np.sqrt(two)[None]) ** 2, axis=2))


def _hungarian(gain: Floats) -> Matches:
    rows, columns = linear_sum_assignment(gain, maximize=True)
    return tuple(zip(rows.tolist(), columns.tolist(), strict=True))


def _shared_codes(one: Profile, two: Profile) -> tuple[tuple[str, ...], Ints, Ints]:
    left, right = shared_columns(one.codes, two.codes)
    if not left.size:
        raise InputError("compare.no_codes")
    return tuple(one.codes[i] for i in left), left, right


def shared_columns(one: Sequence[str], two: Sequence[str]) -> tuple[Ints, Ints]:
    """Return where the codes that two lists have in common are, in the order of the first."""
    place = {code: column for column, code in enumerate(two)}
    left = [column for column, code in enumerate(one) if code in place]
    right = [place[one[column]] for column in left]
    return np.array(left, dtype=np.int64), np.array(right, dtype=np.int64)
