"""Uncertain records: those whose most probable cluster is not very probable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from comorb.errors import InputError
from comorb.model.arrays import Floats, Keys
from comorb.profiles.assignment import Assignment
from comorb.profiles.noise import CountProtector, append_whole
from comorb.profiles.rules import REVIEW_BELOW


@dataclass(frozen=True, eq=False)
class UncertainCells:
    """The keys of the sets of records that uncertain records are counted by."""

    members: Keys  # (k,)
    doubtful: Keys  # (k,)
    between: Keys  # (k, k)


@dataclass(frozen=True, eq=False)
class UncertainRecords:
    """How many records of each cluster are in doubt, and with which other; NaN isn't told."""

    members: Floats  # (k,): the records of each cluster
    doubtful: Floats  # (k,): those whose cluster has a probability below `REVIEW_BELOW`
    between: Floats  # (k, k): those of a cluster (a row) whose second most probable one is another
    cells: UncertainCells | None = None


def count_uncertain(assigned: Assignment, k: int, keys: Keys | None = None) -> UncertainRecords:
    """Count the records whose cluster is uncertain."""
    labels, second = assigned.labels, assigned.second
    uncertain = assigned.top < REVIEW_BELOW

    def summed(values: Floats | Keys) -> Any:
        between = np.zeros((k, k), values.dtype)
        members, doubtful = np.zeros(k, values.dtype), np.zeros(k, values.dtype)
        np.add.at(members, labels, values)
        np.add.at(doubtful, labels[uncertain], values[uncertain])
        np.add.at(between, (labels[uncertain], second[uncertain]), values[uncertain])
        np.fill_diagonal(between, 0)
        return members, doubtful, between

    cells = None if keys is None else UncertainCells(*summed(keys))
    members, doubtful, between = summed(np.ones(labels.size))
    return UncertainRecords(members, doubtful, between, cells)


def protect_uncertain(full: UncertainRecords, min_cell: int) -> UncertainRecords:
    """Return counts of uncertain records that may be shared."""
    cells = full.cells
    if cells is None:
        raise InputError("protect.no_keys")
    protector = CountProtector(min_cell, cells.members.sum(dtype=np.uint64))
    members = protector.table(*append_whole(full.members, cells.members))[:-1]
    doubtful = protector.part_counts(full.doubtful, cells.doubtful, members, full.members)
    between = protector.part_counts(
        full.between, cells.between, doubtful[:, None], full.doubtful[:, None]
    )
    return replace(full, members=members, doubtful=doubtful, between=between, cells=None)
