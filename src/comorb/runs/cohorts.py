"""Cohorts of runs, in memory or in a file larger than memory, their codes aligned to a model's."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from comorb.engines import open_engine
from comorb.errors import RecordsError, StorageError
from comorb.model.arrays import Indices, Ints
from comorb.model.blocks import Rows, map_reduce
from comorb.records.auxiliary import split_sources
from comorb.records.cohort import Cohort
from comorb.records.cohort_file import CohortFile, load_cohort
from comorb.records.distributed.read import distribute_cohort
from comorb.records.sources.files import temporary_folder
from comorb.records.sources.folders import expand_glob, is_glob
from comorb.records.spec import CohortSpec
from comorb.records.stream import write_cohort
from comorb.remote import Place, Remote, matching, place_of, removed
from comorb.runs.progress import Progress, Reporter, ignore_progress
from comorb.storage import SavedModel, write_text

COHORT, CHECKPOINTS, SIGNATURES = "cohort.parquet", "journal", "records.json"


AnyCohort = Cohort | CohortFile  # in memory, or in a file of any size


@contextmanager
def open_records(
    records: Any,
    preparation: CohortSpec,
    memory: str | None,
    engine: str | None,
    report: Reporter,
    folder: Place | None = None,
) -> Iterator[tuple[AnyCohort, Executor | None]]:
    """Yield the cohort that records become, and what maps its blocks; see `open_cohort`."""
    with open_engine(engine or "threads") as executor:
        own = executor if engine else None
        ways: dict[str, Any] = {"memory": memory, "executor": own, "folder": folder}
        with open_cohort(records, preparation, report=report, **ways) as cohort:
            yield cohort, executor


def spec_for_model(
    saved: SavedModel, reading: CohortSpec | None, every: bool = False
) -> CohortSpec:
    """Return how new records are read for a model: as its own were, where not stated otherwise."""
    features = [variable.feature for variable in saved.mixture.variables]
    fitted = CohortSpec.from_dict(saved.preparation)
    return fitted.for_new_records(saved.system, reading, every, features)


@contextmanager
def open_cohort(
    records: Any,
    preparation: CohortSpec | None = None,
    *,
    memory: str | None = None,
    executor: Executor | None = None,
    folder: Place | None = None,
    report: Reporter = ignore_progress,
) -> Iterator[AnyCohort]:
    """Yield the cohort that records become; with ``memory`` it is in a file.

    With an ``executor`` its workers read the records and write it. What is written is kept in
    ``folder``, and found again, or else in a temporary place. A cohort file is taken as it stands
    when the preparation has no rules.
    """
    preparation = preparation or CohortSpec()
    if isinstance(records, Cohort):
        yield preparation.apply(records)
        return
    report(Progress("reading", "Reading the records"))
    main, auxiliary = split_sources(records)
    if auxiliary and (isinstance(main, Cohort) or is_cohort_file(main)):
        raise RecordsError("run.cohort_read")
    stands, inside = is_cohort_file(records), not (memory or executor)
    if stands and preparation == CohortSpec():
        yield load_cohort(records) if inside else CohortFile.open(records)
    elif inside:
        yield preparation.apply(load_cohort(records)) if stands else preparation.cohort(records)
    elif stands:
        raise RecordsError("run.cohort_file_rules", file=Path(records).name)
    else:
        kept = temporary_folder() if folder is None else nullcontext(str(folder))
        with kept as place:
            path = place_of(place) / COHORT
            if not is_cohort_file(path):
                if executor is None and isinstance(path, Path):
                    write_cohort(records, path, preparation, memory)
                else:
                    distribute_cohort(records, path, preparation, executor, memory)
            yield CohortFile.open(path)


def is_cohort_file(records: Any) -> bool:
    """Return whether records are given as the path of a cohort file."""
    try:
        return isinstance(records, str | Place) and bool(CohortFile.open(records))
    except (StorageError, OSError, ValueError):
        return False


@contextmanager
def checkpoint_folder(directory: Place, records: Any, preparation: CohortSpec) -> Iterator[Place]:
    """Yield the hidden folder of a run, removed when the run ends well or has made nothing yet.

    What lies there from other records, or from other rules, is removed at once.
    """
    folder = directory.with_name(f".{directory.name}.unfinished")
    signature = json.dumps([file_signatures(records), preparation.to_dict()], sort_keys=True)
    saved = folder / SIGNATURES
    if not saved.is_file() or saved.read_text(encoding="utf-8") != signature:
        removed(folder)
        folder.mkdir(parents=True)
        write_text(signature, saved)
    try:
        yield folder
    except BaseException:
        with suppress(StorageError):  # the error of a lost store is raised below
            begun = any((folder / name).exists() for name in (CHECKPOINTS, f"{COHORT}.draft"))
            if not (begun or is_cohort_file(folder / COHORT)):
                removed(folder)
        raise
    removed(folder)


def file_signatures(records: Any) -> list[list[Any]]:
    """Return the name, size and time of every file of a source; other sources by name alone.

    Those of several sources come with their kinds. A frame is never the same again.
    """
    if isinstance(records, Mapping):
        return [[kind, *one] for kind in records for one in file_signatures(records[kind])]
    if isinstance(records, list | tuple):
        return [signature for one in records for signature in file_signatures(one)]
    if not isinstance(records, str | Place):
        return [[type(records).__name__, secrets.token_hex(8)]]
    if isinstance(place := place_of(records), Remote):
        return [[one.uri, *(one.stamp() or ())] for one in matching(place)[1]]
    if "://" in str(records):
        return [[str(records)]]
    if place.is_dir():
        files = sorted(file for file in place.rglob("*") if file.is_file())
    else:
        files = [place] if place.is_file() else expand_glob(place) if is_glob(place) else []
    states = [(str(file), file.stat()) for file in files]
    return [[name, state.st_size, state.st_mtime_ns] for name, state in states] or [[str(place)]]


@dataclass(frozen=True)
class Unknown:
    """A code that a model doesn't know, what it means and how many records have it."""

    code: str
    name: str
    records: int


def align(
    cohort: AnyCohort,
    codes: Sequence[str],
    left_out: Collection[str] = (),
    executor: Executor | None = None,
) -> tuple[Indices, tuple[Unknown, ...]]:
    """Return the model's column of each code of a cohort, or −1, and the codes it doesn't know.

    The most common of these come first; those that the model has ``left_out`` on purpose aren't
    among them. A model without codes has its features.
    """
    columns = {code: column for column, code in enumerate(codes)}
    place = np.array([columns.get(code, -1) for code in cohort.codes], dtype=np.int32)
    if not (place >= 0).any() and codes:
        raise RecordsError(
            "run.no_known_code", n=len(cohort.codes), system=cohort.system, level=cohort.level
        )
    unknown_columns = [i for i in np.flatnonzero(place < 0) if cohort.codes[i] not in left_out]
    if not unknown_columns:
        return place, ()
    counts = map_reduce(partial(_count_positives, len(cohort.codes)), cohort.blocks(), executor)
    named = [(cohort.codes[i], cohort.names[i], int(counts[i])) for i in unknown_columns]
    return place, tuple(Unknown(*one) for one in sorted(named, key=lambda one: (-one[2], one[0])))


def _count_positives(width: int, rows: Rows) -> Ints:
    return np.bincount(rows.indices, minlength=width)
