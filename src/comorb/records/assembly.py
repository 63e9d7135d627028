"""Assembly: (record, feature) keys become a sorted 0/1 matrix, and the records without any go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from comorb.records.ledger import Ledger
from comorb.records.vocabulary import Raw, Vocabulary

Encode = Callable[[dict[Raw, int]], Vocabulary]


@dataclass(frozen=True)
class Assembly:
    """What a table of records holds: the parts of a cohort, before names and types."""

    matrix: csr_array[np.uint8]
    ids: pa.Array
    vocabulary: Vocabulary
    others: pa.Table
    ledger: Ledger


class Keys:
    """(record, feature) pairs as integers, record in the high bits, feature in the low ones."""

    def __init__(self, features: int, room: int) -> None:
        """Make room for so many pairs."""
        self.features = features
        self.bits = max(1, int(features - 1).bit_length()) if features else 1
        self.values = np.empty(room, dtype=np.int64)
        self.filled = 0

    def add(self, records: NDArray[np.integer[Any]], features: NDArray[np.integer[Any]]) -> None:
        """Add pairs; a negative record or feature means none."""
        held = (records >= 0) & (features >= 0)
        pairs = (records[held].astype(np.int64) << self.bits) | features[held]
        self.values[self.filled : self.filled + len(pairs)] = pairs
        self.filled += len(pairs)

    def matrix(self, records: int) -> csr_array[np.uint8]:
        """Return the pairs as a matrix, each of them once; the keys are used up."""
        keys = self.values[: self.filled]
        keys.sort()
        if len(keys):
            first = np.empty(len(keys), dtype=bool)
            first[0] = True
            np.not_equal(keys[1:], keys[:-1], out=first[1:])
            keys = keys[first]
        self.values = keys[:0]
        indices = (keys & ((1 << self.bits) - 1)).astype(np.int32)
        keys >>= self.bits
        counts = np.bincount(keys, minlength=records)
        wide = len(indices) >= 2**31
        indptr: NDArray[Any] = np.zeros(records + 1, dtype=np.int64 if wide else np.int32)
        np.cumsum(counts, out=indptr[1:])
        ones = np.ones(len(indices), dtype=np.uint8)
        matrix: csr_array[np.uint8] = csr_array(
            (ones, indices, indptr), shape=(records, self.features)
        )
        matrix.has_sorted_indices = True
        return matrix


def without_empty(matrix: csr_array[np.uint8]) -> tuple[csr_array[Any], NDArray[np.bool_]]:
    """Return a matrix without its empty rows, and which rows were kept."""
    held = np.diff(matrix.indptr) > 0
    if held.all():
        return matrix, held
    indptr = np.concatenate((matrix.indptr[:1], matrix.indptr[1:][held]))
    smaller = csr_array(
        (matrix.data, matrix.indices, indptr), shape=(int(held.sum()), matrix.shape[1])
    )
    smaller.has_sorted_indices = True
    return smaller, held
