"""Two runs side by side: where the records went, which clusters match, what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from comorb.errors import InputError
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.suppression import round_table
from comorb.model.agreement import adjusted_rand
from comorb.model.arrays import Floats, Ints

Matches = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two runs side by side; flows and ARI are None unless they are on the same records."""

    pairs: Matches  # places of matched clusters in either run; some may have no match
    codes: tuple[str, ...]  # those that both runs have
    differences: Floats  # (pairs, codes): prevalence in the second less the first; NaN is hidden
    flows: Floats | None = None  # (k_a, k_b): records of each cluster in each of the second; or NaN
    ari: float | None = None  # adjusted Rand index: 1 for the same clusters, 0 for chance
    step: int = 1  # the flows are multiples of it, where some are suppressed


def compare(one: Profile, two: Profile, labels: tuple[Ints, Ints] | None = None) -> Comparison:
    """Compare two runs; with the cluster of each record in either, also record by record.

    Small flows are suppressed by the stricter of the two thresholds, the others rounded.
    """
    codes, left, right = _shared(one, two)
    flows, ari, step = None, None, 1
    pairs = match(one, two)
    if labels is not None:
        first, second = labels
        if first.shape != second.shape:
            raise InputError(
                f"expected both runs to be on the same records, got {first.size:,} and "
                f"{second.size:,}; leave the labels out to compare different records"
            )
        table = np.zeros((one.k, two.k))
        np.add.at(table, (first, second), 1)
        pairs, ari = _hungarian(table), adjusted_rand(first, second)
        least = max(one.min_cell, two.min_cell)
        flows, step = round_table(table, least)
        ari = round(ari, 2) if least else ari
    differences = [two.prevalence[b][right] - one.prevalence[a][left] for a, b in pairs]
    return Comparison(pairs, codes, np.array(differences), flows, ari, step)


def match(one: Profile, two: Profile) -> Matches:
    """Match the clusters of two runs so that the prevalences of shared codes differ least.

    Hungarian assignment on Σᵢ (√pᵢ − √qᵢ)², Hellinger's distance; a suppressed prevalence counts
    as that of the code over all records.
    """
    _, left, right = _shared(one, two)
    ours, theirs = (
        np.nan_to_num(np.where(np.isnan(run.prevalence), run.overall, run.prevalence))
        for run in (one, two)
    )
    return _hungarian(-hellinger(ours[:, left], theirs[:, right]))


def hellinger(one: Floats, two: Floats) -> Floats:
    """Return Σᵢ (√pᵢ − √qᵢ)² between each row p of one array and each row q of another."""
    return np.asarray(np.sum((np.sqrt(one)[:, None] - np.sqrt(two)[None]) ** 2, axis=2))


def _hungarian(gain: Floats) -> Matches:
    rows, columns = linear_sum_assignment(gain, maximize=True)
    return tuple(zip(rows.tolist(), columns.tolist(), strict=True))


def _shared(one: Profile, two: Profile) -> tuple[tuple[str, ...], Ints, Ints]:
    left, right = shared_columns(one.codes, two.codes)
    if not left.size:
        raise InputError(
            "expected two runs with codes in common, got none; compare runs of one coding "
            "system and level"
        )
    return tuple(one.codes[i] for i in left), left, right


def shared_columns(one: Sequence[str], two: Sequence[str]) -> tuple[Ints, Ints]:
    """Return where the codes that two lists have in common are, in the order of the first."""
    place = {code: column for column, code in enumerate(two)}
    left = [column for column, code in enumerate(one) if code in place]
    right = [place[one[column]] for column in left]
    return np.array(left, dtype=np.int64), np.array(right, dtype=np.int64)
