"""Outcomes and predictors of the clusters of a model, over any records."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.engines.block_files import RowGroup, read_group
from comorb.errors import InputError
from comorb.messages import Message
from comorb.model.arrays import Floats, Indices
from comorb.model.blocks import Blocks, Loader, Rows, map_reduce, move_row_columns, single_threaded
from comorb.model.diagnostics import temper
from comorb.model.emissions.base import Variable
from comorb.model.mixture import Mixture
from comorb.model.relations import outcomes as outcome
from comorb.model.relations import predictors, survival
from comorb.model.relations.classification import (
    Bounds,
    Classification,
    Part,
    bounds_of,
    classify,
    sum_outcome,
)
from comorb.model.relations.outcomes import Fold, OutcomeColumn, OutcomeRelation, categories_of
from comorb.model.relations.predictors import Design, PredictorRelation, RegressionRelation
from comorb.model.relations.survival import SurvivalRelation
from comorb.records.layouts.columns import MAX_VALUES
from comorb.records.layouts.names import find_role
from comorb.records.ledger import Ledger
from comorb.records.spec import CohortSpec
from comorb.records.values import yes_no
from comorb.runs.assign import temperature_of
from comorb.runs.cohorts import AnyCohort, align, open_records, spec_for_model
from comorb.runs.folder import load_run_model
from comorb.runs.progress import Progress, Reporter, ignore_progress
from comorb.runs.spec import Question as Question

_AS_NUMBER = "=number"  # behind the name of an outcome: its mean, however few values it has


@dataclass(frozen=True)
class Column:
    """A column as numbers: itself, the place of its value in ``values``, or whether it is one."""

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
            places = pc.cast(pc.equal(texts, self.values[0]), pa.int8())
        else:
            places = pc.index_in(texts, pa.array(self.values, pa.string()))
        return np.asarray(pc.cast(places, pa.float64()).to_numpy().astype(np.float64))


class DescribedRows(Rows):
    """One block, with ``columns`` (n, p) of covariates."""

    columns: Floats


@dataclass(frozen=True)
class DescribedGroup(RowGroup):
    """A loader of one row group with columns of covariates."""

    columns: tuple[Column, ...] = ()

    def __call__(self) -> Rows:
        """Read the row group."""
        names = list({column.name: None for column in self.columns})
        table = read_group(self.path, self.number, names)
        return _load_described(super().__call__, _as_numbers(self.columns, table))


def described_blocks(
    cohort: AnyCohort, columns: Sequence[Column], variables: tuple[Variable, ...] = ()
) -> Blocks:
    """Return the blocks of a cohort, each with columns of covariates as numbers.

    Its features are as the ``variables`` of a model see them.
    """
    wanted = tuple(columns)
    blocks = cohort.blocks(variables)
    if groups := [load for load in blocks.loaders if isinstance(load, RowGroup)]:
        described = tuple(DescribedGroup(**vars(one), columns=wanted) for one in groups)
        return replace(blocks, loaders=described)
    numbers = _as_numbers(wanted, cohort.load().covariates)
    ends = np.cumsum([load().indptr.size - 1 for load in blocks.loaders])
    parts = zip(blocks.loaders, np.split(numbers, ends[:-1]), strict=True)
    return replace(blocks, loaders=tuple(partial(_load_described, *part) for part in parts))


def _load_described(load: Loader, numbers: Floats) -> Rows:
    made = DescribedRows(*load())
    made.columns = numbers
    return made


def _as_numbers(columns: Sequence[Column], table: pa.Table) -> Floats:
    if not columns:
        return np.empty((table.num_rows, 0))
    return np.column_stack([column.numbers(table[column.name]) for column in columns])


def outcome_column(cohort: AnyCohort, name: str) -> Column:
    """Return a covariate as an outcome: a number, or categories where it has a few values.

    Texts, truth values and whole numbers of at most eight values are categories; discharge=died is
    whether it is that one, and gpa=number is its mean, where it is a whole number of few values.
    """
    if name.endswith(_AS_NUMBER) and name not in cohort.schema().names:
        return number_column(cohort, name.removesuffix(_AS_NUMBER))
    if (one := _value_column(cohort, name)) is not None:
        return one
    name, kind = _find_covariate(cohort, name)
    counts = (
        _count_values(cohort, name) if pa.types.is_integer(kind) or not _is_number(kind) else None
    )
    if counts is None:
        if _is_number(kind):
            return Column(name)
        raise InputError("relate.many_texts", name=name, limit=MAX_VALUES)
    return Column(name, "category", categories_of(list(counts)))


def number_column(cohort: AnyCohort, name: str) -> Column:
    """Return a covariate that has to be a number."""
    own, kind = _find_covariate(cohort, name)
    if not _is_number(kind):
        raise InputError("relate.texts", name=own)
    return Column(own)


def predictor_columns(cohort: AnyCohort, name: str) -> tuple[Column, ...]:
    """Return a covariate as predictors: a number, or a 0 and 1 for each category but one.

    That one is the no of yes and no, or the most common; discharge=died is whether it is that one.
    """
    if (one := _value_column(cohort, name)) is not None:
        return (one,)
    name, kind = _find_covariate(cohort, name)
    if _is_number(kind):
        return (Column(name),)
    counts = _count_values(cohort, name)
    if counts is None:
        raise InputError("relate.predictor_texts", name=name, limit=MAX_VALUES)
    if len(counts) < 2:
        raise InputError("relate.constant_predictor", name=name)
    values = categories_of(list(counts))
    nos = [value for value in values if yes_no(value) is False]
    base = nos[0] if len(values) == 2 and nos else max(values, key=counts.__getitem__)
    return tuple(Column(name, "is", (value,)) for value in values if value != base)


def _value_column(cohort: AnyCohort, name: str) -> Column | None:
    """Return what NAME=VALUE asks for, unless a covariate is called that."""
    before, mark, value = name.partition("=")
    if not mark or name in cohort.schema().names:
        return None
    own, kind = _find_covariate(cohort, before)
    counts = _count_values(cohort, own)
    if counts is not None and value not in counts:
        key = "relate.no_value_number" if _is_number(kind) else "relate.no_value"
        raise InputError(key, value=value, name=own, values=categories_of(list(counts)))
    return Column(own, "is", (value,))


def _find_covariate(cohort: AnyCohort, name: str) -> tuple[str, pa.DataType]:
    """Return the covariate that is meant by its own name or its role's, and its type."""
    schema = cohort.schema()
    own = name if name in schema.names else find_role(name) or name
    if own not in schema.names:
        have = ", ".join(schema.names) or "none"
        raise InputError("relate.no_covariate", have=have, name=name)
    kind = schema.field(own).type
    if pa.types.is_temporal(kind):
        raise InputError("relate.date", name=own)
    return own, kind


def _is_number(kind: pa.DataType) -> bool:
    of_number = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(test(kind) for test in of_number)


def _count_values(cohort: AnyCohort, name: str) -> dict[str, int] | None:
    """Return how often each value occurs; None where there are more than a few."""
    counts: dict[str, int] = {}
    for column in cohort.covariate(name):
        for one in pc.value_counts(pc.cast(column, pa.string()).drop_null()).to_pylist():
            counts[one["values"]] = counts.get(one["values"], 0) + one["counts"]
        if len(counts) > MAX_VALUES:
            return None
    return counts


@dataclass(frozen=True, eq=False)
class RelatedOutcome:
    """One outcome and its relation, with how many records of each cluster have a value.

    ``counts`` (k, 1 + v) are of the records taken for each cluster: with a value, and of each
    category.
    """

    name: str
    relation: OutcomeRelation
    counts: Floats
    regression: RegressionRelation | None = None


@dataclass(frozen=True, eq=False)
class Relations:
    """What was found about clusters."""

    sizes: Floats  # records taken for each
    classification: Classification
    outcomes: tuple[RelatedOutcome, ...]
    predictors: PredictorRelation | None
    survival: SurvivalRelation | None
    events: Floats  # of the survival curves, by the cluster that records are taken for
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class RelatedRecords:
    """What was found about the clusters of a model, and what became of the records."""

    clusters: tuple[str, ...]
    numbers: tuple[int, ...]
    relations: Relations
    ledger: Ledger


def relate_records(  # noqa: PLR0913 - options are given by name
    model: str | Path,
    records: Any,
    question: Question,
    reading: CohortSpec | None = None,
    *,
    every: bool = False,
    memory: str | None = None,
    engine: str | None = None,
    report: Reporter = ignore_progress,
) -> RelatedRecords:
    """Relate outcomes and predictors to the clusters of a model, over records of any number.

    Records are read as in `comorb.runs.assign.assign_records`; ``memory`` and ``engine``
    are as in `comorb.runs.run.fit_records`. All is made of sums over blocks, so that every
    way gives the same bits.
    """
    saved = load_run_model(model)
    numbers, reference, base = saved.numbers, question.reference, None
    if reference is not None:
        if reference not in numbers:
            raise InputError("relate.reference", numbers=numbers, reference=reference)
        base = numbers.index(reference)
    asked = spec_for_model(saved, reading, every)
    with open_records(records, asked, memory, engine, report) as (cohort, executor):
        place, _ = align(cohort, saved.codes, saved.left_out, executor)
        report(Progress("describing", f"Relating {len(cohort):,} records to the clusters"))
        found = relate_cohort(
            cohort, saved.mixture, question, temperature_of(saved), place, base, executor
        )
    return RelatedRecords(saved.clusters, saved.numbers, found, cohort.ledger)


@single_threaded
def relate_cohort(
    cohort: AnyCohort,
    mixture: Mixture,
    question: Question,
    temperature: float = 1.0,
    place: Indices | None = None,
    base: int | None = None,
    executor: Executor | None = None,
) -> Relations:
    """Relate what a question asks for to the clusters of a mixture."""
    outcomes = [outcome_column(cohort, name) for name in question.outcomes]
    leading = [one for name in question.predictors for one in predictor_columns(cohort, name)]
    times: list[Column] = []
    if question.survival:
        time, event = question.survival
        ended = predictor_columns(cohort, event)
        if len(ended) != 1:
            raise InputError("relate.yes_no", name=event, n=len(ended) + 1)
        times = [number_column(cohort, time), ended[0]]
    columns = [*outcomes, *leading, *times]
    if not columns:
        raise InputError("relate.nothing")
    blocks = described_blocks(cohort, columns, mixture.variables)

    def fold(statistic: Any) -> Any:
        function = partial(_over_rows, statistic, mixture, temperature, place)
        return map_reduce(function, blocks, executor)

    classification, bounds, sizes = fold(partial(_first_pass, blocks.weight)).parts
    places = range(len(outcomes), len(outcomes) + len(leading))
    design = Design(tuple(places), tuple(one.title for one in leading))
    related, notes = _relate_outcomes(outcomes, question, design, classification, bounds, fold)
    predicted = None
    if leading:
        predicted = predictors.fit_predictors(design, classification, bounds, fold, base)
        notes = (*notes, *predicted.notes)
    curves, events = None, np.zeros(mixture.n_components)
    if times:
        at = len(columns) - 2
        found = fold(partial(survival.sum_times, at, at + 1, bounds.total, bounds.largest))
        curves, events = survival.curves(found, classification), found.events.sum(axis=1)
    return Relations(sizes, classification, related, predicted, curves, events, notes)


def _relate_outcomes(
    columns: Sequence[Column],
    question: Question,
    design: Design,
    classification: Classification,
    bounds: Bounds,
    fold: Fold,
) -> tuple[tuple[RelatedOutcome, ...], tuple[str, ...]]:
    named = [
        OutcomeColumn(at, ("no", "yes") if one.kind == "is" else one.values, one.title)
        for at, one in enumerate(columns)
    ]
    for one in named:
        outcome.check_outcome(one, question.method, bounds)
    if not named:
        return (), ()
    sums = fold(partial(_sum_outcomes, tuple(named), bounds)).parts
    related: list[RelatedOutcome] = []
    notes: list[str] = []
    for one, own in zip(named, sums, strict=True):
        relation = outcome.relate_sums(one, question.method, classification, bounds, own, fold)
        notes += relation.notes
        counts = np.column_stack([own.counts, own.categories])
        lines = None
        if question.within and design.columns and len(one.values) in (0, 2):
            try:
                lines = predictors.fit_regression(one.column, design, classification, bounds, fold)
            except InputError as error:
                notes.append(Message("note.not_regressed", name=one.name, error=error))
        related.append(RelatedOutcome(one.name, relation, counts, lines))
    return tuple(related), tuple(notes)


@dataclass(frozen=True, eq=False)
class Sums:
    """Several statistics of the records, each of which is added up."""

    parts: tuple[Any, ...]

    def __add__(self, other: Self) -> Sums:
        return Sums(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


def _first_pass(total: float, part: Part) -> Sums:
    counts = np.bincount(part.labels, minlength=part.posterior.shape[1]).astype(np.float64)
    return Sums((classify(total, part), bounds_of(total, part), counts))


def _sum_outcomes(named: tuple[OutcomeColumn, ...], bounds: Bounds, part: Part) -> Sums:
    return Sums(tuple(sum_outcome(one.column, len(one.values), bounds, part) for one in named))


def _over_rows(
    statistic: Any, mixture: Mixture, temperature: float, place: Indices | None, rows: Rows
) -> Any:
    own = rows if place is None else move_row_columns(place, mixture.n_columns, rows)
    posterior = mixture.posterior(own)[0]
    labels = posterior.argmax(axis=1)
    weights = rows.weights if rows.weights.size else np.ones(labels.size)
    assert isinstance(rows, DescribedRows)  # noqa: S101 - the loaders make no others
    return statistic(Part(labels, temper(posterior, temperature), weights, rows.columns))
