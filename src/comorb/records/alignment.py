"""Alignment: a cohort brought to the codes of a model, and what the model has never seen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from comorb.errors import RecordsError
from comorb.records.cohort import Cohort
from comorb.records.ledger import Ledger


@dataclass(frozen=True)
class Unknown:
    """A code that a model doesn't know, what it means and how many records have it."""

    code: str
    name: str
    records: int


def align(
    cohort: Cohort, codes: Sequence[str], names: Sequence[str], left_out: Collection[str] = ()
) -> tuple[Cohort, tuple[Unknown, ...]]:
    """Return a cohort with exactly these codes, and the codes that it had to give up.

    Parameters
    ----------
    cohort : Cohort
        Records at the same level of the same coding system.
    codes, names : sequence of str
        The codes that become the columns, in this order, and what they mean.
    left_out : collection of str
        Codes that were left out on purpose; they aren't unknown.

    Returns
    -------
    Cohort
        The same records; a code that none of them has is a column of zeros.
    tuple of Unknown
        The most common first.
    """
    column = {code: place for place, code in enumerate(codes)}
    place = np.array([column.get(code, -1) for code in cohort.codes], dtype=np.int32)
    if not (place >= 0).any():
        raise RecordsError(
            f"The model knows none of the {len(cohort.codes):,} codes of these records "
            f"({cohort.system}, {cohort.level}); are they of the same coding system?"
        )
    moved = place[cohort.matrix.indices]
    ends = np.concatenate(([0], np.cumsum(moved >= 0)))
    indices = moved[moved >= 0]
    indptr = ends[cohort.matrix.indptr].astype(cohort.matrix.indptr.dtype)
    shape = (len(cohort), len(codes))
    matrix = csr_array((np.ones(len(indices), np.uint8), indices, indptr), shape=shape)
    matrix.sort_indices()
    counts = cohort.counts()
    unknown = [
        Unknown(cohort.codes[i], cohort.names[i], int(counts[i]))
        for i in np.flatnonzero(place < 0)
        if cohort.codes[i] not in left_out
    ]
    lines = tuple(line for line in cohort.ledger.lines if line.unit != "features")
    ledger = Ledger(lines, cohort.ledger.problems, cohort.ledger.notes)
    aligned = replace(
        cohort,
        matrix=matrix,
        codes=tuple(codes),
        names=tuple(names),
        ledger=ledger.open("features", "of the model", len(codes)),
    )
    return aligned, tuple(sorted(unknown, key=lambda one: (-one.records, one.code)))
