"""Alignment: the codes of a cohort in the columns of a model, and what the model has never seen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np

from comorb.errors import RecordsError
from comorb.insight.runs.cohorts import AnyCohort
from comorb.model.arrays import Indices, Ints
from comorb.model.blocks import Rows, map_reduce


@dataclass(frozen=True)
class Unknown:
    """A code that a model doesn't know, what it means and how many records have it."""

    code: str
    name: str
    records: int


def align(
    cohort: AnyCohort,
    codes: Sequence[str],
    left_out: Collection[str] = (),
    executor: Executor | None = None,
) -> tuple[Indices, tuple[Unknown, ...]]:
    """Return the model's column of each code of a cohort, or −1, and the codes it doesn't know.

    The most common of these come first; those that the model has ``left_out`` on purpose aren't
    among them. A model without codes has its features.
    """
    column = {code: place for place, code in enumerate(codes)}
    place = np.array([column.get(code, -1) for code in cohort.codes], dtype=np.int32)
    if not (place >= 0).any() and codes:
        raise RecordsError(
            f"The model knows none of the {len(cohort.codes):,} codes of these records "
            f"({cohort.system}, {cohort.level}); are they of the same coding system?"
        )
    strangers = [i for i in np.flatnonzero(place < 0) if cohort.codes[i] not in left_out]
    if not strangers:
        return place, ()
    counts = map_reduce(partial(_carriers, len(cohort.codes)), cohort.blocks(), executor)
    unknown = [Unknown(cohort.codes[i], cohort.names[i], int(counts[i])) for i in strangers]
    return place, tuple(sorted(unknown, key=lambda one: (-one.records, one.code)))


def _carriers(width: int, rows: Rows) -> Ints:
    return np.bincount(rows.indices, minlength=width)
