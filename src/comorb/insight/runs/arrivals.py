"""Arrivals: the records of a new file in the clusters of a run, beside the run's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from comorb.engines import open_engine
from comorb.errors import RecordsError
from comorb.insight.profile.assignment import Assignment, joined
from comorb.insight.profile.keys import record_keys
from comorb.insight.profile.noise import parts_of, protected_counts
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.rough import rough
from comorb.insight.profile.rules import REVIEW
from comorb.insight.runs.alignment import Unknown, align
from comorb.insight.runs.cohorts import open_cohort
from comorb.insight.runs.drift import POINTS, Drift, density, drift
from comorb.insight.runs.folder import load_profile, load_run_model
from comorb.insight.runs.progress import Progress, Tell, silent
from comorb.insight.runs.scoring import (
    Scorer,
    assigned_blocks,
    assignment_rows,
    temperature_of,
)
from comorb.model.arrays import Floats, Indices, Keys, Mask
from comorb.records.cohort import Cohort
from comorb.records.export import export
from comorb.records.preparation import Preparation
from comorb.storage import SavedModel

SURE = 0.001  # the probability below which a change is no chance
STRANGE = 5  # codes that the model doesn't know, of which are told


@dataclass(frozen=True)
class Group:
    """One cluster in a new file; None isn't told. ``changed`` is beyond chance and a point."""

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
class Arrivals:
    """The records of a new file in the clusters of a run, and what changed since it was made."""

    records: int | None
    left_out: int | None  # by the rules of the run
    groups: tuple[Group, ...]
    codes: tuple[ChangedCode, ...]  # those that changed most
    fits: bool | None  # whether the clusters still describe the records; None when not known
    unknown: tuple[Unknown, ...]  # codes that the clusters don't know, the most common
    strange: float  # their share of all mentions


@dataclass(frozen=True)
class Asked:
    """What is asked of a new file.

    ``worklist`` is where the cluster of each record goes; with ``least``, counts are protected by
    keys of the ``secret``; fewer records than ``fewest`` are refused.
    """

    worklist: Path | None = None
    least: int = 0
    secret: bytes = b""
    fewest: int = 2


def receive(
    run: str | Path,
    records: Any,
    reading: Preparation | None,
    asked: Asked,
    tell: Tell = silent,
) -> Arrivals:
    """Put the records of a new file into the clusters of a run, and compare them with its own."""
    saved = load_run_model(run)
    features = [variable.feature for variable in saved.mixture.variables]
    fitted = Preparation.from_dict(saved.preparation)
    wanted = fitted.for_new_records(saved.system, reading, features=features)
    with (
        open_engine() as executor,
        open_cohort(records, wanted, tell=tell) as cohort,
    ):
        assert isinstance(cohort, Cohort)  # noqa: S101 - it is in memory
        if len(cohort) < asked.fewest:
            raise RecordsError(
                f"These are too few records; the least that can be shown is {asked.fewest}."
            )
        tell(Progress("writing", f"Assigning {len(cohort):,} records"))
        place, unknown = align(cohort, saved.codes, saved.left_out, executor)
        scorer = Scorer(saved.mixture, temperature_of(saved), saved.numbers, place)
        parts = list(assigned_blocks(cohort, scorer, executor))
        if asked.worklist is not None:
            export(_rows(saved, parts), asked.worklist, force=True)
        assigned = joined([part for _, part in parts])
        blocks = cohort.blocks(saved.mixture.variables)
        found = density(saved.mixture, blocks, executor, place)
    shares = np.bincount(assigned.labels, minlength=len(saved.clusters)) / len(cohort)
    changed = drift(saved, shares, *found)
    shown = load_profile(run)
    if asked.least:
        shown = shown.protected(asked.least)
    told = _Told(cohort, asked)
    gone = cohort.ledger.chain("records")
    strange = sum(one.records for one in unknown) / max(cohort.matrix.nnz, 1)
    return Arrivals(
        records=told.count(np.ones(len(cohort), dtype=bool)),
        left_out=told.rough(gone[0].before - gone[-1].after),
        groups=_groups(shown, told, assigned, changed),
        codes=_codes(shown, told, changed, place),
        fits=changed.fits,
        unknown=tuple(
            replace(one, records=told.rough(one.records) or 0) for one in unknown[:STRANGE]
        ),
        strange=round(strange, 2),
    )


@dataclass(frozen=True)
class _Told:
    """Counts of the records of a file, as they may be told."""

    cohort: Cohort
    asked: Asked

    @cached_property
    def _keys(self) -> Keys:
        return record_keys(self.cohort, self.asked.secret)

    def counts(self, sets: list[Mask], whole: Mask | None = None) -> Floats:
        """Return how many records are in each of some sets, which are parts of a whole or all."""
        sizes = np.array([float(one.sum()) for one in sets])
        if not self.asked.least:
            return sizes
        keys = np.array([self._keys[one].sum(dtype=np.uint64) for one in sets], dtype=np.uint64)
        if whole is None:
            return protected_counts(sizes, keys, self.asked.least)
        among = np.full(sizes.size, float(whole.sum()))
        told = np.full(sizes.size, self.counts([whole])[0])
        return parts_of(sizes, keys, among, told, self.asked.least)

    def count(self, one: Mask) -> int | None:
        """Return how many records are in a set."""
        return _whole(self.counts([one])[0])

    def rough(self, number: int) -> int | None:
        """Return a number of records that no keys are known of."""
        return rough(number, self.asked.least) if self.asked.least else number


def _whole(value: float) -> int | None:
    return None if np.isnan(value) else int(value)


def _groups(shown: Profile, told: _Told, assigned: Assignment, changed: Drift) -> tuple[Group, ...]:
    """Return each cluster with its records and its share, then and now."""
    inside = [assigned.labels == place for place in range(shown.k)]
    sizes = told.counts(inside)
    total = np.nansum(sizes)
    groups = []
    for place, (cluster, change) in enumerate(zip(shown.clusters, changed.clusters, strict=True)):
        doubtful = told.counts([inside[place] & (assigned.top < REVIEW)], inside[place])[0]
        share = None if np.isnan(sizes[place]) else round(float(sizes[place] / total), 4)
        apart = 0.0 if share is None or cluster.share is None else abs(share - cluster.share)
        groups.append(
            Group(
                number=cluster.number,
                name=cluster.name,
                records=_whole(sizes[place]),
                share=share,
                then=cluster.share,
                changed=bool(apart >= POINTS and change.p < SURE),
                doubtful=_whole(doubtful),
            )
        )
    return tuple(groups)


def _codes(shown: Profile, told: _Told, changed: Drift, place: Indices) -> tuple[ChangedCode, ...]:
    """Return the codes whose shares changed most, of which all may be told."""
    every = np.ones(len(told.cohort), dtype=bool)
    column = {int(own): at for at, own in enumerate(place) if own >= 0}
    matrix = told.cohort.matrix.tocsc()
    codes = []
    for own in changed.places:
        carriers = np.zeros(len(told.cohort), dtype=bool)
        if own in column:
            at = column[own]
            carriers[matrix.indices[matrix.indptr[at] : matrix.indptr[at + 1]]] = True
        now = float(told.counts([carriers], every)[0]) / len(every)
        then = float(shown.overall[own])
        if abs(now - then) >= POINTS:
            label = shown.labels[own]
            codes.append(ChangedCode(shown.codes[own], label, round(now, 3), round(then, 3)))
    return tuple(codes)


def _rows(saved: SavedModel, parts: list[tuple[pa.Array, Any]]) -> Iterator[pa.RecordBatch]:
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
                "doubtful": pa.array(np.where(part.top < REVIEW, "yes", "")),
            }
        )
