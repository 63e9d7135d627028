"""Relate: what follows from the clusters of a model and what leads to them, over any records."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from comorb.engines import open_engine
from comorb.errors import InputError
from comorb.insight.runs.alignment import align
from comorb.insight.runs.cohorts import AnyCohort, open_cohort
from comorb.insight.runs.described import (
    Column,
    DescribedRows,
    described_blocks,
    number_column,
    outcome_column,
    predictor_columns,
)
from comorb.insight.runs.folder import load_run_model
from comorb.insight.runs.progress import Progress, Tell, silent
from comorb.insight.runs.scoring import temperature_of
from comorb.model.arrays import Floats, Indices
from comorb.model.blocks import Blocks, Rows, map_reduce
from comorb.model.columns import placed
from comorb.model.mixture import Mixture
from comorb.model.relating import outcome, predictors, regression, survival
from comorb.model.relating.classification import Classification, Part, Reach, classify, reach_of
from comorb.model.relating.likelihood import Fold
from comorb.model.relating.outcome import Method, Named, OutcomeRelation
from comorb.model.relating.predictors import Design, PredictorRelation
from comorb.model.relating.regression import RegressionRelation
from comorb.model.relating.sums import OutcomeSums, sum_outcome
from comorb.model.relating.survival import SurvivalRelation
from comorb.model.tempering import tempered
from comorb.model.threads import single_threaded
from comorb.records.ledger import Ledger
from comorb.records.preparation import Preparation


@dataclass(frozen=True)
class Question:
    """What is asked of clusters: covariates by name."""

    outcomes: tuple[str, ...] = ()
    predictors: tuple[str, ...] = ()
    survival: tuple[str, str] | None = None  # the time and whether it ended with the event
    within: bool = False  # also regress numbers, and shares of two, on the predictors in clusters
    method: Method = "bch"
    reference: int | None = None  # the number of the cluster that others are held against


@dataclass(frozen=True, eq=False)
class Related:
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
    outcomes: tuple[Related, ...]
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


def relate_records(  # noqa: PLR0913 - what is told beside the data is told by name
    model: str | Path,
    records: Any,
    question: Question,
    reading: Preparation | None = None,
    *,
    every: bool = False,
    memory: str | None = None,
    engine: str | None = None,
    tell: Tell = silent,
) -> RelatedRecords:
    """Relate outcomes and predictors to the clusters of a model, over records of any number.

    Records are read as in `comorb.insight.runs.assign.assign_records`; ``memory`` and ``engine``
    are as in `comorb.insight.runs.run.fit_records`. All is made of sums over blocks, so that every
    way gives the same bits.
    """
    saved = load_run_model(model)
    base = None
    if question.reference is not None:
        if question.reference not in saved.numbers:
            raise InputError(
                f"expected the reference to be the number of a cluster "
                f"({', '.join(map(str, saved.numbers))}), got {question.reference}"
            )
        base = saved.numbers.index(question.reference)
    features = [variable.feature for variable in saved.mixture.variables]
    fitted = Preparation.from_dict(saved.preparation)
    asked = fitted.for_new_records(saved.system, reading, every, features)
    with (
        open_engine(engine or "threads") as executor,
        open_cohort(
            records, asked, memory=memory, executor=executor if engine else None, tell=tell
        ) as cohort,
    ):
        place, _ = align(cohort, saved.codes, saved.left_out, executor)
        tell(Progress("describing", f"Relating {len(cohort):,} records to the clusters"))
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
        times = [number_column(cohort, time), _event(cohort, event)]
    columns = [*outcomes, *leading, *times]
    if not columns:
        raise InputError("expected an outcome, a predictor or a time to relate; name a covariate")
    blocks = described_blocks(cohort, columns, mixture.variables)
    fold = _fold(blocks, mixture, temperature, place, executor)
    first = fold(partial(_first, blocks.weight))
    classification, reach = first.classification, first.reach
    first_leading = len(outcomes)
    design = Design(
        tuple(range(first_leading, first_leading + len(leading))),
        tuple(one.title for one in leading),
    )
    related, notes = _outcomes(outcomes, question, design, classification, reach, fold)
    predicted = None
    if leading:
        predicted = predictors.relate(design, classification, reach, fold, base)
        notes = (*notes, *predicted.notes)
    curves, events = None, np.zeros(mixture.n_components)
    if times:
        at = len(columns) - 2
        found = fold(partial(survival.sum_times, at, at + 1, reach.total, reach.largest))
        curves, events = survival.curves(found, classification), found.events.sum(axis=1)
    return Relations(first.counts, classification, related, predicted, curves, events, notes)


def _outcomes(
    columns: Sequence[Column],
    question: Question,
    design: Design,
    classification: Classification,
    reach: Reach,
    fold: Fold,
) -> tuple[tuple[Related, ...], tuple[str, ...]]:
    named = [
        Named(at, ("no", "yes") if one.kind == "is" else one.values, one.title)
        for at, one in enumerate(columns)
    ]
    for one in named:
        outcome.check_outcome(one, question.method, reach)
    if not named:
        return (), ()
    sums = fold(partial(_sums, tuple(named), reach)).parts
    related: list[Related] = []
    notes: list[str] = []
    for one, own in zip(named, sums, strict=True):
        relation = outcome.related(one, question.method, classification, reach, own, fold)
        notes += relation.notes
        counts = np.column_stack([own.counts, own.categories])
        lines = None
        if question.within and design.columns and len(one.values) in (0, 2):
            try:
                lines = regression.relate(one.column, design, classification, reach, fold)
            except InputError as error:
                notes.append(f"{one.name} is not regressed within clusters: {error}")
        related.append(Related(one.name, relation, counts, lines))
    return tuple(related), tuple(notes)


def _event(cohort: AnyCohort, name: str) -> Column:
    """Return whether a record ended with the event, as 0 and 1."""
    found = predictor_columns(cohort, name)
    if len(found) != 1:
        raise InputError(f"expected {name} to say yes or no, got {len(found) + 1} categories")
    return found[0]


@dataclass(frozen=True, eq=False)
class First:
    """What the first pass over the records gives."""

    classification: Classification
    reach: Reach
    counts: Floats

    def __add__(self, other: Self) -> First:
        return First(
            self.classification + other.classification,
            self.reach + other.reach,
            self.counts + other.counts,
        )


def _first(total: float, part: Part) -> First:
    k = part.posterior.shape[1]
    counts = np.bincount(part.labels, minlength=k).astype(np.float64)
    return First(classify(total, part), reach_of(total, part), counts)


@dataclass(frozen=True, eq=False)
class Several:
    """The sums of several outcomes."""

    parts: tuple[OutcomeSums, ...]

    def __add__(self, other: Self) -> Several:
        return Several(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


def _sums(named: tuple[Named, ...], reach: Reach, part: Part) -> Several:
    return Several(tuple(sum_outcome(one.column, len(one.values), reach, part) for one in named))


def _fold(
    blocks: Blocks,
    mixture: Mixture,
    temperature: float,
    place: Indices | None,
    executor: Executor | None,
) -> Fold:
    """Return what adds a statistic up over all blocks."""

    def fold(statistic: Any) -> Any:
        function = partial(_over_rows, statistic, mixture, temperature, place)
        return map_reduce(function, blocks, executor)

    return fold


def _over_rows(
    statistic: Any, mixture: Mixture, temperature: float, place: Indices | None, rows: Rows
) -> Any:
    own = rows if place is None else placed(place, mixture.n_columns, rows)
    posterior = mixture.posterior(own)[0]
    labels = posterior.argmax(axis=1)
    weights = rows.weights if rows.weights.size else np.ones(labels.size)
    assert isinstance(rows, DescribedRows)  # noqa: S101 - the loaders make no others
    return statistic(Part(labels, tempered(posterior, temperature), weights, rows.columns))
