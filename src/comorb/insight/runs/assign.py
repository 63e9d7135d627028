"""Scoring: new records to the clusters of a model, prepared as its training data were."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from comorb.errors import RecordsError
from comorb.insight.profile.assignment import Assignment, assign
from comorb.model.arrays import Floats, Ints
from comorb.records.alignment import Unknown, align
from comorb.records.cohort import Cohort
from comorb.records.export import export
from comorb.records.ledger import Ledger
from comorb.records.parts import open_parts
from comorb.records.preparation import Preparation
from comorb.storage import SavedModel, load_model

MODEL = "model.comorb"

Tell = Callable[[str], None]


def silent(_: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, eq=False)
class Tally:
    """How many records went to each cluster.

    Attributes
    ----------
    clusters, numbers : tuple of str and of int
        The names and the numbers of the clusters.
    sizes, sure : ndarray of shape (k,)
        The records of each, and the summed probabilities that they belong there.
    ledger : Ledger
        What became of the records that were read.
    unknown : tuple of Unknown
        Codes that the model doesn't know, the most common first.
    """

    clusters: tuple[str, ...]
    numbers: tuple[int, ...]
    sizes: Ints
    sure: Floats
    ledger: Ledger
    unknown: tuple[Unknown, ...]


@dataclass(frozen=True, eq=False)
class Assigned:
    """The cluster of each record.

    Attributes
    ----------
    ids : pyarrow.Array of strings
        The records.
    assignment : Assignment
        Their clusters, and how surely.
    clusters, numbers : tuple of str and of int
        The names and the numbers of the clusters.
    ledger : Ledger
        What became of the records that were read.
    unknown : tuple of Unknown
        Codes that the model doesn't know, which say nothing about a record's cluster.
    """

    ids: pa.Array
    assignment: Assignment
    clusters: tuple[str, ...]
    numbers: tuple[int, ...]
    ledger: Ledger
    unknown: tuple[Unknown, ...] = ()

    @property
    def tally(self) -> Tally:
        """How many records each cluster has, and what became of the others."""
        sizes, sure = _counted(self.assignment, len(self.clusters))
        return Tally(self.clusters, self.numbers, sizes, sure, self.ledger, self.unknown)

    def save(self, path: str | Path, force: bool = False) -> None:
        """Write id, cluster (its number) and confidence to a CSV or Parquet file."""
        found = self.assignment
        rows = pa.Table.from_batches([as_rows(self.ids, found.labels, found.top, self.numbers)])
        export(rows.to_batches(max_chunksize=1 << 16), path, force)


def as_rows(ids: pa.Array, labels: Ints, top: Floats, numbers: Sequence[int]) -> pa.RecordBatch:
    """Return the rows of a file of assignments."""
    return pa.record_batch(
        {
            "id": ids,
            "cluster": pa.array(np.asarray(numbers)[labels]),
            "confidence": pa.array(top.round(6)),
        }
    )


def assign_records(
    model: str | Path,
    records: Any,
    reading: Preparation | None = None,
    *,
    every: bool = False,
    memory: str | None = None,
    tell: Tell = silent,
) -> Assigned:
    """Assign new records to the clusters of a model file, prepared as its training data were.

    Parameters
    ----------
    model : path
        A model file, or the folder of a run.
    records : anything that `read_records` reads
        The new records.
    reading : Preparation, optional
        Their table and layout, when they differ from those of the training data.
    every : bool, default=False
        Whether to assign also the records that the model's cohort rules would leave out.
    memory : str, optional
        The most that reading may hold, such as '2GB'.
    tell : callable, optional
        Is told what is being done.

    Returns
    -------
    Assigned
        The cluster of each record, and the codes that the model doesn't know.
    """
    saved, preparation = _opened(model, reading)
    tell("Reading the records")
    cohort = preparation.read(records, memory)
    if not every:
        cohort = preparation.select(cohort)
    aligned, unknown = align(cohort, saved.codes, saved.names, saved.left_out)
    tell(f"Assigning {len(aligned):,} records")
    assignment = assign(saved.mixture, aligned)
    return Assigned(aligned.ids, assignment, saved.clusters, saved.numbers, aligned.ledger, unknown)


def assign_stream(  # noqa: PLR0913 - what is told beside the data is told by name
    model: str | Path,
    records: Any,
    path: str | Path,
    reading: Preparation | None = None,
    *,
    every: bool = False,
    memory: str | None = None,
    force: bool = False,
    tell: Tell = silent,
) -> Tally:
    """Assign new records of any number, and write them as they come, in bounded memory.

    Parameters
    ----------
    model, records, reading, every, tell
        As in `assign_records`.
    path : path
        A .csv or .parquet file, as `Assigned.save` writes it: whole or not at all.
    memory : str, optional
        About the most to hold, such as '2GB'.
    force : bool, default=False
        Whether a file that is there may be replaced.

    Returns
    -------
    Tally
        How many records went to each cluster, and the codes that the model doesn't know.
    """
    saved, preparation = _opened(model, reading)
    k = len(saved.clusters)
    sizes, sure = np.zeros(k, dtype=np.int64), np.zeros(k)
    strangers: dict[tuple[str, str], int] = {}
    ledger = Ledger()

    def scored(parts: Iterable[Cohort]) -> Iterator[pa.RecordBatch]:
        nonlocal ledger
        for part in parts:
            chosen = part if every else preparation.select(part)
            aligned, unknown = align(chosen, saved.codes, saved.names, saved.left_out)
            for one in unknown:
                key = one.code, one.name
                strangers[key] = strangers.get(key, 0) + one.records
            found = assign(saved.mixture, aligned)
            counts, summed = _counted(found, k)
            np.add(sizes, counts, out=sizes)
            np.add(sure, summed, out=sure)
            ledger = ledger + aligned.ledger
            tell(f"{sizes.sum():,} records assigned")
            yield as_rows(aligned.ids, found.labels, found.top, saved.numbers)
        if not sizes.any():
            raise RecordsError("No record is left after the rules of the model; see --all.")

    tell("Reading the records")
    with open_parts(records, preparation, memory) as parts:
        export(scored(parts), path, force)
    order = sorted((item for item in strangers.items() if item[1]), key=lambda one: (-one[1], one))
    unknown = tuple(Unknown(code, name, count) for (code, name), count in order)
    return Tally(saved.clusters, saved.numbers, sizes, sure, ledger, unknown)


def _opened(model: str | Path, reading: Preparation | None) -> tuple[SavedModel, Preparation]:
    """Return a model, and how to prepare new records for it."""
    saved = load_model(Path(model) / MODEL if Path(model).is_dir() else model)
    fitted = Preparation.from_dict(saved.preparation)
    return saved, fitted.for_new_records(saved.system, reading)


def _counted(found: Assignment, k: int) -> tuple[Ints, Floats]:
    sizes = np.bincount(found.labels, minlength=k)
    return sizes, np.bincount(found.labels, found.top, k).astype(np.float64)
