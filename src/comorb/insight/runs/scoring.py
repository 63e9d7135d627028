"""Scoring: each record to its most probable cluster, by whoever holds its block.

On an engine the workers write what they find, a part for each block, and only sums come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa

from comorb.engines.blockfile import ID, RowGroup, read_group
from comorb.errors import StorageError
from comorb.insight.profile.assignment import Assignment, assign_rows
from comorb.insight.runs.cohorts import AnyCohort
from comorb.model.arrays import Floats, Indices, Ints
from comorb.model.blocks import Engine, Loader, Pass, Rows, map_blocks, rounded, total
from comorb.model.columns import placed
from comorb.model.mixture import Mixture
from comorb.records.archive import CohortFile
from comorb.records.export import export, join_parts
from comorb.remote import Remote, place_of, removed
from comorb.storage import SavedModel, check_folder

PART = "part-{:06d}{}"


@dataclass(frozen=True, eq=False)
class Scorer:
    """What tells the cluster of a record: a mixture, and the numbers of its clusters.

    ``place`` has the mixture's column of each code of the records; see `align`.
    """

    mixture: Mixture
    temperature: float
    numbers: tuple[int, ...]
    place: Indices | None = None

    def assigned(self, rows: Rows) -> Assignment:
        """Return the clusters of the records of a block."""
        own = rows if self.place is None else placed(self.place, self.mixture.n_columns, rows)
        return assign_rows(self.mixture, None, self.temperature, own)


def temperature_of(saved: SavedModel) -> float:
    """Return what the confidence of a model's records is tempered by; 1 in models that lack it."""
    return float(saved.run.get("temperature", 1.0))


def assigned_blocks(
    cohort: AnyCohort, scorer: Scorer, executor: Executor | None
) -> Iterator[tuple[pa.Array, Assignment]]:
    """Yield the ids and the clusters of the records of each block."""
    start = 0
    found = map_blocks(scorer.assigned, cohort.blocks(scorer.mixture.variables), executor)
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
    """What is told of assigned records together, as exact sums."""

    sizes: Ints  # (k,): records of each cluster
    sure: Floats  # (k,): the summed probabilities that they belong there
    soft: Floats  # (k,) and (k, k): as in `Assignment`
    table: Floats

    @classmethod
    def of(cls, part: Assignment, records: int, weight: float) -> Totals:
        """Return those of a block, of so many records of such a weight in all."""
        k = part.soft.size
        sure = np.bincount(part.labels, rounded(part.top, records), k).astype(np.float64)
        sums = rounded(part.soft, weight), rounded(part.table, weight)
        return cls(np.bincount(part.labels, minlength=k), sure, *sums)

    def __add__(self, other: Self) -> Totals:
        return Totals(
            self.sizes + other.sizes,
            self.sure + other.sure,
            self.soft + other.soft,
            self.table + other.table,
        )


class NamedRows(Rows):
    """One block, with the ids of its records and its own number."""

    ids: pa.Array
    number: int


@dataclass(frozen=True)
class NamedGroup(RowGroup):
    """A loader of one row group with the ids of its records; ``place`` is its number among all."""

    place: int = 0

    def __call__(self) -> Rows:
        """Read the row group."""
        made = NamedRows(*super().__call__())
        made.ids = read_group(self.path, self.number, [ID])[ID].combine_chunks()
        made.number = self.place
        return made


def apart(cohort: AnyCohort, executor: Executor | None) -> bool:
    """Tell whether other processes write the clusters of these records."""
    return isinstance(executor, Engine) and isinstance(cohort, CohortFile)


class Beside(Protocol):
    """What else is told of the records of a block, in some shards; see `Pass`."""

    @property
    def shards(self) -> int:
        """How many there are."""

    def of(self, number: int, part: Assignment) -> list[Any]:
        """Return that of a block, by its number."""

    def finish(self, one: Any) -> Any:
        """Return what a shard comes to."""


def score_parts(
    cohort: AnyCohort,
    scorer: Scorer,
    where: tuple[Path | Remote, str],
    executor: Executor | None,
    beside: Beside | None = None,
) -> list[Any]:
    """Have the workers write the cluster of each record, a file for each block, to a folder.

    ``where`` is the folder and how its files end. `Totals` are returned, and what else is asked.
    """
    blocks = cohort.blocks(scorer.mixture.variables)
    groups = [load for load in blocks.loaders if isinstance(load, RowGroup)]
    named: list[Loader] = [NamedGroup(**vars(one), place=place) for place, one in enumerate(groups)]
    whole = blocks.n_rows, blocks.weight
    write = partial(_written, scorer, (str(where[0]), where[1]), whole, beside)
    job = Pass(write, partial(_finished, beside), 1 + (beside.shards if beside else 0))
    return total(job, replace(blocks, loaders=tuple(named), journal=None), executor)


def _written(
    scorer: Scorer,
    where: tuple[str, str],
    whole: tuple[int, float],
    beside: Beside | None,
    rows: Rows,
) -> list[Any]:
    assert isinstance(rows, NamedRows)  # noqa: S101 - the loaders make no others
    part = scorer.assigned(rows)
    folder, ending = where
    place = place_of(folder)
    if isinstance(place, Path) and not place.is_dir():
        raise StorageError(
            f"a worker doesn't see the folder {folder}; write to one that all workers share."
        )
    batch = assignment_rows(rows.ids, part, scorer.numbers)
    export([batch], place / PART.format(rows.number, ending), force=True)
    return [Totals.of(part, *whole), *(beside.of(rows.number, part) if beside else ())]


def _finished(beside: Beside | None, one: Any) -> Any:
    return one if beside is None or isinstance(one, Totals) else beside.finish(one)


@contextmanager
def parts_beside(path: Path | Remote) -> Iterator[Path | Remote]:
    """Yield a hidden folder beside a file or folder, for its parts; what is left of it goes."""
    folder = path.with_name(f".{path.name}.parts")
    removed(folder)
    try:
        folder.mkdir(parents=True)
        yield folder
    except OSError as error:
        raise StorageError(
            f"{path} can't be written: {error.strerror or error}. Make room, or choose another "
            "place."
        ) from None
    finally:
        removed(folder)


def check_parts(path: Path | Remote, force: bool) -> None:
    """Refuse a folder of parts where something else is, or where parts are unless by ``force``."""
    check_folder(path, force)
    held = path.iterdir() if path.is_dir() else ()
    others = [file for file in held if not fnmatchcase(file.name, "part-*.parquet")]
    if others:
        raise StorageError(f"{path} holds other files than parts; choose another place.")


def _move(folder: Path | Remote, path: Path | Remote) -> None:
    """Put a folder in its place; in a store, file by file."""
    if isinstance(folder, Path):
        folder.rename(str(path))
        return
    for one in folder.iterdir():
        one.move(path / one.name)


def write_assigned(
    cohort: AnyCohort,
    scorer: Scorer,
    path: Path | Remote,
    executor: Executor | None,
    force: bool = False,
) -> Totals:
    """Write the cluster of each record to a file, or to a folder of .parquet parts."""
    blocks = cohort.blocks(scorer.mixture.variables)
    held: list[Totals] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for ids, part in assigned_blocks(cohort, scorer, executor):
            held.append(Totals.of(part, blocks.n_rows, blocks.weight))
            yield assignment_rows(ids, part, scorer.numbers)

    if path.suffix and not apart(cohort, executor):
        export(batches(), path, force)
        return reduce(add, held)
    with parts_beside(path) as folder:
        if apart(cohort, executor):
            where = folder, path.suffix.lower() or ".parquet"
            held += score_parts(cohort, scorer, where, executor)
        else:
            for number, batch in enumerate(batches()):
                export([batch], folder / PART.format(number, ".parquet"))
        if path.suffix:
            join_parts(list(folder.iterdir()), path, force)
        else:
            check_parts(path, force)
            removed(path)
            _move(folder, path)
    return reduce(add, held)
