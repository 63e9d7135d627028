"""Scoring: new records to the clusters of a model, prepared as its training data were."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from comorb.insight.assignment import Assignment, assign
from comorb.model.kernels import Floats, Ints
from comorb.records.alignment import Unknown, align
from comorb.records.export import export
from comorb.records.ledger import Ledger
from comorb.records.preparation import Preparation
from comorb.storage import load_model

MODEL = "model.comorb"

Tell = Callable[[str], None]


def silent(_: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, eq=False)
class Assigned:
    """The cluster of each record.

    Attributes
    ----------
    ids : pyarrow.Array of strings
        The records.
    assignment : Assignment
        Their clusters, and how surely.
    clusters : tuple of str
        The names of the clusters.
    ledger : Ledger
        What became of the records that were read.
    unknown : tuple of Unknown
        Codes that the model doesn't know, which say nothing about a record's cluster.
    """

    ids: pa.Array
    assignment: Assignment
    clusters: tuple[str, ...]
    ledger: Ledger
    unknown: tuple[Unknown, ...] = ()

    def save(self, path: str | Path, force: bool = False) -> None:
        """Write id, cluster (from 1 on) and confidence to a CSV or Parquet file."""
        rows = pa.Table.from_batches(
            [as_rows(self.ids, self.assignment.labels, self.assignment.top)]
        )
        export(rows.to_batches(max_chunksize=1 << 16), path, force)


def as_rows(ids: pa.Array, labels: Ints, top: Floats) -> pa.RecordBatch:
    """Return the rows of a file of assignments."""
    return pa.record_batch(
        {
            "id": ids,
            "cluster": pa.array(labels + 1),
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
    saved = load_model(Path(model) / MODEL if Path(model).is_dir() else model)
    fitted = Preparation.from_dict(saved.preparation)
    preparation = fitted.for_new_records(saved.system, reading)
    tell("Reading the records")
    cohort = preparation.read(records, memory)
    if not every:
        cohort = preparation.select(cohort)
    aligned, unknown = align(cohort, saved.codes, saved.names, saved.left_out)
    tell(f"Assigning {len(aligned):,} records")
    assignment = assign(saved.mixture, aligned)
    return Assigned(aligned.ids, assignment, saved.clusters, aligned.ledger, unknown)
