"""Records of a new file in the clusters of a run, compared with the run's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from comorb.errors import RecordsError
from comorb.model.arrays import Floats, Indices, Keys, Mask
from comorb.profiles.assignment import REVIEW_BELOW, Assignment, concatenate_assignments
from comorb.profiles.noise import CountProtector, append_whole, record_keys
from comorb.profiles.profile import Profile
from comorb.profiles.rounded import round_count
from comorb.records.cohort import Cohort
from comorb.records.export import export
from comorb.records.spec import CohortSpec
from comorb.runs.assign import Scorer, assign_blocks, assignment_rows
from comorb.runs.cohorts import Unknown, align, open_records, spec_for_model
from comorb.runs.drift import MIN_CHANGE, Drift, density, drift
from comorb.runs.folder import load_profile, load_run_model
from comorb.runs.progress import Progress, Reporter, ignore_progress
from comorb.storage import SavedModel

MAX_P = 0.001  # the probability below which a change is no chance
MAX_UNKNOWN_CODES = 5  # unknown codes that are listed, at most


@dataclass(frozen=True)
class Group:
    """One cluster in a new file; None is suppressed. ``changed`` is beyond chance and a point."""

    number: int
    name: str
    records: int | None
    share: float | None
    then: float | None  # its share in the run
    changed: bool
    doubtful: int | None  # records whose probability is low


@dataclass(frozen=True)
class ChangedCode:
    """A code whose share of the records changed."""

    code: str
    label: str
    now: float
    then: float


@dataclass(frozen=True)
class NewRecords:
    """The records of a new file in the clusters of a run, and what changed since it was made."""

    records: int | None
    left_out: int | None  # by the rules of the run
    groups: tuple[Group, ...]
    codes: tuple[ChangedCode, ...]  # those that changed most
    fits: bool | None  # whether the clusters still describe the records; None when not known
    unknown: tuple[Unknown, ...]  # codes that the clusters don't know, the most common
    strange: float  # their share of all mentions


@dataclass(frozen=True)
class NewRecordsRequest:
    """How the records of a new file are compared.

    ``worklist`` is where the cluster of each record goes; with ``min_cell``, counts are protected
    by keys of the ``secret``; fewer records than ``fewest`` are refused.
    """

    worklist: Path | None = None
    min_cell: int = 0
    secret: bytes = b""
    fewest: int = 2


def compare_new_records(
    run: str | Path,
    records: Any,
    reading: CohortSpec | None,
    asked: NewRecordsRequest,
    report: Reporter = ignore_progress,
) -> NewRecords:
    """Put the records of a new file into the clusters of a run, and compare them with its own."""
    saved = load_run_model(run)
    wanted = spec_for_model(saved, reading)
    with open_records(records, wanted, None, None, report) as (opened, executor):
        cohort = opened.load()
        if len(cohort) < asked.fewest:
            raise RecordsError("run.too_few_records", least=asked.fewest)
        report(Progress("writing", f"Assigning {len(cohort):,} records"))
        place, unknown = align(cohort, saved.codes, saved.left_out, executor)
        parts = list(assign_blocks(cohort, Scorer.of(saved, place), executor))
        if asked.worklist is not None:
            export(_worklist_rows(saved, parts), asked.worklist, force=True)
        assigned = concatenate_assignments([part for _, part in parts])
        blocks = cohort.blocks(saved.mixture.variables)
        found = density(saved.mixture, blocks, executor, place)
    shares = np.bincount(assigned.labels, minlength=len(saved.clusters)) / len(cohort)
    changed = drift(saved, shares, *found)
    shown = load_profile(run)
    if asked.min_cell:
        shown = shown.protected(asked.min_cell)
    view = _CountView(cohort, asked)
    gone = cohort.ledger.chain("records")
    strange = sum(one.records for one in unknown) / max(cohort.matrix.nnz, 1)
    return NewRecords(
        records=_whole_or_none(view.every),
        left_out=view.round_count(gone[0].before - gone[-1].after),
        groups=_compare_groups(shown, view, assigned, changed),
        codes=_changed_codes(shown, view, saved.codes, changed, place),
        fits=changed.fits,
        unknown=tuple(
            replace(one, records=view.round_count(one.records) or 0)
            for one in unknown[:MAX_UNKNOWN_CODES]
            if view.round_count(one.records) is not None
        ),
        strange=round(strange, 2),
    )


@dataclass(frozen=True)
class _CountView:
    """Counts of the records of a file, as they may be shown."""

    cohort: Cohort
    asked: NewRecordsRequest

    @cached_property
    def _keys(self) -> Keys:
        return record_keys(self.cohort, self.asked.secret)

    @cached_property
    def _protector(self) -> CountProtector:
        return CountProtector(self.asked.min_cell, self._keys.sum(dtype=np.uint64))

    def _sets(self, sets: list[Mask]) -> tuple[Floats, Keys]:
        """Return how many records are in each of some sets, and their keys."""
        keys = [self._keys[one].sum(dtype=np.uint64) for one in sets] if self.asked.min_cell else []
        return np.array([float(one.sum()) for one in sets]), np.array(keys, dtype=np.uint64)

    def divided(self, sets: list[Mask]) -> Floats:
        """Return how many records are in each of the sets that all records are divided into."""
        sizes, keys = self._sets(sets)
        if self.asked.min_cell:
            return self._protector.table(*append_whole(sizes, keys))[:-1]
        return sizes

    def part(self, one: Mask, whole: Mask, view: float) -> float:
        """Return how many records are in a part of a set whose published count is known."""
        sizes, keys = self._sets([one])
        if self.asked.min_cell:
            true = self._sets([whole])[0]
            sizes = self._protector.part_counts(sizes, keys, np.array([view]), true)
        return float(sizes[0])

    @cached_property
    def every(self) -> float:
        """How many records there are."""
        sizes, keys = self._sets([np.ones(len(self.cohort), dtype=bool)])
        return float((self._protector.counts(sizes, keys) if self.asked.min_cell else sizes)[0])

    def round_count(self, number: int) -> int | None:
        """Return a number of records that no keys are known of."""
        return round_count(number, self.asked.min_cell) if self.asked.min_cell else number


def _whole_or_none(value: float) -> int | None:
    return None if np.isnan(value) else int(value)


def _compare_groups(
    shown: Profile, view: _CountView, assigned: Assignment, changed: Drift
) -> tuple[Group, ...]:
    """Return each cluster with its records and its share, then and now."""
    inside = [assigned.labels == place for place in range(shown.k)]
    sizes = view.divided(inside)
    total = np.nansum(sizes)
    groups = []
    for place, (cluster, change) in enumerate(zip(shown.clusters, changed.clusters, strict=True)):
        uncertain = inside[place] & (assigned.top < REVIEW_BELOW)
        doubtful = view.part(uncertain, inside[place], sizes[place])
        share = None if np.isnan(sizes[place]) else round(float(sizes[place] / total), 4)
        apart = 0.0 if share is None or cluster.share is None else abs(share - cluster.share)
        groups.append(
            Group(
                number=cluster.number,
                name=cluster.name,
                records=_whole_or_none(sizes[place]),
                share=share,
                then=cluster.share,
                changed=bool(apart >= MIN_CHANGE and change.p < MAX_P),
                doubtful=_whole_or_none(doubtful),
            )
        )
    return tuple(groups)


def _changed_codes(
    shown: Profile, view: _CountView, names: Sequence[str], changed: Drift, place: Indices
) -> tuple[ChangedCode, ...]:
    """Return the codes whose shares changed most, whose counts may be published."""
    every = np.ones(len(view.cohort), dtype=bool)
    column = {int(own): at for at, own in enumerate(place) if own >= 0}
    listed = {code: at for at, code in enumerate(shown.codes)}
    matrix = view.cohort.matrix.tocsc()
    codes = []
    for own in changed.places:
        carriers = np.zeros(len(view.cohort), dtype=bool)
        if own in column:
            at = column[own]
            carriers[matrix.indices[matrix.indptr[at] : matrix.indptr[at + 1]]] = True
        now, before = view.part(carriers, every, view.every) / view.every, listed.get(names[own])
        then = np.nan if before is None else float(shown.overall[before])
        if before is not None and abs(now - then) >= MIN_CHANGE:
            label = shown.labels[before]
            codes.append(ChangedCode(names[own], label, round(now, 3), round(then, 3)))
    return tuple(sorted(codes, key=lambda one: -abs(one.now - one.then)))


def _worklist_rows(
    saved: SavedModel, parts: list[tuple[pa.Array, Any]]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a worklist: the cluster of each record, and whether it is in doubt."""
    names = pa.array(saved.clusters)
    for ids, part in parts:
        rows = assignment_rows(ids, part, saved.numbers)
        yield pa.record_batch(
            {
                "id": rows["id"],
                "cluster": rows["cluster"],
                "name": names.take(pa.array(part.labels)),
                "probability": rows["confidence"],
                "doubtful": pa.array(np.where(part.top < REVIEW_BELOW, "yes", "")),
            }
        )
