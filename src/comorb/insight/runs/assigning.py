"""Assigning: the records of a run, each once, with what is gathered of all on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from comorb.insight.profile.assignment import Assignment, joined
from comorb.insight.profile.burden import People
from comorb.insight.profile.gathering import Gathering
from comorb.insight.profile.keys import record_keys
from comorb.insight.runs.cohorts import AnyCohort
from comorb.insight.runs.folder import RunFolder
from comorb.insight.runs.scoring import (
    PART,
    Scorer,
    Totals,
    apart,
    assigned_blocks,
    assignment_rows,
    parts_beside,
    score_parts,
)
from comorb.model.arrays import Ints
from comorb.records.archive import CohortFile
from comorb.records.cohort import Cohort
from comorb.records.export import export, join_parts, read_parts
from comorb.remote import Remote, place_of

SHARDS = 16  # of the patients that are counted
_EACH = ("labels", "top", "margin", "entropy", "second", "keys")  # of a record, in `Assignment`


@dataclass(frozen=True, eq=False)
class Assigning:
    """Writes the cluster of each record of a cohort to a folder, and gathers burden and slices."""

    cohort: AnyCohort
    scorer: Scorer
    folder: RunFolder
    gathering: Gathering
    place: Remote | None = None  # where workers write, if not beside the folder

    def run(self, executor: Executor | None, step: int) -> Assignment:
        """Assign all, on a cluster by its workers, and return the clusters of each so manieth."""
        if not isinstance(self.cohort, CohortFile) or not apart(self.cohort, executor):
            return self._here(executor, step)
        gathering, place = self.gathering, self.place or self.folder.assignments
        gathering.narrow = True
        own = gathering.k, gathering.secret, gathering.wanted
        with (
            parts_beside(place) as parts,
            parts_beside(place.with_name(f"{place.name}.some")) as some,
        ):
            picks = Picks(str(some), step, self.cohort.starts)
            where = parts, self.folder.assignments.suffix
            totals, found, *people = score_parts(
                self.cohort, self.scorer, where, executor, Gatherer(self.cohort, *own, picks)
            )
            join_parts(list(parts.iterdir()), self.folder.assignments)
            assigned = picks.read(totals)
        gathering += found
        if gathering.sums is not None and people[0][0].size:
            counts, keys = (np.sum(some, axis=0) for some in zip(*people, strict=True))
            gathering.sums.counted = counts, keys
        return assigned

    def _here(self, executor: Executor | None, step: int) -> Assignment:
        sampled: list[Assignment] = []

        def rows() -> Iterator[pa.RecordBatch]:
            start = 0
            blocks = assigned_blocks(self.cohort, self.scorer, executor)
            for number, (ids, part) in enumerate(blocks):
                own = self.cohort.part(number, start, len(ids))
                part = keyed(part, own, self.gathering.secret)
                self.gathering.add(own, part.labels, part.keys)
                sampled.append(part.every(step, -start % step))
                start += len(ids)
                yield assignment_rows(ids, part, self.scorer.numbers)

        self.folder.save_assignments(rows())
        return joined(sampled)


def keyed(part: Assignment, records: Cohort, secret: bytes | None) -> Assignment:
    """Return the clusters of some records with the keys of these."""
    return part if secret is None else replace(part, keys=record_keys(records, secret))


@dataclass(frozen=True, eq=False)
class Picks:
    """The clusters of each ``step``-th record, in files of a folder that workers write.

    ``starts`` has how many records are before each block.
    """

    folder: str
    step: int
    starts: Ints

    def write(self, number: int, part: Assignment) -> None:
        """Write those of a block."""
        some = part.every(self.step, int(-self.starts[number] % self.step))
        held = {name: getattr(some, name) for name in _EACH}
        batch = pa.record_batch({name: one for name, one in held.items() if one is not None})
        export([batch], place_of(self.folder) / PART.format(number, ".parquet"), force=True)

    def read(self, totals: Totals) -> Assignment:
        """Return those of all blocks, with the sums over all records in proportion."""
        table = read_parts(place_of(self.folder).iterdir())
        held = {name: table[name].to_numpy() for name in table.column_names}
        return Assignment(soft=totals.soft / self.step, table=totals.table / self.step, **held)


@dataclass(frozen=True, eq=False, repr=False)
class Gatherer:
    """Gathers what is told of the records of a block, where the block is.

    The secret travels with it, and is in nothing that it returns or shows of itself.
    """

    cohort: AnyCohort
    k: int
    secret: bytes | None
    wanted: Sequence[str] | None
    picks: Picks
    shards: int = 1 + SHARDS

    def of(self, number: int, part: Assignment) -> list[Any]:
        """Return what is gathered of a block, and the people in it in shards."""
        gathering = Gathering(self.k, self.secret, self.wanted, narrow=True)
        own = self.cohort.part(number, 0, part.labels.size)
        part = keyed(part, own, self.secret)
        self.picks.write(number, part)
        sums = gathering.add(own, part.labels, part.keys)
        gathering.secret = None
        people, sums.people = sums.people, People(self.k)
        return [gathering, *people.split(SHARDS)]

    def finish(self, one: Any) -> Any:
        """Return how many people there are, where they are people."""
        return one.counted(self.secret) if isinstance(one, People) else one
