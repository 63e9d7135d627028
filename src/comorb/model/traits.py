"""Traits: what all features of a model are together, table by table and sum by sum.

The statistics of the features are stacked, and so are the parameters of a cluster; a feature's
statistics are multiplied by its influence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np
from scipy import sparse

from comorb.model.arrays import Floats, Ints, Keys
from comorb.model.kernels import mixed
from comorb.model.kinds.variable import Variable

Variables = tuple[Variable, ...]
LARGEST_GROUP = 1024  # cells of features that are looked up together: their table stays in cache


def height(variables: Variables) -> int:
    """Return how many statistics a row has."""
    return sum(variable.height for variable in variables)


def width(variables: Variables) -> int:
    """Return how many parameters a cluster has."""
    return sum(variable.width for variable in variables)


def n_free(variables: Variables) -> int:
    """Return how many parameters of a cluster are free."""
    return sum(variable.n_free for variable in variables)


def keys(variables: Variables) -> Keys:
    """Return a hash of each parameter by what its feature is like, (m,), to draw noise by."""
    own = [
        np.uint64(variable.key) ^ mixed(np.arange(variable.width, dtype=np.uint64))
        for variable in variables
    ]
    return np.concatenate([np.empty(0, np.uint64), *own])


def _cut(sizes: Sequence[int]) -> list[slice]:
    ends = [0, *accumulate(sizes)]
    return [slice(a, b) for a, b in pairwise(ends)]


def by_sums(variables: Variables) -> Iterator[tuple[Variable, slice]]:
    """Yield each variable and where its statistics are."""
    return zip(variables, _cut([variable.height for variable in variables]), strict=True)


def by_parameters(variables: Variables) -> Iterator[tuple[Variable, slice]]:
    """Yield each variable and where its parameters are."""
    return zip(variables, _cut([variable.width for variable in variables]), strict=True)


def whole(variables: Variables) -> Floats:
    """Return the parameters of the whole population, (m,)."""
    return _joined([variable.whole for variable in variables])


def natural(variables: Variables, parameters: Floats) -> Floats:
    """Return the log-densities' table, (s, k), of parameters (k, m)."""
    tables = [variable.natural(parameters[:, own]) for variable, own in by_parameters(variables)]
    return np.concatenate([np.empty((0, parameters.shape[0])), *tables])


def fitted(variables: Variables, sums: Floats) -> Floats:
    """Return the most likely parameters, (k, m), of summed statistics (s, k)."""
    return _beside([variable.fitted(sums[own]) for variable, own in by_sums(variables)], sums)


def pseudo(variables: Variables, strength: float, weight: float) -> Floats:
    """Return the prior as statistics, (s,)."""
    return _joined([variable.pseudo(strength, weight) for variable in variables])


def log_marginal(variables: Variables, sums: Floats, prior: Floats) -> Floats:
    """Return the log marginal of each column of summed statistics, a row a variable, (p, k)."""
    terms = [variable.log_marginal(sums[own], prior[own]) for variable, own in by_sums(variables)]
    return np.array(terms).reshape(len(variables), sums.shape[1])


def mapped(
    variables: Variables,
    change: Callable[[Variable, Floats, slice], Floats],
    parameters: Floats,
) -> Floats:
    """Return parameters that a change makes of parameters, variable by variable, (k, m)."""
    parts = [
        change(variable, parameters[:, own], own) for variable, own in by_parameters(variables)
    ]
    return _beside(parts, parameters.T)


def _joined(parts: list[Floats]) -> Floats:
    return np.concatenate([np.empty(0), *parts])


def _beside(parts: list[Floats], like: Floats) -> Floats:
    return np.ascontiguousarray(np.concatenate([np.empty((like.shape[1], 0)), *parts], axis=1))


def statistics(variable: Variable, values: Floats) -> Floats:
    """Return the statistics of prepared values, (n, height), zeros where one is missing."""
    there = ~np.isnan(values)
    known = np.where(there, values, 0.0)
    if variable.n_values is None:
        found = np.stack([np.ones_like(known), known, known**2], axis=1)
    else:
        most = max(variable.n_values, int(known.max(initial=0.0)) + 1)
        found = variable.cells(most)[known.astype(np.int64)]
    return np.asarray(variable.influence * found * there[:, None])


@dataclass(frozen=True, eq=False)
class Plan:
    """How the kernels walk the values of a row.

    Categories and counts are looked up: each has a cell for every value and one for none, and
    small ones share a table, with a cell for every combination. ``members`` (3, f) are the
    column, stride and blank of each that is looked up, by group; ``ends`` (g + 1,) part the groups,
    ``starts`` (g + 1,) are where their cells begin. ``dense`` (q,) are the columns of the numbers,
    and ``places`` (q, 3) where their statistics are. ``design`` (s, c) holds the statistics of each
    cell, with their influence, and ``influences`` (q,) is that of the numbers.
    """

    members: Ints
    ends: Ints
    starts: Ints
    dense: Ints
    places: Ints
    design: sparse.csr_array
    influences: Floats

    @property
    def walk(self) -> tuple[Ints, Ints, Ints, Ints]:
        """What the kernels need."""
        return self.members, self.ends, self.starts, self.dense

    def tables(self, table: Floats) -> tuple[Floats, Floats]:
        """Return what is added to a row's log-density: of each cell (c, k), of numbers (q, 3, k).

        ``table`` (s, k) is that of ``natural``.
        """
        numbers = self.influences[:, None, None] * table[self.places]
        return np.ascontiguousarray(self.design.T @ table), np.ascontiguousarray(numbers)

    def sums(self, cells: Floats, numbers: Floats) -> Floats:
        """Return the statistics, (s, k), from the sums of the cells (c, k) and of the numbers."""
        sums = np.asarray(self.design @ cells)
        sums[self.places] = self.influences[:, None, None] * numbers
        return sums


@lru_cache(maxsize=64)
def plan_for(variables: Variables, tops: tuple[int, ...] = ()) -> Plan:
    """Return how the kernels walk the values of these variables.

    ``tops`` are how many values each has here at least, where that may be more than were known.
    """
    blanks = [
        max(variable.n_values or 0, *tops[at : at + 1], 0) for at, variable in enumerate(variables)
    ]
    looked_up = [at for at, variable in enumerate(variables) if variable.n_values is not None]
    groups = _grouped(looked_up, blanks)
    members: list[tuple[int, int, int]] = []
    for group in groups:
        sizes = [blanks[at] + 1 for at in group]
        strides = [int(np.prod(sizes[place + 1 :])) for place in range(len(group))]
        members += [(at, stride, blanks[at]) for at, stride in zip(group, strides, strict=True)]
    sizes = [int(np.prod([blanks[at] + 1 for at in group])) for group in groups]
    owned = [own for _, own in by_sums(variables)]
    dense = [at for at, variable in enumerate(variables) if variable.n_values is None]
    return Plan(
        np.array(members, dtype=np.int64).reshape(-1, 3).T.copy(),
        np.array([0, *accumulate(map(len, groups))], dtype=np.int64),
        np.array([0, *accumulate(sizes)], dtype=np.int64),
        np.array(dense, dtype=np.int64),
        np.array([range(owned[at].start, owned[at].stop) for at in dense], dtype=np.int64).reshape(
            -1, 3
        ),
        _design(variables, groups, blanks),
        np.array([variables[at].influence for at in dense]),
    )


def _grouped(looked_up: list[int], blanks: list[int]) -> list[list[int]]:
    """Return the variables that share a table, smaller ones first."""
    groups: list[list[int]] = []
    room = 0
    for at in sorted(looked_up, key=lambda at: blanks[at]):
        size = blanks[at] + 1
        if groups and room * size <= LARGEST_GROUP:
            groups[-1].append(at)
            room *= size
        else:
            groups.append([at])
            room = size
    return groups


def _design(variables: Variables, groups: list[list[int]], blanks: list[int]) -> sparse.csr_array:
    """Return the statistics of each cell of each group, (s, c)."""
    owned = [own for _, own in by_sums(variables)]
    parts = [sparse.csr_array((height(variables), 0))]
    for group in groups:
        sizes = [blanks[at] + 1 for at in group]
        part = np.zeros((height(variables), *sizes))
        for axis, at in enumerate(group):
            values = np.zeros((variables[at].height, sizes[axis]))
            values[:, :-1] = variables[at].influence * variables[at].cells(blanks[at]).T
            shape = [1] * len(group)
            shape[axis] = sizes[axis]
            part[owned[at]] += values.reshape(-1, *shape)
        parts.append(sparse.csr_array(part.reshape(height(variables), -1)))
    return sparse.csr_array(sparse.hstack(parts, format="csr"))
