"""Thinning: a few thousand weighted rows that stand for all, found in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from comorb.model import kernels
from comorb.model.arrays import Floats, Indices, Ints, Keys
from comorb.model.blocks import Blocks, Rows, from_csr, map_blocks, taken
from comorb.model.prepared import Prepared

LEAST_BITS, MOST_BITS = 10, 22


def thinned(blocks: Blocks, first: Floats, target: int, executor: Executor | None) -> Blocks:
    """Return about ``target`` weighted rows that stand for all; all when fewer than twice as many.

    Identical rows are one row with their weight w. It is kept with probability
    min(1, w·target / N), and then weighs w over that probability. Chance is a hash of how common
    the row's codes are, so the choice depends neither on the order of the rows nor on that of
    the columns. Two passes: the first adds up weights by a short hash of the row, a bound of w
    from above; the second keeps the few rows that this bound lets pass, and their true w.
    O(nnz + N log N) time, 32 MB and the rows kept.
    """
    if blocks.n_rows < 2 * target:
        return taken(blocks, np.arange(blocks.n_rows), executor)
    bits = int(np.clip(np.ceil(np.log2(blocks.n_rows)), LEAST_BITS, MOST_BITS))
    hashed = _Hashed.of(blocks, first, bits)
    bounds = np.zeros(1 << bits)
    for buckets, weights in map_blocks(hashed.weigh, blocks, executor):
        bounds[buckets] += weights
    scale = target / blocks.weight
    bounds *= scale
    found = map_blocks(partial(hashed.pick, bounds), blocks, executor)
    rows = _gathered(found, target)
    share = np.minimum(rows.weights * scale, 1.0)
    rows = rows._replace(weights=rows.weights / share).at(np.flatnonzero(rows.chances < share))
    indptr = np.concatenate([[0], np.cumsum(rows.lengths)])
    seen = Prepared(blocks.variables, rows.values)
    return from_csr(indptr, rows.indices, blocks.n_columns, rows.weights, features=seen)


def distinct(blocks: Blocks, first: Floats, executor: Executor | None) -> Blocks:
    """Return each different row that weighs something once, with the weight of all like it."""
    parts = map_blocks(_Hashed.of(blocks, first).weighed, blocks, executor)
    rows = _gathered(parts, blocks.n_rows)
    rows = rows.at(np.flatnonzero(rows.weights > 0))
    indptr = np.concatenate([[0], np.cumsum(rows.lengths)])
    seen = Prepared(blocks.variables, rows.values)
    return from_csr(indptr, rows.indices, blocks.n_columns, rows.weights, features=seen)


def column_keys(blocks: Blocks, first: Floats) -> Keys:
    """Return a hash of each column by what it holds, (d,), to draw noise by.

    The sum, over the rows that carry the code, of a hash of how common the row's codes are: it
    depends neither on the order of the rows nor on that of the columns.
    """
    hashed = _Hashed.of(blocks, first)
    keys = np.zeros(blocks.n_columns, np.uint64)
    for load in blocks.loaders:
        rows = load()
        _, common, _ = hashed.keys(rows)
        with np.errstate(over="ignore"):  # modulo 2⁶⁴, also where the loop is not compiled
            kernels.add_to_columns(rows.indptr, rows.indices, kernels.mixed(common), keys)
    return keys


def chances(blocks: Blocks, first: Floats, executor: Executor | None) -> Floats:
    """Return a number in [0, 1) for each row, (n,), to draw parts by.

    A hash of how common the row's codes are and of which one it is among identical rows, the
    lighter first: the rows that a part gets depend neither on their order nor on that of the
    columns.
    """
    parts = map_blocks(_Hashed.of(blocks, first).keys, blocks, executor)
    patterns, common, weights = map(np.concatenate, zip(*parts, strict=True))
    order = np.lexsort((weights, patterns))
    ordered = patterns[order]
    places = np.arange(order.size, dtype=np.uint64)
    starts = np.maximum.accumulate(
        np.where(np.r_[True, ordered[1:] != ordered[:-1]], places, np.uint64(0))
    )
    turns = np.empty_like(places)
    turns[order] = places - starts
    return kernels.mixed(common + kernels.mixed(turns + np.uint64(1))) / 2.0**64


class _Weighed(NamedTuple):
    """Different rows: their identity, chance in [0, 1), weight, number and places of ones.

    And the values of their features, (n, p).
    """

    patterns: Keys
    chances: Floats
    weights: Floats
    lengths: Ints
    indices: Indices
    values: Floats

    def at(self, places: Ints) -> _Weighed:
        """Return the rows at some places (sorted)."""
        keep = np.zeros(self.lengths.size, dtype=bool)
        keep[places] = True
        ones = self.indices[np.repeat(keep, self.lengths)]
        return _Weighed(
            self.patterns[keep],
            self.chances[keep],
            self.weights[keep],
            self.lengths[keep],
            ones,
            self.values[keep],
        )

    def collapsed(self) -> _Weighed:
        """Return each row once, at its first place, with the weight of all that are the same."""
        _, places, inverse = np.unique(self.patterns, return_index=True, return_inverse=True)
        mass: Floats = np.bincount(inverse, weights=self.weights).astype(np.float64)
        order = np.argsort(places)
        return self.at(places[order])._replace(weights=mass[order])


@dataclass(frozen=True)
class _Hashed:
    """The hashes of the columns: ``names`` tell rows apart, ``common`` give them their chance.

    ``features`` (2, p) are the same of the features: their places, and what they are like.
    """

    names: Keys
    common: Keys
    features: Keys
    shift: int

    @classmethod
    def of(cls, blocks: Blocks, first: Floats, bits: int = 1) -> _Hashed:
        """Return the hashes for rows whose M1 is ``first``, for 2ᵇⁱᵗˢ buckets."""
        return cls(
            kernels.mixed(np.arange(blocks.n_columns, dtype=np.uint64)),
            kernels.mixed(np.round(first * blocks.weight).astype(np.uint64)),
            np.array(
                [
                    kernels.mixed(~np.arange(len(blocks.variables), dtype=np.uint64)),
                    np.array([variable.key for variable in blocks.variables], dtype=np.uint64),
                ]
            ),
            64 - bits,
        )

    def keys(self, rows: Rows) -> tuple[Keys, Keys, Floats]:
        """Return the identity of each row of a block, how common its codes are, and its weight."""
        weights = rows.weights if rows.weights.size else np.ones(rows.indptr.size - 1)
        return self._added(rows, self.names, 0), self._added(rows, self.common, 1), weights

    def _added(self, rows: Rows, keys: Keys, of: int) -> Keys:
        """Return the sum of the keys of each row's codes and of its features."""
        with np.errstate(over="ignore"):  # modulo 2⁶⁴, also where the loop is not compiled
            sums = kernels.row_keys(rows.indptr, rows.indices, keys)
            if self.features.size:
                sums += _value_keys(rows.values, self.features[of])
        return sums

    def weigh(self, rows: Rows) -> tuple[npt.NDArray[np.int64], Floats]:
        """Return the buckets of a block's rows, each once, and the weight in each."""
        patterns = self._added(rows, self.names, 0)
        buckets, inverse = np.unique(self._buckets(patterns), return_inverse=True)
        weights = rows.weights if rows.weights.size else None
        return buckets, np.bincount(inverse, weights=weights).astype(np.float64)

    def weighed(self, rows: Rows) -> _Weighed:
        """Return the different rows of a block, with their weights."""
        patterns, common, weights = self.keys(rows)
        chances = kernels.mixed(common) / 2.0**64
        return self._whole(rows, patterns, chances, weights).collapsed()

    def pick(self, bounds: Floats, rows: Rows) -> _Weighed:
        """Return the rows of a block whose chance is below the bound of their bucket."""
        patterns, common, weights = self.keys(rows)
        chances = kernels.mixed(common) / 2.0**64
        whole = self._whole(rows, patterns, chances, weights)
        passed = np.flatnonzero(chances < bounds[self._buckets(patterns)])
        return whole.at(passed).collapsed()

    def _whole(self, rows: Rows, patterns: Keys, chances: Floats, weights: Floats) -> _Weighed:
        values = rows.values if self.features.size else np.empty((patterns.size, 0))
        lengths = np.diff(rows.indptr)
        return _Weighed(patterns, chances, weights, lengths, rows.indices, values)

    def _buckets(self, patterns: Keys) -> npt.NDArray[np.int64]:
        return (kernels.mixed(patterns) >> np.uint64(self.shift)).astype(np.int64)


def _value_keys(values: Floats, keys: Keys) -> Keys:
    """Return the sum, over the features of each row, of a hash of the feature and its value."""
    known = np.where(np.isnan(values), np.nan, values + 0.0)  # one bit pattern of NaN and of zero
    hashes = kernels.mixed((known.view(np.uint64) + keys).ravel()).reshape(values.shape)
    return np.asarray(hashes.sum(axis=1, dtype=np.uint64))


def _gathered(parts: Iterable[_Weighed], least: int) -> _Weighed:
    """Join the parts; rows that are the same are collapsed whenever as many again have come."""
    held: list[_Weighed] = []
    waiting, base = 0, least
    for part in parts:
        held.append(part)
        waiting += part.lengths.size
        if waiting > 2 * base:
            held = [_joined(held)]
            waiting = held[0].lengths.size
            base = max(least, waiting)
    return _joined(held)


def _joined(parts: list[_Weighed]) -> _Weighed:
    return _Weighed(*map(np.concatenate, zip(*parts, strict=True))).collapsed()
