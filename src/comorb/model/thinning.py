"""Thinning: a few thousand weighted rows that stand for all, found in bounded memory."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from comorb.model import kernels
from comorb.model.arrays import Floats, Indices, Ints, Keys
from comorb.model.blocks import Blocks, Pass, Rows, from_csr, map_blocks, map_reduce, taken, total
from comorb.model.prepared import Prepared

LEAST_BITS, MOST_BITS = 10, 22
ROWS_A_SHARD, MOST_SHARDS = 1 << 22, 256
LEAST_HELD = 1 << 16  # rows that wait to be collapsed
LEVELS = np.append(0.0, 2.0 ** (np.arange(-254, 1) / 8))  # bounds of a share, in one byte
SLACK = 1 + 1e-12  # by which a bound exceeds what was rounded on the way to it


def thinned(blocks: Blocks, first: Floats, target: int, executor: Executor | None) -> Blocks:
    """Return about ``target`` weighted rows that stand for all; all when fewer than twice as many.

    Identical rows are one row with their weight w. It is kept with probability
    min(1, w·target / N), and then weighs w over that probability. Chance is a hash of how common
    the row's codes are, so the choice depends neither on the order of the rows nor on that of
    the columns. Two passes: the first adds up weights by a short hash of the row, a bound of w
    from above, whatever the target is; the second adds up the few rows that this bound lets pass,
    and chooses by their true w. Both are in shards by that hash, each chosen from where it is
    added up.
    O(nnz + N log N) time, 32 MB and the rows kept.
    """
    if blocks.n_rows < 2 * target:
        return taken(blocks, np.arange(blocks.n_rows), executor)
    bits = int(np.clip(np.ceil(np.log2(blocks.n_rows)), LEAST_BITS, MOST_BITS))
    shards = 1 << max(int(np.ceil(np.log2(blocks.n_rows / ROWS_A_SHARD))), 0)
    hashed = _Hashed.of(blocks, first, bits, min(shards, MOST_SHARDS))
    weigh = Pass(hashed.weigh, partial(_levels, blocks.weight), hashed.shards)
    levels = np.concatenate(total(weigh, blocks, executor))
    bounds = np.minimum(LEVELS * (target * SLACK), 1.0)
    choose = partial(_chosen, target / blocks.weight)
    pick = Pass(partial(hashed.pick, levels, bounds), choose, hashed.shards)
    return _as_blocks(_joined(total(pick, blocks, executor)), blocks)


def distinct(blocks: Blocks, first: Floats, executor: Executor | None) -> Blocks:
    """Return each different row that weighs something once, with the weight of all like it."""
    rows = map_reduce(_Hashed.of(blocks, first).weighed, blocks, executor).collapsed()
    return _as_blocks(rows.at(np.flatnonzero(rows.weights > 0)), blocks)


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

    def ordered(self) -> _Weighed:
        """Return the rows in the order of their identities, whatever the order they came in."""
        order = np.argsort(self.patterns)
        lengths = self.lengths[order]
        starts = (np.cumsum(self.lengths) - self.lengths)[order]
        ends = np.cumsum(lengths)
        ones = np.repeat(starts - (ends - lengths), lengths) + np.arange(lengths.sum())
        rows = (self.patterns[order], self.chances[order], self.weights[order], lengths)
        return _Weighed(*rows, self.indices[ones], self.values[order])


class _Gathered:
    """Rows that are added up: the same ones are collapsed whenever as many again have come."""

    def __init__(self, rows: _Weighed) -> None:
        self.parts, self.waiting, self.base = [rows], 0, LEAST_HELD

    def __add__(self, other: Self) -> Self:
        return type(self)(self.collapsed()).__iadd__(other)

    def __iadd__(self, other: Self) -> Self:
        self.parts += other.parts
        self.waiting += sum(part.lengths.size for part in other.parts)
        if self.waiting > self.base:
            self.parts, self.waiting = [self.collapsed()], 0
            self.base = max(LEAST_HELD, self.parts[0].lengths.size)
        return self

    def __reduce__(self) -> Any:
        return _Gathered, (self.collapsed(),)

    def collapsed(self) -> _Weighed:
        """Return each row once, with the weight of all that are the same."""
        return _joined(self.parts).collapsed()


class _Buckets:
    """Weights by bucket: those of some ``places`` among ``size``, or all once they are added."""

    def __init__(self, size: int, places: Ints, weights: Floats) -> None:
        self.size, self.places, self.weights = size, places, weights
        self.every: Floats | None = None

    def __iadd__(self, other: Self) -> Self:
        every = self.all()
        if other.every is None:
            every[other.places] += other.weights
        else:
            every += other.every
        return self

    def __reduce__(self) -> Any:
        if self.every is None:
            return _Buckets, (self.size, self.places, self.weights)
        places = np.flatnonzero(self.every)
        return _Buckets, (self.size, places, self.every[places])

    def all(self) -> Floats:
        """Return the weight of every bucket, to add to."""
        if self.every is None:
            self.every = np.zeros(self.size)
            self.every[self.places] = self.weights
        return self.every


def _levels(weight: float, buckets: _Buckets) -> npt.NDArray[np.uint8]:
    """Return a bound of the share of all that is in each bucket, as the place of its level."""
    shares = np.minimum(buckets.all() / weight, 1.0)
    return np.searchsorted(LEVELS, shares).astype(np.uint8)


def _chosen(scale: float, gathered: _Gathered) -> _Weighed:
    """Return the rows whose chance is below the share that is due to their weight."""
    rows = gathered.collapsed()
    share = np.minimum(rows.weights * scale, 1.0)
    return rows._replace(weights=rows.weights / share).at(np.flatnonzero(rows.chances < share))


def _joined(parts: list[_Weighed]) -> _Weighed:
    return _Weighed(*map(np.concatenate, zip(*parts, strict=True)))


def _as_blocks(rows: _Weighed, blocks: Blocks) -> Blocks:
    """Return some of the rows of blocks as blocks in memory."""
    rows = rows.ordered()
    indptr = np.concatenate([[0], np.cumsum(rows.lengths)])
    seen = Prepared(blocks.variables, rows.values)
    return from_csr(indptr, rows.indices, blocks.n_columns, rows.weights, features=seen)


@dataclass(frozen=True)
class _Hashed:
    """The hashes of the columns: ``names`` tell rows apart, ``common`` give them their chance.

    ``features`` (2, p) are the same of the features: their places, and what they are like.
    """

    names: Keys
    common: Keys
    features: Keys
    bits: int
    shards: int

    @classmethod
    def of(cls, blocks: Blocks, first: Floats, bits: int = 1, shards: int = 1) -> _Hashed:
        """Return the hashes for rows whose M1 is ``first``, for 2ᵇⁱᵗˢ buckets in some shards."""
        return cls(
            kernels.mixed(np.arange(blocks.n_columns, dtype=np.uint64)),
            kernels.mixed(np.round(first * blocks.weight).astype(np.uint64)),
            np.array(
                [
                    kernels.mixed(~np.arange(len(blocks.variables), dtype=np.uint64)),
                    np.array([variable.key for variable in blocks.variables], dtype=np.uint64),
                ]
            ),
            bits,
            shards,
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

    def weigh(self, rows: Rows) -> list[_Buckets]:
        """Return the weight in each bucket of a block's rows, shard by shard."""
        patterns = self._added(rows, self.names, 0)
        buckets, inverse = np.unique(self._buckets(patterns), return_inverse=True)
        weights = rows.weights if rows.weights.size else None
        mass = np.bincount(inverse, weights=weights).astype(np.float64)
        size = (1 << self.bits) // self.shards
        cuts = np.searchsorted(buckets, np.arange(1, self.shards) * size)
        parts = zip(np.split(buckets, cuts), np.split(mass, cuts), strict=True)
        return [_Buckets(size, own - at * size, some) for at, (own, some) in enumerate(parts)]

    def weighed(self, rows: Rows) -> _Gathered:
        """Return the different rows of a block, with their weights."""
        return _Gathered(self._whole(rows, *self.keys(rows)).collapsed())

    def pick(self, levels: npt.NDArray[np.uint8], bounds: Floats, rows: Rows) -> list[_Gathered]:
        """Return the rows of a block whose chance is below the bound of their bucket, by shard."""
        whole = self._whole(rows, *self.keys(rows))
        buckets = self._buckets(whole.patterns)
        passed = whole.chances < bounds[levels[buckets]]
        shards = buckets // ((1 << self.bits) // self.shards)
        own = (np.flatnonzero(passed & (shards == shard)) for shard in range(self.shards))
        return [_Gathered(whole.at(places).collapsed()) for places in own]

    def _whole(self, rows: Rows, patterns: Keys, common: Keys, weights: Floats) -> _Weighed:
        chances = kernels.mixed(common) / 2.0**64
        values = rows.values if self.features.size else np.empty((patterns.size, 0))
        lengths = np.diff(rows.indptr)
        return _Weighed(patterns, chances, weights, lengths, rows.indices, values)

    def _buckets(self, patterns: Keys) -> npt.NDArray[np.int64]:
        return (kernels.mixed(patterns) >> np.uint64(64 - self.bits)).astype(np.int64)


def _value_keys(values: Floats, keys: Keys) -> Keys:
    """Return the sum, over the features of each row, of a hash of the feature and its value."""
    known = np.where(np.isnan(values), np.nan, values + 0.0)  # one bit pattern of NaN and of zero
    hashes = kernels.mixed((known.view(np.uint64) + keys).ravel()).reshape(values.shape)
    return np.asarray(hashes.sum(axis=1, dtype=np.uint64))
