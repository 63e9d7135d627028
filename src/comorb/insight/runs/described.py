"""Described rows: blocks of records with numbers that are known beside their codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.engines.blockfile import RowGroup, read_group
from comorb.errors import InputError
from comorb.insight.runs.cohorts import AnyCohort
from comorb.model.arrays import Floats
from comorb.model.blocks import Blocks, Loader, Rows
from comorb.model.kinds.variable import Variable
from comorb.model.relating.outcome import categories_of
from comorb.records.archive import CohortFile
from comorb.records.cohort import Cohort
from comorb.records.layouts.columns import FEW
from comorb.records.layouts.names import role_of
from comorb.records.values import yes_no

_AS_NUMBER = "=number"  # behind the name of an outcome: its mean, however few values it has


@dataclass(frozen=True)
class Column:
    """A column as numbers: itself, the place of its value among ``values``, or whether it is one.

    ``title`` is what a table calls it.
    """

    name: str
    kind: Literal["number", "category", "is"] = "number"
    values: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What a table calls it."""
        return f"{self.name}={self.values[0]}" if self.kind == "is" else self.name

    def numbers(self, column: pa.ChunkedArray) -> Floats:
        """Return the numbers of some rows, NaN where nothing is known."""
        if self.kind == "number":
            found = pc.cast(column, pa.float64()).to_numpy().astype(np.float64)
            return np.where(np.isfinite(found), found, np.nan)
        texts = pc.cast(column, pa.string())
        if self.kind == "is":
            return np.asarray(
                pc.cast(pc.cast(pc.equal(texts, self.values[0]), pa.int8()), pa.float64())
                .to_numpy()
                .astype(np.float64)
            )
        places = pc.index_in(texts, pa.array(self.values, pa.string()))
        return np.asarray(pc.cast(places, pa.float64()).to_numpy().astype(np.float64))


class DescribedRows(Rows):
    """One block, with the ``columns`` (n, p) that are known beside its codes."""

    columns: Floats


def described(rows: Rows, columns: Floats) -> DescribedRows:
    """Return a block with numbers beside it."""
    made = DescribedRows(*rows)
    made.columns = columns
    return made


@dataclass(frozen=True)
class DescribedGroup(RowGroup):
    """A loader of one row group with numbers beside the codes."""

    columns: tuple[Column, ...] = ()

    def __call__(self) -> Rows:
        """Read the row group."""
        rows = super().__call__()
        names = list({column.name: None for column in self.columns})
        table = read_group(self.path, self.number, names)
        return described(rows, _numbers(self.columns, table))


def described_blocks(
    cohort: AnyCohort, columns: Sequence[Column], variables: tuple[Variable, ...] = ()
) -> Blocks:
    """Return the blocks of a cohort, each with numbers beside its codes.

    Its features are as the ``variables`` of a model see them.
    """
    wanted = tuple(columns)
    blocks = cohort.blocks(variables)
    if isinstance(cohort, CohortFile):
        groups = [load for load in blocks.loaders if isinstance(load, RowGroup)]
        beside: list[Loader] = [DescribedGroup(**vars(one), columns=wanted) for one in groups]
        return replace(blocks, loaders=tuple(beside))
    assert isinstance(cohort, Cohort)  # noqa: S101 - there are no others
    numbers = _numbers(wanted, cohort.covariates)
    ends = np.cumsum([load().indptr.size - 1 for load in blocks.loaders])
    parts = zip(blocks.loaders, np.split(numbers, ends[:-1]), strict=True)
    return replace(blocks, loaders=tuple(partial(_beside, *part) for part in parts))


def _beside(load: Loader, numbers: Floats) -> Rows:
    return described(load(), numbers)


def _numbers(columns: Sequence[Column], table: pa.Table) -> Floats:
    if not columns:
        return np.empty((table.num_rows, 0))
    return np.column_stack([column.numbers(table[column.name]) for column in columns])


def outcome_column(cohort: AnyCohort, name: str) -> Column:
    """Return a covariate as an outcome: a number, or categories where it has a few values.

    Texts, truth values and whole numbers of at most eight values are categories; discharge=died is
    whether it is that one, and gpa=number is its mean, where it is a whole number of few values.
    """
    if name.endswith(_AS_NUMBER) and name not in _schema(cohort).names:
        return number_column(cohort, name.removesuffix(_AS_NUMBER))
    one = _one_value(cohort, name)
    if one is not None:
        return one
    name, kind = _found(cohort, name)
    plain = _is_number(kind)
    if plain and not pa.types.is_integer(kind):
        return Column(name)
    counts = _values(cohort, name)
    if counts is None:
        if plain:
            return Column(name)
        raise InputError(
            f"{name} has more than {FEW} different texts, and an outcome is a number or has "
            f"{FEW} categories at most; unite some of them"
        )
    return Column(name, "category", categories_of(list(counts)))


def number_column(cohort: AnyCohort, name: str) -> Column:
    """Return a covariate that has to be a number."""
    own, kind = _found(cohort, name)
    if not _is_number(kind):
        raise InputError(f"expected {own} to be a number, got texts; name another column")
    return Column(own)


def predictor_columns(cohort: AnyCohort, name: str) -> tuple[Column, ...]:
    """Return a covariate as predictors: a number, or a 0 and 1 for each category but one.

    That one is the no of yes and no, or the most common; discharge=died is whether it is that one.
    """
    one = _one_value(cohort, name)
    if one is not None:
        return (one,)
    name, kind = _found(cohort, name)
    if _is_number(kind):
        return (Column(name),)
    counts = _values(cohort, name)
    if counts is None:
        raise InputError(
            f"the predictor {name} has more than {FEW} different texts; unite some of them"
        )
    if len(counts) < 2:
        raise InputError(
            f"the predictor {name} has the same value in all records that have one; leave it out"
        )
    values = categories_of(list(counts))
    nos = [value for value in values if yes_no(value) is False]
    base = nos[0] if len(values) == 2 and nos else max(values, key=counts.__getitem__)
    return tuple(Column(name, "is", (value,)) for value in values if value != base)


def _one_value(cohort: AnyCohort, name: str) -> Column | None:
    """Return what NAME=VALUE asks for, unless a covariate is called that."""
    before, mark, value = name.partition("=")
    if not mark or name in _schema(cohort).names:
        return None
    own, kind = _found(cohort, before)
    counts = _values(cohort, own)
    if counts is not None and value not in counts:
        mean = f"; {own}{_AS_NUMBER} asks for its mean" if _is_number(kind) else ""
        raise InputError(
            f"no record has {value!r} as its {own}, but {', '.join(categories_of(list(counts)))}"
            f"{mean}"
        )
    return Column(own, "is", (value,))


def _found(cohort: AnyCohort, name: str) -> tuple[str, pa.DataType]:
    """Return the covariate that is meant by its own name or its role's, and its type."""
    schema = _schema(cohort)
    own = name if name in schema.names else role_of(name) or name
    if own not in schema.names:
        have = ", ".join(schema.names) or "none"
        raise InputError(
            f"expected a covariate of the records ({have}), got {name}; name the column when you "
            "read the records"
        )
    kind = schema.field(own).type
    if pa.types.is_temporal(kind):
        raise InputError(f"{own} is a date, which is neither a number nor a category; leave it out")
    return own, kind


def _schema(cohort: AnyCohort) -> pa.Schema:
    if isinstance(cohort, Cohort):
        return cohort.covariates.schema
    assert isinstance(cohort, CohortFile)  # noqa: S101 - there are no others
    return pa.schema([one for one in cohort.schema() if not one.name.startswith("comorb.")])


def _is_number(kind: pa.DataType) -> bool:
    of_number = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(test(kind) for test in of_number)


def _values(cohort: AnyCohort, name: str) -> dict[str, int] | None:
    """Return how often each value occurs; None where there are more than a few."""
    counts: dict[str, int] = {}
    for column in _columns(cohort, name):
        for one in pc.value_counts(pc.cast(column, pa.string()).drop_null()).to_pylist():
            counts[one["values"]] = counts.get(one["values"], 0) + one["counts"]
        if len(counts) > FEW:
            return None
    return counts


def _columns(cohort: AnyCohort, name: str) -> Iterator[pa.ChunkedArray]:
    if isinstance(cohort, Cohort):
        yield cohort.covariates[name]
        return
    assert isinstance(cohort, CohortFile)  # noqa: S101 - there are no others
    for place in cohort.places:
        yield read_group(*place, [name])[name]
