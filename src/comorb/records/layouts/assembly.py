"""Assembly: pairs of record and feature become a sorted 0/1 matrix, the core of a cohort."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from comorb.messages import Message
from comorb.model.arrays import Indices, Mask
from comorb.model.blocks import map_tasks, workers
from comorb.records.codes.vocabulary import Raw, Vocabulary
from comorb.records.cohort import as_matrix
from comorb.records.ledger import Ledger

Encode = Callable[[dict[Raw, int]], Vocabulary]
Pairs = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Assembly:
    """The parts of a cohort, read from a table, before its weights are known.

    The matrix has the features of the vocabulary and then the conditions of scores.
    """

    matrix: csr_array[np.uint8]
    ids: pa.Array
    vocabulary: Vocabulary
    covariates: pa.Table
    ledger: Ledger

    def drop_empty(self, keep_empty: bool = False) -> Assembly:
        """Return the records that have a code, or all; the ledger counts them and the features."""
        held = keep_empty | have_feature(self.matrix, self.vocabulary)
        ledger = self.ledger.open("records", Message("ledger.read"), len(held))
        ledger = ledger.less("records", Message("ledger.no_usable_code"), int((~held).sum()))
        ledger = ledger.open("features", Message("ledger.read"), len(self.vocabulary.codes))
        if held.all():
            return replace(self, ledger=ledger)
        if self.vocabulary.conditions:
            matrix = self.matrix[np.flatnonzero(held)]
        else:
            indptr = np.concatenate((self.matrix.indptr[:1], self.matrix.indptr[1:][held]))
            matrix = as_matrix(indptr, self.matrix.indices, self.matrix.shape[1])
        table, kept = self.covariates, pa.array(held)
        covariates = table.filter(kept) if table.num_columns else table
        return replace(
            self, matrix=matrix, ids=self.ids.filter(kept), covariates=covariates, ledger=ledger
        )


def make_encoder(raws: Iterable[Raw], vocabulary: Vocabulary) -> Encode:
    """Return a function that finds some raw codes in the vocabulary of all."""
    number = {raw: place for place, raw in enumerate(raws)}

    def encode(some: dict[Raw, int]) -> Vocabulary:
        return vocabulary.at([number.get(raw, -1) for raw in some])

    return encode


def build_matrix(
    vocabulary: Vocabulary, records: int, mentions: int, pairs: Iterable[Pairs]
) -> tuple[csr_array[np.uint8], int]:
    """Return the matrix of all levels, and the number of distinct codes of records at the first.

    ``pairs`` are blocks of (record, raw code), with at most ``mentions`` in all.
    """
    levels = vocabulary.places.shape[1]
    keys = _Keys(vocabulary.width, mentions * levels)
    first = _Keys(vocabulary.width, mentions if levels > 1 else 0)
    for at, raws in pairs:
        for places in vocabulary.places.T:
            keys.add(at, places[raws])
        if levels > 1:
            first.add(at, vocabulary.places[raws, 0])
    matrix = keys.matrix(records)
    return matrix, first.matrix(records).nnz if levels > 1 else matrix.nnz


def matrix_from_grids(
    vocabulary: Vocabulary, grids: Sequence[Indices]
) -> tuple[csr_array[np.uint8], int]:
    """Return what `build_matrix` does, for grids with a row a record, each sorted by itself.

    A cell of a grid is the number of a raw code, or -1.
    """
    levels = vocabulary.places.shape[1]
    lookups = [np.append(places, np.int32(-1)) for places in vocabulary.places.T]

    def place_features(grid: Indices) -> tuple[Indices, NDArray[Any], int]:
        features = np.concatenate([lookup[grid] for lookup in lookups], axis=1)
        features.sort(axis=1)
        fresh = _mark_first(features)
        first = _mark_first(np.sort(lookups[0][grid], axis=1)) if levels > 1 else fresh
        return features[fresh], np.count_nonzero(fresh, axis=1), int(np.count_nonzero(first))

    with workers(-1) as executor:
        indices, counts, once = zip(*map_tasks(place_features, grids, executor), strict=True)
    indptr = np.cumsum(np.concatenate([[0], *counts]))
    return as_matrix(indptr, np.concatenate(indices), vocabulary.width), sum(once)


def have_feature(matrix: csr_array[np.uint8], vocabulary: Vocabulary) -> Mask:
    """Mark the rows that have a feature, and not just conditions of scores."""
    held: Mask = np.diff(matrix.indptr) > 0
    held[held] = matrix.indices[matrix.indptr[:-1][held]] < len(vocabulary.codes)
    return held


def _mark_first(features: Indices) -> Mask:
    """Mark what is a feature and not the same as its neighbour in a sorted row."""
    fresh = features >= 0
    fresh[:, 1:] &= features[:, 1:] != features[:, :-1]
    return fresh


class _Keys:
    """(record, feature) pairs as integers, record in the high bits, feature in the low ones."""

    def __init__(self, features: int, room: int) -> None:
        self.features = features
        self.bits = max(1, int(features - 1).bit_length()) if features else 1
        self.values = np.empty(room, dtype=np.int64)
        self.filled = 0

    def add(self, records: NDArray[Any], features: Indices) -> None:
        """Add pairs; a negative feature means none."""
        if len(features) and features.min() < 0:
            held = features >= 0
            records, features = records[held], features[held]
        block = self.values[self.filled : self.filled + len(features)]
        np.left_shift(records, self.bits, out=block, dtype=np.int64)
        np.bitwise_or(block, features, out=block)
        self.filled += len(features)

    def matrix(self, records: int) -> csr_array[np.uint8]:
        """Return the pairs as a matrix, each of them once; the keys are used up."""
        keys = self.values[: self.filled]
        keys.sort()
        first = np.ones(len(keys), dtype=bool)
        np.not_equal(keys[1:], keys[:-1], out=first[1:])
        keys = keys[first]
        self.values = keys[:0]
        indices = (keys & ((1 << self.bits) - 1)).astype(np.int32)
        keys >>= self.bits
        indptr = np.cumsum(np.append(0, np.bincount(keys, minlength=records)))
        return as_matrix(indptr, indices, self.features)
