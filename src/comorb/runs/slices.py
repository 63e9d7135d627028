"""Slices of a saved run: its clusters within slices of the records, and models of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from scipy.sparse import csr_array

from comorb.errors import InputError, RecordsError
from comorb.messages import Message
from comorb.model.arrays import Floats, Indices, Ints
from comorb.model.blocks import Rows, move_columns
from comorb.model.estimators import BernoulliMixture
from comorb.model.mixture import Mixture
from comorb.profiles.assignment import assign
from comorb.profiles.build import SLICE_COLUMNS, RecordAccumulator, profile
from comorb.profiles.comparison import hellinger
from comorb.profiles.intervals import Z
from comorb.profiles.noise import CountProtector, hash_texts, own_secret, record_keys
from comorb.profiles.profile import Profile
from comorb.profiles.protection import protect_slices, protect_strata
from comorb.profiles.slices import By, Cut, Slices, cut, pool_slices, slice_records
from comorb.records.cohort import Cohort, as_matrix
from comorb.records.layouts.names import find_role
from comorb.records.ledger import Ledger
from comorb.records.spec import CohortSpec
from comorb.runs.assign import Scorer, assign_blocks, temperature_of
from comorb.runs.cohorts import align, open_records, spec_for_model
from comorb.runs.folder import RunFolder, load_profile, load_run_model
from comorb.runs.progress import Progress, Reporter, ignore_progress
from comorb.runs.spec import N_DRAWS, SliceRequest
from comorb.storage import SavedModel, load_model, mixed

MIN_STRATUM = 200  # records of a stratum that is fitted
MAX_TESTED = 20_000  # records that the test is made on, at most
N_EM_STEPS = 20  # of EM, for the records and for each draw alike
PRIOR_RECORDS = 1.0  # records of the shared profile that a stratum's own profile leans to


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


def fit_strata(cohort: Cohort, whole: Mixture, cuts: Cut, draws: int = N_DRAWS) -> Strata:
    """Fit a model in each stratum, as many clusters as the whole has, and match them.

    A cluster is matched when each is the other's nearest, by Σ (√μ − √ν)²; the others are new.
    """
    rows_of = [np.flatnonzero(cuts.places == place) for place in range(len(cuts.labels))]
    enough = [place for place, rows in enumerate(rows_of) if rows.size >= MIN_STRATUM]
    notes = [
        Message("slices.few_records", label=label, n=rows.size, limit=MIN_STRATUM)
        for label, rows in zip(cuts.labels, rows_of, strict=True)
        if rows.size < MIN_STRATUM
    ]
    if not enough:
        raise InputError("slices.no_models", fewest=MIN_STRATUM)
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
        label, nearest_distance = cuts.labels[place], np.round(distances.min(axis=1), 6)
        strata.append(Stratum(label, rows.size, own.weights, own.means, matches, nearest_distance))
    test = None
    if len(enough) > 1:
        test = check_invariance(cohort, whole, [rows_of[place] for place in enough], draws)
    else:
        notes.append(Message("slices.one_enough"))
    return Strata(tuple(strata), test, tuple(notes))


def check_invariance(cohort: Cohort, whole: Mixture, groups: list[Ints], draws: int) -> Invariance:
    """Test whether profiles are the same in all groups of rows, by a permutation test.

    Twice the log-likelihood that profiles of their own gain over shared ones is compared with that
    of the same records when those of one cluster are permuted among the groups: sizes of clusters
    stay, and so does any dependence of codes that the model doesn't know. All by the same few steps
    of EM. Records count once each, whatever they weigh.
    """
    rows, of = np.concatenate(groups), np.repeat(np.arange(len(groups)), [g.size for g in groups])
    order = _sort_rows(cohort, rows, of)
    matrix, of = cohort.matrix[rows[order]], of[order]
    labels = whole.posterior(_rows(matrix))[0].argmax(axis=1)

    def gain_of(dealt: Ints) -> float:
        return _likelihood_gain([matrix[dealt == group] for group in range(len(groups))], whole)

    observed = gain_of(of)
    gains = [gain_of(_permute_groups(of, labels, turn)) for turn in range(draws)]
    above, usual = sum(gain >= observed for gain in gains), float(np.mean(gains))
    return Invariance(
        statistic=round(observed, 3),
        a_record=round((observed - usual) / 2 / of.size, 6),
        draws=draws,
        p=round((1 + above) / (1 + draws), 6),
        usual=round(usual, 3),
        records=int(of.size),
    )


def _sort_rows(cohort: Cohort, rows: Ints, of: Ints) -> Ints:
    """Return the places of rows by what they hold and their group; of many, a part of them."""
    held = mixed(cohort.matrix[rows].astype(np.uint64) @ hash_texts(cohort.codes, b""))
    order = np.lexsort((of, held))
    fresh = np.r_[True, (np.diff(of[order]) != 0) | (held[order][1:] != held[order][:-1])]
    places = np.arange(rows.size)
    turns = places - np.maximum.accumulate(np.where(fresh, places, 0))
    drawn = mixed(held[order] + mixed((turns * (of.max() + 1) + of[order]).astype(np.uint64)))
    return np.asarray(order[drawn / 2.0**64 < MAX_TESTED / rows.size])


def _permute_groups(of: Ints, labels: Ints, turn: int) -> Ints:
    """Return the group of each row after those of one cluster were exchanged."""
    rng = np.random.default_rng(turn)
    dealt = of.copy()
    for cluster in np.unique(labels):
        own = np.flatnonzero(labels == cluster)
        dealt[own] = of[own[rng.permutation(own.size)]]
    return dealt


def _likelihood_gain(matrices: list[csr_array[Any]], start: Mixture) -> float:
    """Return twice the log-likelihood that profiles of their own gain over shared ones."""
    rows = [_rows(matrix) for matrix in matrices]
    shared = [start] * len(matrices)
    for _ in range(N_EM_STEPS):
        sums = list(map(_expect, shared, rows, matrices))
        mass = np.sum([weight for weight, _, _ in sums], axis=0)
        means = np.sum([ones for _, ones, _ in sums], axis=0) + PRIOR_RECORDS * start.means
        means = means / (mass + PRIOR_RECORDS)[:, None]
        shared = [Mixture(weight / weight.sum(), means) for weight, _, _ in sums]
    common = sum(likelihood for _, _, likelihood in map(_expect, shared, rows, matrices))
    own = 0.0
    for one, block, matrix in zip(shared, rows, matrices, strict=True):
        profile, mixture = one.means, one
        for _ in range(N_EM_STEPS):
            weight, ones, _ = _expect(mixture, block, matrix)
            means = (ones + PRIOR_RECORDS * profile) / (weight + PRIOR_RECORDS)[:, None]
            mixture = Mixture(weight / weight.sum(), means)
        own += _expect(mixture, block, matrix)[2]
    return 2 * (own - common)


def _expect(mixture: Mixture, rows: Rows, matrix: csr_array[Any]) -> tuple[Floats, Floats, float]:
    """Return the records and the ones that each cluster expects, and the log-likelihood."""
    posterior, logs = mixture.posterior(rows)
    return posterior.sum(axis=0), np.asarray((matrix.T @ posterior).T), float(logs.sum())


def _rows(matrix: csr_array[Any]) -> Rows:
    return Rows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), np.empty(0))


MAX_FITTED = 500_000  # records that models of strata are fitted on, at most


@dataclass(frozen=True, eq=False)
class SlicedRecords:
    """The slices of some records by the clusters of a run."""

    clusters: tuple[str, ...]
    numbers: tuple[int, ...]
    records: int
    slices: tuple[Slices, ...]
    strata: tuple[Strata, ...]  # one for each of the slices, where models of their own were wanted
    ledger: Ledger
    codes: tuple[str, ...] = ()
    min_cell: int = 0


def slice_run(
    run: str | Path,
    records: Any,
    request: SliceRequest,
    *,
    memory: str | None = None,
    engine: str | None = None,
    report: Reporter = ignore_progress,
) -> SlicedRecords:
    """Assign records to the clusters of a run, and return their shares within each slice.

    Records are read and chosen as the run's own were, with their weights. ``memory`` and
    ``engine`` are as in `comorb.runs.run.fit_records`.
    """
    saved = load_run_model(run)
    if saved.mixture.variables and request.refit:
        raise InputError("slices.features")
    asked = spec_for_model(saved, request.reading)
    weight = (request.reading or CohortSpec.from_dict(saved.preparation)).layout.weight
    asked = replace(asked, layout=replace(asked.layout, weight=weight))
    with open_records(records, asked, memory, engine, report) as (cohort, executor):
        report(Progress("describing", f"Assigning {len(cohort):,} records"))
        place, _ = align(cohort, saved.codes, saved.left_out, executor)
        secret = (request.secret or own_secret()) if request.min_cell else None
        named = [one.name for one in request.by]
        columns = {*SLICE_COLUMNS, *named, *(role for name in named if (role := find_role(name)))}
        accumulator = RecordAccumulator(saved.mixture.n_components, secret, (), sorted(columns))
        start = 0
        found = assign_blocks(cohort, Scorer.of(saved, place), executor)
        for number, (ids, part) in enumerate(found):
            accumulator.add(cohort.part(number, start, len(ids)), part.labels)
            start += len(ids)
        slices = accumulator.slices(request.by)
        strata: list[Strata] = []
        if request.refit:
            own = _use_model_codes(cohort.sample(MAX_FITTED)[0], saved, place)
            for by in request.by:
                report(Progress("finding", f"Finding the clusters of each slice by {by.name}"))
                cuts = cut(own.covariates, by)
                strata.append(fit_strata(own, saved.mixture, cuts, request.draws))
        if request.min_cell:
            slices = tuple(protect_slices(one, request.min_cell) for one in slices)
        return SlicedRecords(
            *(saved.clusters, saved.numbers, len(cohort), slices, tuple(strata)),
            *(cohort.ledger, saved.codes, request.min_cell),
        )


def _use_model_codes(cohort: Cohort, saved: SavedModel, place: Indices) -> Cohort:
    """Return records with the codes of a model, in its order."""
    indptr, indices = move_columns(cohort.matrix.indptr, cohort.matrix.indices, place)
    matrix = as_matrix(indptr, indices, len(saved.codes))
    if (np.diff(place[place >= 0]) < 0).any():
        matrix.has_sorted_indices = False
        matrix.sort_indices()
    ledger = cohort.ledger.open("features", Message("ledger.read"), len(saved.codes))
    return replace(cohort, matrix=matrix, codes=saved.codes, names=saved.names, ledger=ledger)


def parse_slices(texts: Sequence[str]) -> tuple[By, ...]:
    """Return the columns and cuts of texts such as 'age:q4'."""
    return tuple(By.of(text) for text in texts)


@dataclass(frozen=True)
class SplitRecords:
    """A saved run, its records, and what the keys of these are made with; None for one's own."""

    folder: str | Path
    cohort: Cohort
    secret: bytes | None = None
    min_cell: int = 0  # the smallest count that is shown; 0 shows all

    def slices(self, by: str) -> tuple[Slices, Floats]:
        """Return the shares of the clusters within slices, small ones pooled, as they may be shown.

        With them comes half of the 95% interval of each standardised share, (s, k).
        """
        cuts, notes = pool_slices(self.cohort.covariates, By.of(by), self.min_cell)
        own = load_profile(self.folder)
        keys = record_keys(self.cohort, self.secret or own_secret())
        made = slice_records(
            self.cohort.covariates,
            self._labels(own),
            own.k,
            By.of(by),
            weights=self.cohort.weights,
            keys=keys,
            cuts=cuts,
        )
        published = protect_slices(made, self.min_cell) if self.min_cell else made
        published = replace(published, notes=(*published.notes, *notes))
        return published, _half_intervals(made, published, self.min_cell)

    def profile(
        self,
        by: str,
        label: str,
        outcomes: Sequence[str] | None = None,
        groups: Sequence[int] | None = None,
    ) -> Profile:
        """Return the full profile of the records of one slice; clusters and names are the run's.

        ``groups`` is the number that each fitted cluster goes by, where clusters were merged.
        """
        cuts, _ = pool_slices(self.cohort.covariates, By.of(by), self.min_cell)
        if label not in cuts.labels:
            raise InputError("slices.gone")
        rows = cuts.places == cuts.labels.index(label)
        folder, earlier = RunFolder(self.folder), load_profile(self.folder)
        part = self.cohort.only(rows, f"{cuts.by}: {label}")
        saved = load_model(folder.model)
        fitted = load_model(folder.base) if folder.base.exists() else saved
        assigned = assign(fitted.mixture, part, groups=groups, temperature=temperature_of(fitted))
        made = profile(
            saved.mixture,
            part,
            title=earlier.source.title,
            reason=earlier.source.reason,
            outcomes=outcomes,
            assigned=replace(assigned, labels=self._labels(earlier)[rows]),
            numbers=saved.numbers,
            secret=self.secret or own_secret(),
        )
        made = made.renamed(dict(enumerate(earlier.cluster_names)))
        known = [one.stability for one in earlier.clusters if one.stability is not None]
        return made.with_stability(known) if len(known) == made.k else made

    def _labels(self, own: Profile) -> Ints:
        """Return the place of each record's cluster, as the run's assignments have it."""
        table = RunFolder(self.folder).load_assignments()
        rows = pc.index_in(self.cohort.ids, table["id"].combine_chunks())
        if rows.null_count:
            raise RecordsError("slices.records_changed")
        numbers = table["cluster"].take(rows).to_numpy()
        return np.asarray(own.places_of(numbers), dtype=np.int64)


def _half_intervals(full: Slices, published: Slices, min_cell: int) -> Floats:
    """Return half of the interval of standardised shares: 1.96 √(p(1 − p) Σ_g mix_g² / n_g).

    n_g are the effective records of a slice in a stratum, of those that are shown; p the share.
    """
    half = np.full(published.share.shape, np.nan)
    cells = full.cells
    if cells is None or not published.mix:
        return half
    kept = [full.labels.index(label) for label in published.labels]
    strata, mix = cells.strata[kept][..., -1], cells.mix
    if min_cell:
        protector = CountProtector(min_cell, cells.counts[:, -1].sum(dtype=np.uint64))
        own = replace(cells, strata=cells.strata[kept], strata_keys=cells.strata_keys[kept])
        strata, mix = protect_strata(own, protector)
    whole = np.maximum(np.nan_to_num(published.counts[:, -1:]), 1)
    n = strata * np.nan_to_num(published.effective)[:, None] / whole
    held = np.where(strata > 0, mix, 0.0)
    held = held / np.maximum(held.sum(axis=1, keepdims=True), 1e-300)
    spread = (held**2 / np.maximum(n, 1)).sum(axis=1)
    p = published.standardised
    return np.asarray(np.round(Z * np.sqrt(p * (1 - p) * spread[:, None]), 4))
