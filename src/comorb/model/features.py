"""All features of a model together: their prepared values, tables and sums."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np
from scipy import sparse

from comorb.errors import ComorbWarning, InputError
from comorb.messages import Message
from comorb.model.arrays import Floats, Ints, Keys
from comorb.model.emissions import learn_variables
from comorb.model.emissions.base import Feature, FeatureTable, Variable
from comorb.model.emissions.count import MAX_COUNT
from comorb.model.exact_sums import weighted_sum
from comorb.model.kernels import splitmix64


@dataclass(frozen=True, eq=False)
class PreparedFeatures:
    """The values of variables, (n, p), as the model sees them: NaN where one is missing."""

    variables: tuple[Variable, ...]
    values: Floats

    def mean_square(self, weights: Floats | None, total: float) -> float:
        """Return a power of two that bounds Σ w·z² / Σ w of every number."""
        worst = 1.0
        for variable, column in zip(self.variables, self.values.T, strict=True):
            if variable.n_values is None:
                squares = np.nan_to_num(column) ** 2
                worst = max(worst, weighted_sum(squares, weights, total) / total)
        return float(2.0 ** (1 + np.ceil(np.log2(worst))))


def prepare_features(
    table: FeatureTable, weights: Floats | None = None, total: float | None = None
) -> PreparedFeatures:
    """Return the values of a table whose variables are learned from it."""
    for feature, column in zip(table.features, table.values.T, strict=True):
        check_values(feature, column)
    size = float(table.values.shape[0]) if total is None else total
    return _prepare_columns(table.values, learn_variables(table, weights, size))


def prepare_for(variables: tuple[Variable, ...], table: FeatureTable) -> PreparedFeatures:
    """Return the values of a table as the variables of a model see them, found by their names.

    A level that the model doesn't know counts as missing, with a warning.
    """
    places = {feature.name: at for at, feature in enumerate(table.features)}
    columns = np.full((table.values.shape[0], len(variables)), np.nan)
    for at, variable in enumerate(variables):
        own = variable.feature
        if own.name not in places:
            raise InputError("model.no_feature", name=own.name)
        feature = table.features[places[own.name]]
        if feature.kind != own.kind:
            raise InputError("model.feature_kind", name=own.name, kind=own.kind, came=feature.kind)
        values = table.values[:, places[own.name]]
        check_values(feature, values)
        if feature.levels != own.levels:
            values = _match_levels(feature, own, values)
        columns[:, at] = values
    return _prepare_columns(columns, variables)


def check_values(feature: Feature, values: Floats) -> None:
    """Refuse values that a feature of its kind can't have."""
    there = values[~np.isnan(values)]
    name = feature.name
    broken = there[(there < 0) | (there != np.floor(there))]  # no count, and no place of a level
    if np.isinf(there).any():
        raise InputError("column.infinite", name=name)
    if feature.kind == "count":
        if broken.size:
            raise InputError("column.counts", name=name, value=broken[0])
        if (there > MAX_COUNT).any():
            raise InputError("column.large_count", limit=MAX_COUNT, name=name, value=there.max())
    if feature.transform == "log" and (there <= 0).any():
        raise InputError("column.logarithm", name=name, value=there.min())
    if feature.kind in ("category", "binary"):
        top = len(feature.levels) - 1
        if broken.size or (there > top).any():
            raise InputError("column.places", limit=top, name=name)


def _match_levels(feature: Feature, own: Feature, values: Floats) -> Floats:
    """Return the places of levels among those that a model knows, NaN for others."""
    known = {level: float(place) for place, level in enumerate(own.levels)}
    place = np.array([*(known.get(level, np.nan) for level in feature.levels), np.nan])
    there = ~np.isnan(values)
    found = place[np.where(there, values, len(feature.levels)).astype(np.int64)]
    if lost := int(np.count_nonzero(there & np.isnan(found))):
        unknown = [level for level in feature.levels if level not in known]
        some = "text.others" if len(unknown) > 3 else "text.list"
        text = Message(
            "column.unknown_levels",
            name=own.name,
            count=len(unknown),
            shown=Message(some, parts=unknown[:3]),
            lost=lost,
            levels=own.levels,
        )
        warnings.warn(text, ComorbWarning, stacklevel=3)
    return np.asarray(found)


def _prepare_columns(values: Floats, variables: tuple[Variable, ...]) -> PreparedFeatures:
    prepared = np.empty((values.shape[0], len(variables)))
    for at, variable in enumerate(variables):
        prepared[:, at] = variable.prepare(values[:, at])
    return PreparedFeatures(variables, prepared)


Variables = tuple[Variable, ...]
# Cells of features that are looked up together: with 12 clusters their table takes 96 kB and stays
# in a core's second-level cache.
MAX_GROUP_CELLS = 1024


def n_statistics(variables: Variables) -> int:
    """Return how many statistics a row has."""
    return sum(variable.n_statistics for variable in variables)


def n_parameters(variables: Variables) -> int:
    """Return how many parameters a cluster has."""
    return sum(variable.n_parameters for variable in variables)


def n_free(variables: Variables) -> int:
    """Return how many parameters of a cluster are free."""
    return sum(variable.n_free for variable in variables)


def keys(variables: Variables) -> Keys:
    """Return a hash of each parameter by its variable's key, (m,), to draw noise by."""
    own = [
        np.uint64(variable.key) ^ splitmix64(np.arange(variable.n_parameters, dtype=np.uint64))
        for variable in variables
    ]
    return np.concatenate([np.empty(0, np.uint64), *own])


def statistic_slices(variables: Variables) -> Iterator[tuple[Variable, slice]]:
    """Yield each variable and where its statistics are."""
    return _with_slices(variables, [variable.n_statistics for variable in variables])


def parameter_slices(variables: Variables) -> Iterator[tuple[Variable, slice]]:
    """Yield each variable and where its parameters are."""
    return _with_slices(variables, [variable.n_parameters for variable in variables])


def _with_slices(variables: Variables, sizes: list[int]) -> Iterator[tuple[Variable, slice]]:
    ends = pairwise([0, *accumulate(sizes)])
    return ((variable, slice(*pair)) for variable, pair in zip(variables, ends, strict=True))


def population_parameters(variables: Variables) -> Floats:
    """Return the parameters of the whole population, (m,)."""
    return np.concatenate([np.empty(0), *(variable.population for variable in variables)])


def natural(variables: Variables, parameters: Floats) -> Floats:
    """Return the log-densities' table, (s, k), of parameters (k, m)."""
    tables = [variable.natural(parameters[:, own]) for variable, own in parameter_slices(variables)]
    return np.concatenate([np.empty((0, parameters.shape[0])), *tables])


def fit_parameters(variables: Variables, sums: Floats) -> Floats:
    """Return the most likely parameters, (k, m), of summed statistics (s, k)."""
    parts = [variable.fit(sums[own]) for variable, own in statistic_slices(variables)]
    return _stack_columns(parts, sums.shape[1])


def prior_statistics(variables: Variables, strength: float, weight: float) -> Floats:
    """Return the prior as statistics, (s,)."""
    parts = [variable.prior_statistics(strength, weight) for variable in variables]
    return np.concatenate([np.empty(0), *parts])


def log_marginal(variables: Variables, sums: Floats, prior: Floats) -> Floats:
    """Return the log marginal of each column of summed statistics, a row a variable, (p, k)."""
    terms = [
        variable.log_marginal(sums[own], prior[own])
        for variable, own in statistic_slices(variables)
    ]
    return np.array(terms).reshape(len(variables), sums.shape[1])


def map_parameters(
    variables: Variables, change: Callable[[Variable, Floats, slice], Floats], parameters: Floats
) -> Floats:
    """Return parameters changed variable by variable, (k, m)."""
    parts = [
        change(variable, parameters[:, own], own) for variable, own in parameter_slices(variables)
    ]
    return _stack_columns(parts, parameters.shape[0])


def _stack_columns(parts: list[Floats], k: int) -> Floats:
    return np.ascontiguousarray(np.concatenate([np.empty((k, 0)), *parts], axis=1))


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
class LookupPlan:
    """How the kernels look up and sum the values of a row.

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
    def lookup(self) -> tuple[Ints, Ints, Ints, Ints]:
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
def plan_for(variables: Variables, tops: tuple[int, ...] = ()) -> LookupPlan:
    """Return the plan of these variables.

    ``tops`` are how many values each has here at least, where that may be more than were known.
    """
    blanks = [
        max(variable.n_values or 0, *tops[at : at + 1], 0) for at, variable in enumerate(variables)
    ]
    groups = _group_lookups(variables, blanks)
    members: list[tuple[int, int, int]] = []
    sizes = []
    for group in groups:
        stride = 1
        own = []
        for at in reversed(group):
            own.append((at, stride, blanks[at]))
            stride *= blanks[at] + 1
        members += reversed(own)
        sizes.append(stride)
    dense = [at for at, variable in enumerate(variables) if variable.n_values is None]
    starts = [own.start for _, own in statistic_slices(variables)]
    return LookupPlan(
        np.array(members, dtype=np.int64).reshape(-1, 3).T.copy(),
        np.array([0, *accumulate(map(len, groups))], dtype=np.int64),
        np.array([0, *accumulate(sizes)], dtype=np.int64),
        np.array(dense, dtype=np.int64),
        np.array([starts[at] for at in dense], dtype=np.int64)[:, None] + np.arange(3),
        _design(variables, groups, blanks),
        np.array([variables[at].influence for at in dense]),
    )


def _group_lookups(variables: Variables, blanks: list[int]) -> list[list[int]]:
    """Return the variables that share a table, smaller ones first."""
    looked_up = [at for at, variable in enumerate(variables) if variable.n_values is not None]
    groups: list[list[int]] = []
    room = 0
    for at in sorted(looked_up, key=blanks.__getitem__):
        size = blanks[at] + 1
        if groups and room * size <= MAX_GROUP_CELLS:
            groups[-1].append(at)
            room *= size
        else:
            groups.append([at])
            room = size
    return groups


def _design(variables: Variables, groups: list[list[int]], blanks: list[int]) -> sparse.csr_array:
    """Return the statistics of each cell of each group, (s, c)."""
    owned = [own for _, own in statistic_slices(variables)]
    parts = [sparse.csr_array((n_statistics(variables), 0))]
    for group in groups:
        sizes = [blanks[at] + 1 for at in group]
        part = np.zeros((n_statistics(variables), *sizes))
        for axis, at in enumerate(group):
            values = np.zeros((variables[at].n_statistics, sizes[axis]))
            values[:, :-1] = variables[at].influence * variables[at].cells(blanks[at]).T
            shape = [1] * len(group)
            shape[axis] = sizes[axis]
            part[owned[at]] += values.reshape(-1, *shape)
        parts.append(sparse.csr_array(part.reshape(n_statistics(variables), -1)))
    return sparse.csr_array(sparse.hstack(parts, format="csr"))
