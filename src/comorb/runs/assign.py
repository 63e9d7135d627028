"""Assignment of each record to its most probable cluster, where its block is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any, Self, TypeGuard

import numpy as np
import pyarrow as pa

from comorb.engines.base import Engine
from comorb.engines.block_files import ID, RowGroup, read_group
from comorb.errors import StorageError
from comorb.model.arrays import Floats, Indices, Ints
from comorb.model.blocks import Pass, Rows, map_blocks, move_row_columns, run_pass, snap_to_grid
from comorb.model.mixture import Mixture
from comorb.profiles.assignment import Assignment, assign_rows, concatenate_assignments
from comorb.profiles.build import RecordAccumulator
from comorb.profiles.burden import PatientSets
from comorb.profiles.noise import record_keys
from comorb.records.cohort import Cohort
from comorb.records.cohort_file import CohortFile
from comorb.records.export import check_export, export, join_parts, read_parts
from comorb.records.ledger import Ledger
from comorb.records.spec import CohortSpec
from comorb.remote import Place, place_of, removed
from comorb.runs.cohorts import (
    AnyCohort,
    Unknown,
    align,
    checkpoint_folder,
    open_records,
    spec_for_model,
)
from comorb.runs.drift import Drift, density, drift
from comorb.runs.folder import RunFolder, load_run_model
from comorb.runs.progress import Progress, Reporter, ignore_progress
from comorb.storage import SavedModel, check_folder

PART_NAME = "part-{:06d}{}"


@dataclass(frozen=True, eq=False)
class Scorer:
    """Finds the cluster of a record, by a mixture and the numbers of its clusters.

    ``place`` has the mixture's column of each code of the records; see `align`.
    """

    mixture: Mixture
    temperature: float
    numbers: tuple[int, ...]
    place: Indices | None = None

    @classmethod
    def of(cls, saved: SavedModel, place: Indices | None = None) -> Scorer:
        """Return that of a saved model."""
        return cls(saved.mixture, temperature_of(saved), saved.numbers, place)

    def assign(self, rows: Rows) -> Assignment:
        """Return the clusters of the records of a block."""
        if self.place is not None:
            rows = move_row_columns(self.place, self.mixture.n_columns, rows)
        return assign_rows(self.mixture, None, self.temperature, rows)


def temperature_of(saved: SavedModel) -> float:
    """Return what the confidence of a model's records is tempered by; 1 in models that lack it."""
    return float(saved.run.get("temperature", 1.0))


def assign_blocks(
    cohort: AnyCohort, scorer: Scorer, executor: Executor | None
) -> Iterator[tuple[pa.Array, Assignment]]:
    """Yield the ids and the clusters of the records of each block."""
    start = 0
    found = map_blocks(scorer.assign, cohort.blocks(scorer.mixture.variables), executor)
    for number, part in enumerate(found):
        yield cohort.ids_of(number, start, part.labels.size), part
        start += part.labels.size


def assignment_rows(ids: pa.Array, part: Assignment, numbers: Sequence[int]) -> pa.RecordBatch:
    """Return the rows of a file of assignments."""
    return pa.record_batch(
        {
            "id": ids,
            "cluster": pa.array(np.asarray(numbers)[part.labels]),
            "confidence": pa.array(part.top.round(6)),
        }
    )


@dataclass(frozen=True, eq=False)
class Totals:
    """Totals over assigned records, as exact sums."""

    sizes: Ints  # (k,): records of each cluster
    sure: Floats  # (k,): the summed probabilities that they belong there
    soft: Floats  # (k,) and (k, k): as in `Assignment`
    table: Floats

    @classmethod
    def of(cls, part: Assignment, records: int, weight: float) -> Totals:
        """Return those of a block, of so many records of such a weight in all."""
        k = part.soft.size
        sure = np.bincount(part.labels, snap_to_grid(part.top, records), k).astype(np.float64)
        sums = snap_to_grid(part.soft, weight), snap_to_grid(part.table, weight)
        return cls(np.bincount(part.labels, minlength=k), sure, *sums)

    def __add__(self, other: Self) -> Totals:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Totals(*(one + two for one, two in pairs))


class IdentifiedRows(Rows):
    """One block, with the ids of its records and its own number."""

    ids: pa.Array
    number: int


@dataclass(frozen=True)
class IdentifiedGroup(RowGroup):
    """A loader of one row group with the ids of its records; ``place`` is its number among all."""

    place: int = 0

    def __call__(self) -> Rows:
        """Read the row group."""
        made = IdentifiedRows(*super().__call__())
        made.ids = read_group(self.path, self.number, [ID])[ID].combine_chunks()
        made.number = self.place
        return made


def workers_write(cohort: AnyCohort, executor: Executor | None) -> TypeGuard[CohortFile]:
    """Return whether other processes write the clusters of these records."""
    return isinstance(executor, Engine) and cohort.path is not None


def score_parts(
    cohort: AnyCohort,
    scorer: Scorer,
    where: tuple[Place, str],
    executor: Executor | None,
    extra: BlockAccumulator | None = None,
) -> list[Any]:
    """Have the workers write the cluster of each record, a file for each block, to a folder.

    ``where`` is the folder and how its files end. `Totals` are returned, and what is extra.
    """
    blocks = cohort.blocks(scorer.mixture.variables)
    groups = [load for load in blocks.loaders if isinstance(load, RowGroup)]
    named = tuple(IdentifiedGroup(**vars(one), place=place) for place, one in enumerate(groups))
    whole = blocks.n_rows, blocks.weight
    write = partial(_score_block, scorer, (str(where[0]), where[1]), whole, extra)
    job = Pass(write, partial(_finish_shard, extra), 1 + (extra.shards if extra else 0))
    return run_pass(job, replace(blocks, loaders=named, journal=None), executor)


def _score_block(
    scorer: Scorer,
    where: tuple[str, str],
    whole: tuple[int, float],
    extra: BlockAccumulator | None,
    rows: Rows,
) -> list[Any]:
    assert isinstance(rows, IdentifiedRows)  # noqa: S101 - the loaders make no others
    part = scorer.assign(rows)
    folder, ending = place_of(where[0]), where[1]
    if isinstance(folder, Path) and not folder.is_dir():
        raise StorageError("assign.unseen_folder", folder=folder)
    batch = assignment_rows(rows.ids, part, scorer.numbers)
    export([batch], folder / PART_NAME.format(rows.number, ending), force=True)
    return [Totals.of(part, *whole), *(extra.of(rows.number, part) if extra else ())]


def _finish_shard(extra: BlockAccumulator | None, one: Any) -> Any:
    return one if extra is None or isinstance(one, Totals) else extra.finish(one)


@contextmanager
def parts_folder(path: Place) -> Iterator[Place]:
    """Yield a hidden folder next to a file or folder, for its parts, and remove it at the end."""
    folder = path.with_name(f".{path.name}.parts")
    removed(folder)
    try:
        folder.mkdir(parents=True)
        yield folder
    except OSError as error:
        raise StorageError("write.make_room", path=path, reason=error.strerror or error) from None
    finally:
        removed(folder)


def check_parts(path: Place, force: bool) -> None:
    """Refuse a folder of parts where something else is, or where parts are unless by ``force``."""
    check_folder(path, force)
    files = path.iterdir() if path.is_dir() else ()
    if not all(fnmatchcase(file.name, "part-*.parquet") for file in files):
        raise StorageError("assign.other_files", path=path)


def write_assignments(
    cohort: AnyCohort, scorer: Scorer, path: Place, executor: Executor | None, force: bool = False
) -> Totals:
    """Write the cluster of each record to a file, or to a folder of .parquet parts."""
    blocks = cohort.blocks(scorer.mixture.variables)
    held: list[Totals] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for ids, part in assign_blocks(cohort, scorer, executor):
            held.append(Totals.of(part, blocks.n_rows, blocks.weight))
            yield assignment_rows(ids, part, scorer.numbers)

    if path.suffix and not workers_write(cohort, executor):
        export(batches(), path, force)
        return reduce(add, held)
    with parts_folder(path) as folder:
        if workers_write(cohort, executor):
            where = folder, path.suffix.lower() or ".parquet"
            held += score_parts(cohort, scorer, where, executor)
        else:
            for number, batch in enumerate(batches()):
                export([batch], folder / PART_NAME.format(number, ".parquet"))
        if path.suffix:
            join_parts(list(folder.iterdir()), path, force)
        else:
            check_parts(path, force)
            removed(path)
            if isinstance(folder, Path):
                folder.rename(str(path))
            else:  # a store renames file by file
                for one in folder.iterdir():
                    one.move(path / one.name)
    return reduce(add, held)


@dataclass(frozen=True, eq=False)
class AssignmentSummary:
    """How many records went to each cluster."""

    clusters: tuple[str, ...]
    numbers: tuple[int, ...]
    sizes: Ints
    sure: Floats  # the summed probabilities that the records of each cluster belong there
    ledger: Ledger
    unknown: tuple[Unknown, ...]  # codes that the model doesn't know, the most common first
    drift: Drift  # what changed since the model was fitted


def assign_records(  # noqa: PLR0913 - options are given by name
    model: str | Path,
    records: Any,
    path: str | Place,
    reading: CohortSpec | None = None,
    *,
    every: bool = False,
    memory: str | None = None,
    engine: str | None = None,
    force: bool = False,
    report: Reporter = ignore_progress,
) -> AssignmentSummary:
    """Assign new records to the clusters of a model, prepared as its training data were.

    The .csv or .parquet file at ``path`` gets id, cluster (its number) and confidence; a path
    without such an ending becomes a folder of .parquet parts, which is there when all are. On a
    cluster the workers write them. ``reading`` has the table and layout where they differ from the
    training data's; with ``every``, records that the model's rules would leave out are assigned
    too. ``memory`` and ``engine`` are as in `comorb.runs.run.fit_records`.
    """
    path = place_of(path)
    (check_export if path.suffix else check_parts)(path, force)
    saved = load_run_model(model)
    asked = spec_for_model(saved, reading, every)
    work = checkpoint_folder(path.absolute(), records, asked) if engine else nullcontext()
    with (
        work as folder,
        open_records(records, asked, memory, engine, report, folder) as (cohort, executor),
    ):
        report(Progress("writing", f"Assigning {len(cohort):,} records"))
        place, unknown = align(cohort, saved.codes, saved.left_out, executor)
        totals = write_assignments(cohort, Scorer.of(saved, place), path, executor, force)
        sizes, blocks = totals.sizes, cohort.blocks(saved.mixture.variables)
        found = density(saved.mixture, blocks, executor, place)
        changed = drift(saved, sizes / max(sizes.sum(), 1), *found)
        return AssignmentSummary(
            saved.clusters, saved.numbers, sizes, totals.sure, cohort.ledger, unknown, changed
        )


N_SHARDS = 16  # of the patients that are counted
_RECORD_FIELDS = ("labels", "top", "margin", "entropy", "second", "keys")  # in `Assignment`


def assign_run(
    cohort: AnyCohort,
    scorer: Scorer,
    folder: RunFolder,
    accumulator: RecordAccumulator,
    executor: Executor | None,
    step: int,
    place: Place | None = None,
) -> Assignment:
    """Write the cluster of each record to a run's folder; return those of each ``step``-th record.

    Burden and slices are added up meanwhile. On a cluster its workers write, to ``place`` or else
    next to the folder's file.
    """
    sampled: list[Assignment] = []

    def rows() -> Iterator[pa.RecordBatch]:
        start = 0
        for number, (ids, part) in enumerate(assign_blocks(cohort, scorer, executor)):
            own = cohort.part(number, start, len(ids))
            part = add_keys(part, own, accumulator.secret)
            accumulator.add(own, part.labels, part.keys)
            sampled.append(part.subsample(step, -start % step))
            start += len(ids)
            yield assignment_rows(ids, part, scorer.numbers)

    if not workers_write(cohort, executor):
        folder.save_assignments(rows())
        return concatenate_assignments(sampled)
    place = place or folder.assignments
    accumulator.narrow = True
    own = accumulator.k, accumulator.secret, accumulator.wanted
    with parts_folder(place) as parts, parts_folder(place.with_name(f"{place.name}.some")) as some:
        samples = SampledAssignments(str(some), step, cohort.starts)
        extra = BlockAccumulator(cohort, *own, samples)
        where = parts, folder.assignments.suffix
        totals, found, *people = score_parts(cohort, scorer, where, executor, extra)
        join_parts(list(parts.iterdir()), folder.assignments)
        assigned = samples.read(totals)
    accumulator += found
    if accumulator.sums is not None and people[0][0].size:
        counts, keys = (np.sum(some, axis=0) for some in zip(*people, strict=True))
        accumulator.sums.counted = counts, keys
    return assigned


def add_keys(part: Assignment, records: Cohort, secret: bytes | None) -> Assignment:
    """Return the clusters of some records with the keys of these."""
    return part if secret is None else replace(part, keys=record_keys(records, secret))


@dataclass(frozen=True, eq=False)
class SampledAssignments:
    """The clusters of each ``step``-th record, in files of a folder that workers write.

    ``starts`` has how many records are before each block.
    """

    folder: str
    step: int
    starts: Ints

    def write(self, number: int, part: Assignment) -> None:
        """Write those of a block."""
        some = part.subsample(self.step, int(-self.starts[number] % self.step))
        held = {name: getattr(some, name) for name in _RECORD_FIELDS}
        batch = pa.record_batch({name: one for name, one in held.items() if one is not None})
        export([batch], place_of(self.folder) / PART_NAME.format(number, ".parquet"), force=True)

    def read(self, totals: Totals) -> Assignment:
        """Return those of all blocks, with the sums over all records in proportion."""
        table = read_parts(place_of(self.folder).iterdir())
        held = {name: table[name].to_numpy() for name in table.column_names}
        return Assignment(soft=totals.soft / self.step, table=totals.table / self.step, **held)


@dataclass(frozen=True, eq=False, repr=False)
class BlockAccumulator:
    """Adds up burden and slices of the records of a block, where the block is.

    The secret travels with it, and is in nothing that it returns or shows of itself.
    """

    cohort: AnyCohort
    k: int
    secret: bytes | None
    wanted: Sequence[str] | None
    samples: SampledAssignments
    shards: int = 1 + N_SHARDS

    def of(self, number: int, part: Assignment) -> list[Any]:
        """Return what was added up of a block, and its patients in shards."""
        accumulator = RecordAccumulator(self.k, self.secret, self.wanted, narrow=True)
        own = self.cohort.part(number, 0, part.labels.size)
        part = add_keys(part, own, self.secret)
        self.samples.write(number, part)
        sums = accumulator.add(own, part.labels, part.keys)
        accumulator.secret = None
        people, sums.people = sums.people, PatientSets(self.k)
        return [accumulator, *people.split(N_SHARDS)]

    def finish(self, one: Any) -> Any:
        """Return how many people there are, where they are people."""
        return one.counted(self.secret) if isinstance(one, PatientSets) else one
