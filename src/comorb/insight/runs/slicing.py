"""Slicing: the clusters of a saved run within slices of records, and models of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from comorb.engines import open_engine
from comorb.errors import InputError
from comorb.insight.profile.cutting import By, cut
from comorb.insight.profile.gathering import SLICED, Gathering
from comorb.insight.profile.keys import own_secret
from comorb.insight.profile.protected_parts import protect_slices
from comorb.insight.profile.slices import Slices
from comorb.insight.runs.alignment import align
from comorb.insight.runs.cohorts import AnyCohort, open_cohort
from comorb.insight.runs.folder import load_run_model
from comorb.insight.runs.progress import Progress, Tell, silent
from comorb.insight.runs.scoring import Scorer, assigned_blocks, temperature_of
from comorb.insight.runs.strata import DRAWS, Strata, fit_strata
from comorb.model.arrays import Indices
from comorb.model.columns import moved_ones
from comorb.records.cohort import Cohort, as_matrix
from comorb.records.layouts.names import role_of
from comorb.records.ledger import Ledger
from comorb.records.preparation import Preparation
from comorb.storage import SavedModel

FITTED = 500_000  # records that models of strata are fitted on, at most


@dataclass(frozen=True, eq=False)
class Sliced:
    """The slices of some records by the clusters of a run."""

    clusters: tuple[str, ...]
    numbers: tuple[int, ...]
    records: int
    slices: tuple[Slices, ...]
    strata: tuple[Strata, ...]  # one for each of the slices, where models of their own were wanted
    ledger: Ledger
    codes: tuple[str, ...] = ()
    min_cell: int = 0


@dataclass(frozen=True)
class SliceRequest:
    """What records are sliced by, and how they are read where it isn't as the model's own were."""

    by: tuple[By, ...]
    refit: bool = False
    draws: int = DRAWS
    reading: Preparation | None = None
    min_cell: int = 0
    secret: bytes | None = None


def slice_run(
    run: str | Path,
    records: Any,
    request: SliceRequest,
    *,
    memory: str | None = None,
    engine: str | None = None,
    tell: Tell = silent,
) -> Sliced:
    """Assign records to the clusters of a run, and tell their shares within each slice.

    Records are read and chosen as the run's own were, with their weights. ``memory`` and
    ``engine`` are as in `comorb.insight.runs.run.fit_records`.
    """
    saved = load_run_model(run)
    fitted = Preparation.from_dict(saved.preparation)
    features = [variable.feature for variable in saved.mixture.variables]
    if features and request.refit:
        raise InputError(
            "models of slices are of codes alone, and this run has features too; leave --refit out"
        )
    asked = fitted.for_new_records(saved.system, request.reading, features=features)
    weight = request.reading.layout.weight if request.reading else fitted.layout.weight
    asked = replace(asked, layout=replace(asked.layout, weight=weight))
    with (
        open_engine(engine or "threads") as executor,
        open_cohort(
            records, asked, memory=memory, executor=executor if engine else None, tell=tell
        ) as cohort,
    ):
        tell(Progress("describing", f"Assigning {len(cohort):,} records"))
        place, _ = align(cohort, saved.codes, saved.left_out, executor)
        secret = (request.secret or own_secret()) if request.min_cell else None
        named = [one.name for one in request.by]
        columns = {*SLICED, *named, *(role for name in named if (role := role_of(name)))}
        gathering = Gathering(saved.mixture.n_components, secret, (), sorted(columns))
        start = 0
        scorer = Scorer(saved.mixture, temperature_of(saved), saved.numbers, place)
        for number, (ids, part) in enumerate(assigned_blocks(cohort, scorer, executor)):
            gathering.add(cohort.part(number, start, len(ids)), part.labels)
            start += len(ids)
        slices = gathering.slices(request.by)
        strata = _strata(cohort, saved, place, request, tell) if request.refit else ()
        if request.min_cell:
            slices = tuple(protect_slices(one, request.min_cell) for one in slices)
        return Sliced(
            saved.clusters,
            saved.numbers,
            len(cohort),
            slices,
            strata,
            cohort.ledger,
            saved.codes,
            request.min_cell,
        )


def _strata(
    cohort: AnyCohort, saved: SavedModel, place: Indices, request: SliceRequest, tell: Tell
) -> tuple[Strata, ...]:
    sample, _ = cohort.sample(FITTED)
    own = _in_columns(sample, saved, place)
    made = []
    for by in request.by:
        tell(Progress("finding", f"Finding the clusters of each slice by {by.name}"))
        made.append(fit_strata(own, saved.mixture, cut(own.covariates, by), request.draws))
    return tuple(made)


def _in_columns(cohort: Cohort, saved: SavedModel, place: Indices) -> Cohort:
    """Return records with the codes of a model, in its order."""
    indptr, indices = moved_ones(cohort.matrix.indptr, cohort.matrix.indices, place)
    matrix = as_matrix(indptr, indices, len(saved.codes))
    if (np.diff(place[place >= 0]) < 0).any():
        matrix.has_sorted_indices = False
        matrix.sort_indices()
    ledger = cohort.ledger.open("features", "read", len(saved.codes))
    return replace(cohort, matrix=matrix, codes=saved.codes, names=saved.names, ledger=ledger)


def asked_slices(texts: Sequence[str]) -> tuple[By, ...]:
    """Return what is asked for by texts such as 'age:q4'."""
    return tuple(By.of(text) for text in texts)
