"""Cohorts for runs: in memory, or in a file that may be larger than memory.

A run asks little of a cohort, so that the one function does the job wherever the records lie.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from comorb.errors import RecordsError, StorageError
from comorb.insight.runs.progress import Progress, Tell, silent
from comorb.model.blocks import Blocks
from comorb.model.kinds.variable import Variable
from comorb.records.archive import CohortFile, load_cohort
from comorb.records.beside import main_and_beside
from comorb.records.cohort import Cohort
from comorb.records.ledger import Ledger
from comorb.records.preparation import Preparation
from comorb.records.sources.folders import globbed, is_glob
from comorb.records.sources.spill import temporary_folder
from comorb.records.spreading import spread_cohort
from comorb.records.streaming import write_cohort
from comorb.remote import Remote, matching, place_of, removed
from comorb.storage import write_text

COHORT, JOURNAL, STAMP = "cohort.parquet", "journal", "records.json"


class AnyCohort(Protocol):
    """What a run asks of a cohort, be it a `Cohort` in memory or a `CohortFile`."""

    @property
    def codes(self) -> tuple[str, ...]:
        """The code of each feature."""

    @property
    def names(self) -> tuple[str, ...]:
        """What each code means."""

    @property
    def system(self) -> str:
        """The coding system."""

    @property
    def level(self) -> str:
        """The level at which codes are features."""

    @property
    def ledger(self) -> Ledger:
        """What became of every input row."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """The codes that were left out on purpose."""

    def __len__(self) -> int: ...

    def blocks(self, variables: tuple[Variable, ...] | None = None) -> Blocks:
        """Return the rows in blocks, their features as the variables of a model see them."""

    def ids_of(self, block: int, start: int, size: int) -> pa.Array:
        """Return the ids of the rows of a block, which begins with the row ``start``."""

    def part(self, block: int, start: int, size: int) -> Cohort:
        """Return the records of a block, which begins with the row ``start``."""

    def sample(self, most: int, executor: Executor | None = None) -> tuple[Cohort, int]:
        """Return records that describe the cohort, and the step between them."""

    def digest(self) -> str:
        """Return a hash of the records' codes and weights."""


@contextmanager
def open_cohort(
    records: Any,
    preparation: Preparation | None = None,
    *,
    memory: str | None = None,
    executor: Executor | None = None,
    folder: Path | Remote | None = None,
    tell: Tell = silent,
) -> Iterator[AnyCohort]:
    """Yield the cohort that records become; with ``memory`` it is in a file.

    With an ``executor`` its workers read the records and write it. What is written is kept in
    ``folder``, and found again, or else in a temporary place. A cohort file is taken as it stands
    when the preparation has no rules.
    """
    preparation = preparation or Preparation()
    if isinstance(records, Cohort):
        yield preparation.apply(records)
        return
    tell(Progress("reading", "Reading the records"))
    main, beside = main_and_beside(records)
    if beside and (isinstance(main, Cohort) or is_cohort_file(main)):
        raise RecordsError(
            "A cohort is read already, and nothing can be joined to it; give the records that it "
            "was made of."
        )
    stands, inside = is_cohort_file(records), not (memory or executor)
    if stands and preparation == Preparation():
        yield load_cohort(records) if inside else CohortFile.open(records)
    elif inside:
        yield preparation.apply(load_cohort(records)) if stands else preparation.cohort(records)
    elif stands:
        raise RecordsError(
            f"{Path(records).name} is a cohort file, and rules can't be applied to one in parts. "
            "Read it in memory, or apply the rules to the records that it was made of."
        )
    else:
        kept = temporary_folder() if folder is None else nullcontext(str(folder))
        with kept as place:
            path = place_of(place) / COHORT
            if not is_cohort_file(path):
                if executor is None and isinstance(path, Path):
                    write_cohort(records, path, preparation, memory)
                else:
                    spread_cohort(records, path, preparation, executor, memory)
            yield CohortFile.open(path)


def is_cohort_file(records: Any) -> bool:
    """Tell whether records are given as the path of a cohort file."""
    try:
        return isinstance(records, str | Path | Remote) and bool(CohortFile.open(records))
    except (StorageError, OSError, ValueError):
        return False


@contextmanager
def workshop(
    directory: Path | Remote, records: Any, preparation: Preparation
) -> Iterator[Path | Remote]:
    """Yield the hidden folder of a run, removed when the run ends well or has made nothing yet.

    What lies there from other records, or from other rules, is removed at once.
    """
    folder = directory.with_name(f".{directory.name}.unfinished")
    stamp = json.dumps([stamps(records), preparation.to_dict()], sort_keys=True)
    note = folder / STAMP
    if not note.is_file() or note.read_text(encoding="utf-8") != stamp:
        removed(folder)
        folder.mkdir(parents=True)
        write_text(stamp, note)
    try:
        yield folder
    except BaseException:
        with suppress(StorageError):  # a store that is lost is told by what it was asked for
            begun = any((folder / name).exists() for name in (JOURNAL, f"{COHORT}.draft"))
            if not (begun or is_cohort_file(folder / COHORT)):
                removed(folder)
        raise
    removed(folder)


def stamps(records: Any) -> list[list[Any]]:
    """Return the name, size and time of every file of a source; other sources by name alone.

    Those of several sources come with their kinds. A frame is never the same again.
    """
    if isinstance(records, Mapping):
        return [[kind, *stamp] for kind in records for stamp in stamps(records[kind])]
    if isinstance(records, list | tuple):
        return [stamp for one in records for stamp in stamps(one)]
    if not isinstance(records, str | Path | Remote):
        return [[type(records).__name__, secrets.token_hex(8)]]
    if isinstance(place := place_of(records), Remote):
        return [[one.uri, *(one.stamp() or ())] for one in matching(place)[1]]
    path = place
    if "://" in str(records):
        return [[str(records)]]
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
    else:
        files = [path] if path.is_file() else globbed(path) if is_glob(path) else []
    states = [(str(file), file.stat()) for file in files]
    return [[name, state.st_size, state.st_mtime_ns] for name, state in states] or [[str(path)]]
