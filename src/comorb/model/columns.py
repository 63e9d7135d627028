"""Columns: the ones of rows in other places, as a model that knows other codes wants them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from comorb.errors import ComorbWarning, InputError
from comorb.model.arrays import Indices, Ints
from comorb.model.blocks import AnyInts, Blocks, Rows, applied
from comorb.model.kinds.variable import Variable


def moved_ones(indptr: AnyInts, indices: AnyInts, place: Indices) -> tuple[Ints, Indices]:
    """Return CSR rows whose ones are in new columns, ``place`` of the old; those at −1 are gone.

    Each row is sorted as long as ``place`` ascends where it isn't −1.
    """
    new = place[indices]
    ends = np.concatenate(([0], np.cumsum(new >= 0)))
    return ends[indptr], new[new >= 0]


def placed(place: Indices, width: int, rows: Rows) -> Rows:
    """Return rows with their ones in the columns that ``place`` gives, sorted in each row."""
    indptr, indices = moved_ones(rows.indptr, rows.indices, place)
    known = place[place >= 0]
    if (np.diff(known) < 0).any():
        matrix = csr_array((np.ones(len(indices)), indices, indptr), shape=(len(indptr) - 1, width))
        matrix.sort_indices()
        indices = matrix.indices.astype(np.int32)
    return Rows(indptr, indices, rows.weights, rows.values)


class Coded(Protocol):
    """Records whose columns have codes: a cohort."""

    @property
    def codes(self) -> Sequence[str]:
        """The code of each column."""

    def blocks(self, variables: tuple[Variable, ...] | None = None) -> Blocks:
        """Return the rows in blocks, their features as the variables of a model see them."""


def known_codes(records: Coded, codes: Sequence[str], variables: tuple[Variable, ...]) -> Blocks:
    """Return records with the codes that a model knows, in its columns; others are told of."""
    blocks = records.blocks(variables)
    if not codes:
        raise InputError(
            "the model was fitted to a matrix without names, so that the codes of a cohort can't "
            "be told; give the matrix of the cohort, or fit to a cohort or a frame"
        )
    if list(codes) == list(records.codes):
        return blocks
    column = {code: place for place, code in enumerate(codes)}
    place = np.array([column.get(code, -1) for code in records.codes], dtype=np.int32)
    if not (place >= 0).any():
        raise InputError(
            f"the model knows none of the {place.size:,} codes of the cohort; read the records in "
            "the coding system and at the level of those that it was fitted to"
        )
    if strange := int((place < 0).sum()):
        said = f"the model doesn't know {strange:,} of the {place.size:,} codes of the cohort"
        warnings.warn(f"{said}; they tell it nothing", ComorbWarning, stacklevel=5)
    move = partial(placed, place, len(codes))
    loaders = tuple(partial(applied, move, load) for load in blocks.loaders)
    return replace(blocks, loaders=loaders, n_columns=len(codes))
