"""Assigning: the records of a run, each once, with what is gathered of all on the way."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from comorb.insight.profile.assignment import Assignment, assign, joined
from comorb.insight.profile.gathering import Gathering
from comorb.insight.runs.cohorts import AnyCohort
from comorb.insight.runs.folder import RunFolder, read_assignments
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


@dataclass(frozen=True, eq=False)
class Assigning:
    """Writes the cluster of each record of a cohort to a folder, and gathers burden and slices."""

    cohort: AnyCohort
    scorer: Scorer
    folder: RunFolder
    gathering: Gathering

    def run(self, executor: Executor | None, sample: Cohort, step: int) -> Assignment:
        """Assign all, on a cluster by its workers, and return the clusters of the sample.

        It is each ``step``-th record.
        """
        if not apart(self.cohort, executor):
            return self._here(executor, step)
        with parts_beside(self.folder.assignments) as parts:
            ending = self.folder.assignments.suffix
            totals = score_parts(self.cohort, self.scorer, parts, ending, executor)
            files, start = sorted(parts.iterdir()), 0
            for number, file in enumerate(files):
                numbers = read_assignments(file)["cluster"].to_numpy()
                labels = np.searchsorted(self.scorer.numbers, numbers)
                self.gathering.add(self.cohort.part(number, start, labels.size), labels)
                start += labels.size
            join_parts(files, self.folder.assignments)
        found = assign(self.scorer.mixture, sample, temperature=self.scorer.temperature)
        return replace(found, soft=totals.soft / step, table=totals.table / step)

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
