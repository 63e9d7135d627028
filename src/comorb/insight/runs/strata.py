"""Strata: a model for each slice of the records, matched to that of all, and a test of sameness.

The test is of measurement invariance: do the codes of each cluster have the same shares in every
stratum, beside what chance does, when the sizes of clusters may differ?
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from comorb.errors import InputError
from comorb.insight.profile.compare import hellinger
from comorb.insight.profile.cutting import Cut
from comorb.insight.profile.keys import keys_of
from comorb.model.arrays import Floats, Ints
from comorb.model.blocks import Rows
from comorb.model.estimator import BernoulliMixture
from comorb.model.mixture import Mixture
from comorb.records.cohort import Cohort
from comorb.storage import mixed

FEWEST = 200  # records of a stratum that is fitted
TESTED = 20_000  # records that the test is made on, at most
DRAWS = 39  # times that records are dealt anew
STEPS = 20  # of EM, for the records and for each draw alike
PRIOR = 1.0  # records of the shared profile that a stratum's own profile leans to


@dataclass(frozen=True, eq=False)
class Stratum:
    """The clusters that a slice has of its own."""

    label: str
    records: int
    weights: Floats  # (k,)
    means: Floats  # (k, d)
    matches: tuple[int | None, ...]  # the place of the whole's cluster that each is, if any
    distances: Floats  # (k,): Hellinger's, from the nearest cluster of the whole


@dataclass(frozen=True)
class Invariance:
    """The likelihood-ratio test of profiles that are the same in every stratum."""

    statistic: float  # twice the gain of log-likelihood by profiles of their own
    a_record: float  # the log-likelihood that a record gains beyond chance
    draws: int
    p: float  # the share of the draws that gain as much, the records themselves counted in
    usual: float  # the mean statistic of draws, in which profiles are the same
    records: int


@dataclass(frozen=True, eq=False)
class Strata:
    """A model for each stratum that has enough records, and the test."""

    strata: tuple[Stratum, ...]
    test: Invariance | None
    notes: tuple[str, ...]


def fit_strata(cohort: Cohort, whole: Mixture, cuts: Cut, draws: int = DRAWS) -> Strata:
    """Fit a model in each stratum, as many clusters as the whole has, and match them.

    A cluster is matched when each is the other's nearest, by Σ (√μ − √ν)²; the others are new.
    """
    rows_of = [np.flatnonzero(cuts.places == place) for place in range(len(cuts.labels))]
    enough = [place for place, rows in enumerate(rows_of) if rows.size >= FEWEST]
    notes = [
        f"{label} has {rows.size:,} records, and a model of its own needs {FEWEST:,}"
        for label, rows in zip(cuts.labels, rows_of, strict=True)
        if rows.size < FEWEST
    ]
    if not enough:
        raise InputError(
            f"expected slices of {FEWEST:,} records or more to fit models in, got none; take fewer "
            "slices"
        )
    strata = []
    for place in enough:
        rows = rows_of[place]
        weights = None if cohort.weights is None else cohort.weights[rows]
        fitted = BernoulliMixture(whole.n_components)
        own = fitted.fit(cohort.matrix[rows], sample_weight=weights).mixture_
        distances = hellinger(own.means, whole.means)
        back = distances.argmin(axis=0)
        nearest = distances.argmin(axis=1).tolist()
        matches = tuple(old if back[old] == new else None for new, old in enumerate(nearest))
        strata.append(
            Stratum(
                cuts.labels[place],
                rows.size,
                own.weights,
                own.means,
                matches,
                np.round(distances.min(axis=1), 6),
            )
        )
    test = None
    if len(enough) > 1:
        test = invariance(cohort, whole, [rows_of[place] for place in enough], draws)
    else:
        notes.append("one slice alone has enough records, so nothing is compared")
    return Strata(tuple(strata), test, tuple(notes))


def invariance(cohort: Cohort, whole: Mixture, groups: list[Ints], draws: int) -> Invariance:
    """Test whether profiles are the same in all groups of rows, by exchanging rows.

    Twice the log-likelihood that profiles of their own gain over shared ones, beside that of the
    same records when those of one cluster are dealt anew to the groups: sizes of clusters stay,
    and so does whatever the model doesn't know of how codes go together. All by the same few steps
    of EM. Records count once each, whatever they weigh.
    """
    rows, of = np.concatenate(groups), np.repeat(np.arange(len(groups)), [g.size for g in groups])
    order = _in_order(cohort, rows, of)
    matrix, of = cohort.matrix[rows[order]], of[order]
    labels = whole.posterior(_rows(matrix))[0].argmax(axis=1)
    observed = _gain([matrix[of == group] for group in range(len(groups))], whole)
    gains = []
    for turn in range(draws):
        dealt = _dealt(of, labels, turn)
        gains.append(_gain([matrix[dealt == group] for group in range(len(groups))], whole))
    above = sum(gain >= observed for gain in gains)
    return Invariance(
        round(observed, 3),
        round((observed - float(np.mean(gains))) / 2 / of.size, 6),
        draws,
        round((1 + above) / (1 + draws), 6),
        round(float(np.mean(gains)), 3),
        int(of.size),
    )


def _in_order(cohort: Cohort, rows: Ints, of: Ints) -> Ints:
    """Return the places of rows by what they hold and their group; of many, a part of them."""
    held = mixed(cohort.matrix[rows].astype(np.uint64) @ keys_of(cohort.codes, b""))
    order = np.lexsort((of, held))
    fresh = np.r_[True, (np.diff(of[order]) != 0) | (held[order][1:] != held[order][:-1])]
    places = np.arange(rows.size)
    turns = places - np.maximum.accumulate(np.where(fresh, places, 0))
    drawn = mixed(held[order] + mixed((turns * (of.max() + 1) + of[order]).astype(np.uint64)))
    return np.asarray(order[drawn / 2.0**64 < TESTED / rows.size])


def _dealt(of: Ints, labels: Ints, turn: int) -> Ints:
    """Return the group of each row after those of one cluster were exchanged."""
    rng = np.random.default_rng(turn)
    dealt = of.copy()
    for cluster in np.unique(labels):
        own = np.flatnonzero(labels == cluster)
        dealt[own] = of[own[rng.permutation(own.size)]]
    return dealt


def _gain(matrices: list[csr_array[Any]], start: Mixture) -> float:
    """Return twice the log-likelihood that profiles of their own gain over shared ones."""
    rows = [_rows(matrix) for matrix in matrices]
    shared = [start] * len(matrices)
    for _ in range(STEPS):
        sums = [
            _expected(one, block, matrix)
            for one, block, matrix in zip(shared, rows, matrices, strict=True)
        ]
        mass = np.sum([weight for weight, _, _ in sums], axis=0)
        means = np.sum([ones for _, ones, _ in sums], axis=0) + PRIOR * start.means
        means = means / (mass + PRIOR)[:, None]
        shared = [Mixture(weight / weight.sum(), means) for weight, _, _ in sums]
    common = sum(
        _expected(one, block, matrix)[2]
        for one, block, matrix in zip(shared, rows, matrices, strict=True)
    )
    own = 0.0
    for one, block, matrix in zip(shared, rows, matrices, strict=True):
        profile, mixture = one.means, one
        for _ in range(STEPS):
            weight, ones, _ = _expected(mixture, block, matrix)
            means = (ones + PRIOR * profile) / (weight + PRIOR)[:, None]
            mixture = Mixture(weight / weight.sum(), means)
        own += _expected(mixture, block, matrix)[2]
    return 2 * (own - common)


def _expected(mixture: Mixture, rows: Rows, matrix: csr_array[Any]) -> tuple[Floats, Floats, float]:
    """Return the records and the ones that each cluster expects, and the log-likelihood."""
    posterior, logs = mixture.posterior(rows)
    return posterior.sum(axis=0), np.asarray((matrix.T @ posterior).T), float(logs.sum())


def _rows(matrix: csr_array[Any]) -> Rows:
    return Rows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), np.empty(0))
