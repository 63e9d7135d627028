"""Assigning: the records of a run, each once, with what is gathered of all on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from comorb.insight.profile.assignment import Assignment, assign, joined
from comorb.insight.profile.burden import People
from comorb.insight.profile.gathering import Gathering
from comorb.insight.runs.cohorts import AnyCohort
from comorb.insight.runs.folder import RunFolder
from comorb.insight.runs.scoring import (
    Scorer,
    apart,
    assigned_blocks,
    assignment_rows,
    parts_beside,
    score_parts,
)
from comorb.records.cohort import Cohort
from comorb.records.export import join_parts
from comorb.remote import Remote

SHARDS = 16  # of the patients that are counted


@dataclass(frozen=True, eq=False)
class Assigning:
    """Writes the cluster of each record of a cohort to a folder, and gathers burden and slices."""

    cohort: AnyCohort
    scorer: Scorer
    folder: RunFolder
    gathering: Gathering
    place: Remote | None = None  # where workers write, if not beside the folder

    def run(self, executor: Executor | None, sample: Cohort, step: int) -> Assignment:
        """Assign all, on a cluster by its workers, and return the clusters of the sample.

        It is each ``step``-th record.
        """
        if not apart(self.cohort, executor):
            return self._here(executor, step)
        gathering = self.gathering
        gathering.narrow = True
        beside = Gatherer(self.cohort, gathering.k, gathering.secret, gathering.wanted)
        with parts_beside(self.place or self.folder.assignments) as parts:
            ending = self.folder.assignments.suffix
            totals, found, *people = score_parts(
                self.cohort, self.scorer, (parts, ending), executor, beside
            )
            join_parts(list(parts.iterdir()), self.folder.assignments)
        gathering += found
        if gathering.sums is not None and people[0][0].size:
            counts, keys = (np.sum(some, axis=0) for some in zip(*people, strict=True))
            gathering.sums.counted = counts, keys
        assigned = assign(self.scorer.mixture, sample, temperature=self.scorer.temperature)
        return replace(assigned, soft=totals.soft / step, table=totals.table / step)

    def _here(self, executor: Executor | None, step: int) -> Assignment:
        sampled: list[Assignment] = []

        def rows() -> Iterator[pa.RecordBatch]:
            start = 0
            blocks = assigned_blocks(self.cohort, self.scorer, executor)
            for number, (ids, part) in enumerate(blocks):
                self.gathering.add(self.cohort.part(number, start, len(ids)), part.labels)
                sampled.append(part.every(step, -start % step))
                start += len(ids)
                yield assignment_rows(ids, part, self.scorer.numbers)

        self.folder.save_assignments(rows())
        return joined(sampled)


@dataclass(frozen=True, eq=False, repr=False)
class Gatherer:
    """Gathers what is told of the records of a block, where the block is.

    The secret travels with it, and is in nothing that it returns or shows of itself.
    """

    cohort: AnyCohort
    k: int
    secret: bytes | None
    wanted: Sequence[str] | None
    shards: int = 1 + SHARDS

    def of(self, number: int, part: Assignment) -> list[Any]:
        """Return what is gathered of a block, and the people in it in shards."""
        gathering = Gathering(self.k, self.secret, self.wanted, narrow=True)
        sums = gathering.add(self.cohort.part(number, 0, part.labels.size), part.labels)
        gathering.secret = None
        people, sums.people = sums.people, People(self.k)
        return [gathering, *people.split(SHARDS)]

    def finish(self, one: Any) -> Any:
        """Return how many people there are, where they are people."""
        return one.counted(self.secret) if isinstance(one, People) else one
