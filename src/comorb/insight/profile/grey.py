"""The grey zone: records whose most probable cluster is not very probable, and what else they are.

They are for a person to look at; between which clusters they stand says who should.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from comorb.errors import InputError
from comorb.insight.profile.assignment import Assignment
from comorb.insight.profile.noise import parts_of, protected_counts
from comorb.insight.profile.rules import REVIEW
from comorb.model.arrays import Floats, Keys


@dataclass(frozen=True, eq=False)
class GreyCells:
    """The keys of the sets of records that a grey zone counts."""

    members: Keys  # (k,)
    doubtful: Keys  # (k,)
    between: Keys  # (k, k)


@dataclass(frozen=True, eq=False)
class GreyZone:
    """How many records of each cluster are in doubt, and with which other; NaN isn't told."""

    members: Floats  # (k,): the records of each cluster
    doubtful: Floats  # (k,): those whose cluster has a probability below `REVIEW`
    between: Floats  # (k, k): those of a cluster (a row) whose second most probable one is another
    cells: GreyCells | None = None


def grey_zone(assigned: Assignment, k: int, keys: Keys | None = None) -> GreyZone:
    """Return the grey zone of some records."""
    labels, second = assigned.labels, assigned.second
    grey = assigned.top < REVIEW

    def summed(values: Floats | Keys) -> Any:
        between = np.zeros((k, k), values.dtype)
        members, doubtful = np.zeros(k, values.dtype), np.zeros(k, values.dtype)
        np.add.at(members, labels, values)
        np.add.at(doubtful, labels[grey], values[grey])
        np.add.at(between, (labels[grey], second[grey]), values[grey])
        np.fill_diagonal(between, 0)
        return members, doubtful, between

    cells = None if keys is None else GreyCells(*summed(keys))
    members, doubtful, between = summed(np.ones(labels.size))
    return GreyZone(members, doubtful, between, cells)


def protect_grey(full: GreyZone, least: int) -> GreyZone:
    """Return a grey zone that may be shared."""
    cells = full.cells
    if cells is None:
        raise InputError("these figures were counted without keys; fit the clusters again")
    members = protected_counts(full.members, cells.members, least)
    doubtful = parts_of(full.doubtful, cells.doubtful, full.members, members, least)
    between = parts_of(
        full.between, cells.between, full.doubtful[:, None], doubtful[:, None], least
    )
    return replace(full, members=members, doubtful=doubtful, between=between, cells=None)
