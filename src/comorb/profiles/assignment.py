"""Assignment: the most probable cluster of each record, and which records are uncertain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from comorb.errors import InputError
from comorb.model.arrays import Floats, Ints, Keys
from comorb.model.blocks import Rows, map_blocks, workers
from comorb.model.diagnostics import temper
from comorb.model.mixture import Mixture
from comorb.profiles.noise import CountProtector, append_whole
from comorb.records.cohort import Cohort

REVIEW_BELOW = 0.6  # below this probability of its cluster, a record is uncertain


@dataclass(frozen=True, eq=False)
class Assignment:
    """The cluster of each record, in the order of the cohort."""

    labels: Ints  # the most probable cluster
    top: Floats  # its probability, tempered like the next two
    margin: Floats  # by how much that exceeds the second highest
    entropy: Floats  # −Σ p log p / log k: 0 for a sure record, 1 for one that could be anywhere
    soft: Floats  # (k,): the summed, weighted probabilities of each cluster
    table: Floats  # (k, k): the tempered ones of each cluster (down) over the records of each label
    second: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # the next most probable
    keys: Keys | None = None  # of the records, where they were made; see `record_keys`

    def subsample(self, step: int, first: int = 0) -> Assignment:
        """Return the assignment of each ``step``-th record; ``soft`` shrinks in proportion."""
        rows: Any = {
            name: value if value is None else value[first::step]
            for name, value in vars(self).items()
            if name not in ("soft", "table")
        }
        return Assignment(soft=self.soft / step, table=self.table / step, **rows)


def assign(
    model: Mixture,
    cohort: Cohort,
    n_jobs: int = -1,
    groups: Sequence[int] | None = None,
    temperature: float = 1.0,
) -> Assignment:
    """Assign each record of a cohort to its most probable cluster; weights count in ``soft`` alone.

    ``groups`` has the group of each cluster of the model, when several count as one: a group is as
    probable as all of its clusters together, and labels are the places of the groups in ascending
    order. At a ``temperature`` below 1 probabilities are tempered; labels and ``soft`` stay.
    """
    check_codes(model, cohort)
    whole = np.eye(model.n_components)
    if groups is not None:
        whole = np.equal.outer(groups, np.unique(groups)).astype(float)
    assign_block = partial(assign_rows, model, whole, temperature)
    with workers(n_jobs) as executor:
        parts = list(map_blocks(assign_block, cohort.blocks(model.variables), executor))
    nothing = np.empty((0, whole.shape[1]))
    return concatenate_assignments(parts or [_assign_posterior(nothing, nothing, np.empty(0))])


def check_codes(model: Mixture, cohort: Cohort) -> None:
    """Refuse a model over other codes than those of a cohort."""
    if model.n_columns != len(cohort.codes):
        raise InputError("assign.codes", n=len(cohort.codes), came=model.n_columns)


def assign_rows(
    model: Mixture, group_matrix: Floats | None, temperature: float, rows: Rows
) -> Assignment:
    """Assign the rows of a block; ``group_matrix`` (k, groups) marks clusters that count as one."""
    posterior = model.posterior(rows)[0]
    whole = np.eye(model.n_components) if group_matrix is None else group_matrix
    tempered = temper(posterior, temperature) @ whole
    return _assign_posterior(posterior @ whole, tempered, rows.weights)


def concatenate_assignments(parts: Sequence[Assignment]) -> Assignment:
    """Return the assignment of the rows of several blocks, in their order."""
    keys = [part.keys for part in parts if part.keys is not None]
    joined: Any = {"keys": np.concatenate(keys) if keys else None}
    for name in ("labels", "top", "margin", "entropy", "second"):
        joined[name] = np.concatenate([getattr(part, name) for part in parts])
    for name in ("soft", "table"):
        joined[name] = np.sum([getattr(part, name) for part in parts], axis=0)
    return Assignment(**joined)


def _assign_posterior(posterior: Floats, tempered: Floats, weights: Floats) -> Assignment:
    """Return labels and sums by the model's probabilities, and confidence by the tempered ones."""
    n, k = posterior.shape
    labels = posterior.argmax(axis=1)
    top = tempered[np.arange(n), labels]
    second = np.partition(tempered, -2, axis=1)[:, -2] if k > 1 else np.zeros(n)
    others = tempered.copy()
    others[np.arange(n), labels] = -1 if k > 1 else 0
    entropy = -np.sum(tempered * np.log(np.maximum(tempered, 1e-300)), axis=1)
    mass = weights if weights.size else np.ones(n)
    table = (tempered * mass[:, None]).T @ np.equal.outer(labels, np.arange(k))
    confidence = (top, np.maximum(top - second, 0), entropy / max(np.log(k), 1e-300))
    return Assignment(labels, *confidence, posterior.T @ mass, table, others.argmax(axis=1))


@dataclass(frozen=True, eq=False)
class UncertainCells:
    """The keys of the sets of records that uncertain records are counted by."""

    members: Keys  # (k,)
    doubtful: Keys  # (k,)
    between: Keys  # (k, k)


@dataclass(frozen=True, eq=False)
class UncertainRecords:
    """How many records of each cluster are in doubt, and with which other; NaN is suppressed."""

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
