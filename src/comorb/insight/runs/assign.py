"""Assign: each record to its most probable cluster, to a file or a folder of parts."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comorb.engines import open_engine
from comorb.insight.runs.alignment import Unknown, align
from comorb.insight.runs.cohorts import open_cohort, workshop
from comorb.insight.runs.drift import Drift, density, drift
from comorb.insight.runs.folder import load_run_model
from comorb.insight.runs.progress import Progress, Tell, silent
from comorb.insight.runs.scoring import Scorer, check_parts, temperature_of, write_assigned
from comorb.model.arrays import Floats, Ints
from comorb.records.export import check_export
from comorb.records.ledger import Ledger
from comorb.records.preparation import Preparation
from comorb.remote import Remote, place_of


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
    path: str | Path | Remote,
    reading: Preparation | None = None,
    *,
    every: bool = False,
    memory: str | None = None,
    engine: str | None = None,
    force: bool = False,
    tell: Tell = silent,
) -> Tally:
    """Assign new records to the clusters of a model, prepared as its training data were.

    The .csv or .parquet file at ``path`` gets id, cluster (its number) and confidence; a path
    without such an ending becomes a folder of .parquet parts, which is there when all are. On a
    cluster the workers write them. ``reading`` has the table and layout where they differ from the
    training data's; with ``every``, records that the model's rules would leave out are assigned
    too. ``memory`` and ``engine`` are as in `comorb.insight.runs.run.fit_records`.
    """
    path = place_of(path)
    check = check_parts if path.suffix == "" else check_export
    check(path, force)
    saved = load_run_model(model)
    fitted = Preparation.from_dict(saved.preparation)
    features = [variable.feature for variable in saved.mixture.variables]
    asked = fitted.for_new_records(saved.system, reading, every, features)
    work = workshop(path.absolute(), records, asked) if engine else nullcontext()
    with (
        open_engine(engine or "threads") as executor,
        work as folder,
        open_cohort(
            records,
            asked,
            memory=memory,
            executor=executor if engine else None,
            folder=folder,
            tell=tell,
        ) as cohort,
    ):
        tell(Progress("writing", f"Assigning {len(cohort):,} records"))
        place, unknown = align(cohort, saved.codes, saved.left_out, executor)
        scorer = Scorer(saved.mixture, temperature_of(saved), saved.numbers, place)
        totals = write_assigned(cohort, scorer, path, executor, force)
        sizes, sure = totals.sizes, totals.sure
        blocks = cohort.blocks(saved.mixture.variables)
        found = density(saved.mixture, blocks, executor, place)
        changed = drift(saved, sizes / max(sizes.sum(), 1), *found)
        return Tally(saved.clusters, saved.numbers, sizes, sure, cohort.ledger, unknown, changed)
