"""By hand, in the worker: one record of a run looked at, or moved to another cluster.

What was moved is kept apart, in moved.csv beside the assignments, and marked in every download.
"""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import RecordsError
from comorb.insight.profile.assignment import assign
from comorb.insight.profile.profiling import profile
from comorb.insight.runs.assign import MODEL, Assigned
from comorb.insight.runs.folder import load_profile, names_of, place_of
from comorb.insight.runs.run import Run
from comorb.records.cohort import Cohort
from comorb.storage import load_model
from comorb.web.worker import cohorts as reading
from comorb.web.worker.cohorts import Plain

BASE, MOVED = "base.comorb", "moved.csv"


def codes_of(task: Plain) -> list[str]:
    """Return the codes of one record of a run."""
    cohort = _cohort(task)
    row = _row(cohort, task["record"])
    matrix = cohort.matrix
    return [cohort.codes[i] for i in matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]]


def move(task: Plain) -> Run:
    """Return the run before with one more record moved, and note it in the new run's folder."""
    before, folder = Path(task["parent"]), Path(task["folder"])
    cohort, like, saved = _cohort(task), load_profile(before), load_model(before / MODEL)
    moved = moves(before) | {task["record"]: task["cluster"]}
    base = load_model(before / BASE) if (before / BASE).exists() else saved
    found = assign(base.mixture, cohort, groups=task["groups"])
    labels = found.labels.copy()
    for record, number in moved.items():
        labels[_row(cohort, record)] = place_of(like, number)
    assigned = replace(found, labels=labels)
    about = profile(
        saved.mixture,
        cohort,
        title=like.source.title,
        reason=like.source.reason,
        outcomes=reading.outcomes(task["data"], cohort),
        assigned=assigned,
        numbers=like.numbers,
    ).renamed(dict(enumerate(names_of(like))))
    if (before / BASE).exists():
        shutil.copyfile(before / BASE, folder / BASE)
    with (folder / MOVED).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(moved.items())
    listed = Assigned(cohort.ids, assigned, names_of(about), about.numbers, cohort.ledger)
    return Run(saved, listed, about)


def moves(folder: Path) -> dict[str, int]:
    """Return the number of the cluster of each record of a run that was moved by hand."""
    path = folder / MOVED
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {record: int(cluster) for record, cluster in csv.reader(file)}


def _cohort(task: Plain) -> Cohort:
    rules = reading.preparation(task["data"], task["rules"])
    return rules.drop(rules.select(reading.chosen_cohort(task)))


def _row(cohort: Cohort, record: str) -> int:
    places = np.flatnonzero(pc.equal(cohort.ids, pa.scalar(record)).to_numpy(zero_copy_only=False))
    if not places.size:
        raise RecordsError("No record of this run has that id; copy it from its assignments.")
    return int(places[0])
