"""Assign: each record to its most probable cluster, block by block, to a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from comorb.engines import open_engine
from comorb.insight.profile.assignment import Assignment, assign_rows
from comorb.insight.runs.alignment import Unknown, align, aligned
from comorb.insight.runs.cohorts import AnyCohort, open_cohort
from comorb.insight.runs.drift import Drift, density, drift
from comorb.insight.runs.folder import load_run_model
from comorb.insight.runs.progress import Progress, Tell, silent
from comorb.model.arrays import Floats, Indices, Ints
from comorb.model.blocks import Rows, map_blocks
from comorb.model.mixture import Mixture
from comorb.records.export import check_export, export
from comorb.records.ledger import Ledger
from comorb.records.preparation import Preparation
from comorb.storage import SavedModel


@dataclass(frozen=True, eq=False)
class Tally:
    """How many records went to each cluster."""

    clusters: tuple[str, ...]
    numbers: tuple[int, ...]
    sizes: Ints
    sure: Floats  # the summed probabilities that the records of each cluster belong there
    ledger: Ledger
    unknown: tuple[Unknown, ...]  # codes that the model doesn't know, the most common first
    drift: Drift  # what changed since the model was fitted


def assign_records(  # noqa: PLR0913 - what is told beside the data is told by name
    model: str | Path,
    records: Any,
    path: str | Path,
    reading: Preparation | None = None,
    *,
    every: bool = False,
    memory: str | None = None,
    engine: str | None = None,
    force: bool = False,
    tell: Tell = silent,
) -> Tally:
    """Assign new records to the clusters of a model, prepared as its training data were.

    The .csv or .parquet file at ``path`` gets id, cluster (its number) and confidence. ``reading``
    has the table and layout where they differ from the training data's; with ``every``, records
    that the model's rules would leave out are assigned too. ``memory`` and ``engine`` are as in
    `comorb.insight.runs.run.fit_records`.
    """
    check_export(Path(path), force)
    saved = load_run_model(model)
    fitted = Preparation.from_dict(saved.preparation)
    features = [variable.feature for variable in saved.mixture.variables]
    asked = fitted.for_new_records(saved.system, reading, every, features)
    with (
        open_engine(engine or "threads") as executor,
        open_cohort(
            records, asked, memory=memory, executor=executor if engine else None, tell=tell
        ) as cohort,
    ):
        tell(Progress("writing", f"Assigning {len(cohort):,} records"))
        place, unknown = align(cohort, saved.codes, saved.left_out, executor)
        sizes, sure = np.zeros(len(saved.clusters), np.int64), np.zeros(len(saved.clusters))

        def batches() -> Iterator[pa.RecordBatch]:
            tau = temperature_of(saved)
            for ids, part in assigned_blocks(cohort, saved.mixture, tau, executor, place):
                np.add.at(sizes, part.labels, 1)
                np.add.at(sure, part.labels, part.top)
                yield assignment_rows(ids, part, saved.numbers)

        export(batches(), path, force)
        blocks = cohort.blocks(saved.mixture.variables)
        found = density(saved.mixture, blocks, executor, place)
        changed = drift(saved, sizes / max(sizes.sum(), 1), *found)
        return Tally(saved.clusters, saved.numbers, sizes, sure, cohort.ledger, unknown, changed)


def assigned_blocks(
    cohort: AnyCohort,
    mixture: Mixture,
    temperature: float,
    executor: Executor | None,
    place: Indices | None = None,
) -> Iterator[tuple[pa.Array, Assignment]]:
    """Yield the ids and the clusters of the records of each block; see `align` for ``place``."""
    start = 0
    assigned = map_blocks(
        partial(_assigned, mixture, temperature, place), cohort.blocks(mixture.variables), executor
    )
    for number, part in enumerate(assigned):
        yield cohort.ids_of(number, start, part.labels.size), part
        start += part.labels.size


def temperature_of(saved: SavedModel) -> float:
    """Return what the confidence of a model's records is tempered by; 1 in models that lack it."""
    return float(saved.run.get("temperature", 1.0))


def assignment_rows(ids: pa.Array, part: Assignment, numbers: Sequence[int]) -> pa.RecordBatch:
    """Return the rows of a file of assignments."""
    return pa.record_batch(
        {
            "id": ids,
            "cluster": pa.array(np.asarray(numbers)[part.labels]),
            "confidence": pa.array(part.top.round(6)),
        }
    )


def _assigned(
    mixture: Mixture, temperature: float, place: Indices | None, rows: Rows
) -> Assignment:
    own = rows if place is None else aligned(place, mixture.n_columns, rows)
    return assign_rows(mixture, None, temperature, own)
