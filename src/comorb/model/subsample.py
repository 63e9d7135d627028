"""Weighted subsamples: a few thousand rows that stand for all, drawn in bounded memory."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from comorb.model import kernels
from comorb.model.arrays import Floats, Indices, Ints, Keys, Mask
from comorb.model.blocks import Blocks, Pass, Rows, from_csr, map_blocks, run_pass, take_rows
from comorb.model.features import PreparedFeatures

# Bounds of a share that fit in a byte: 0 and 255 powers of 2^(1/8), down to 2⁻³².
SHARE_BOUNDS = np.append(0.0, 2.0 ** (np.arange(-254, 1) / 8))
# A bound exceeds what was rounded on the way to it: some thousand float epsilons.
ROUNDING_SLACK = 1 + 1e-12


@dataclass(frozen=True)
class Config:
    """What a subsample may hold in memory; ``python -m benchmarks.scale large`` prints the peak.

    Which rows are drawn depends on none of these but ``max_records``, above which a weighted row
    stands for several records at once.
    """

    # buckets by which weights are bounded: 2¹⁰ to 2²², 32 MB of sums
    min_bucket_bits: int = 10
    max_bucket_bits: int = 22
    # as many rows as buckets go to a shard, which one worker adds up
    rows_per_shard: int = 1 << 22
    max_shards: int = 256
    min_waiting: int = 1 << 16  # rows that wait before equal ones are made one: 4 MB at 64 bytes
    # records that weighted rows are taken for when parts are drawn, 32 bytes each: 128 MB
    max_records: int = 1 << 22


CONFIG = Config()


def thin_rows(blocks: Blocks, first: Floats, target: int, executor: Executor | None) -> Blocks:
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
        return take_rows(blocks, np.arange(blocks.n_rows), executor)
    return _draw_rows(blocks, first, target, executor)


def subsample(blocks: Blocks, first: Floats, target: int, executor: Executor | None) -> Blocks:
    """Return different rows that stand for all, each with the weight of those like it.

    ``thin_rows`` to about ``target`` of them where the rows stand for twice as many records or
    more: rows and their patterns with counts have the same subsample.
    """
    if blocks.records < 2 * target:
        return distinct_rows(blocks, first, executor)
    return _draw_rows(blocks, first, target, executor)


def _draw_rows(blocks: Blocks, first: Floats, target: int, executor: Executor | None) -> Blocks:
    bits = int(
        np.clip(np.ceil(np.log2(blocks.n_rows)), CONFIG.min_bucket_bits, CONFIG.max_bucket_bits)
    )
    shards = 1 << max(int(np.ceil(np.log2(blocks.n_rows / CONFIG.rows_per_shard))), 0)
    hashes = _RowHashes.of(blocks, first, bits, min(shards, CONFIG.max_shards))
    weigh = Pass(hashes.bucket_weights, partial(_bound_shares, blocks.weight), hashes.shards)
    levels = np.concatenate(run_pass(weigh, blocks, executor))
    bounds = np.minimum(SHARE_BOUNDS * (target * ROUNDING_SLACK), 1.0)
    choose = partial(_keep_by_share, target / blocks.weight)
    pick = Pass(partial(hashes.candidates, levels, bounds), choose, hashes.shards)
    return _as_blocks(_concatenate(run_pass(pick, blocks, executor)), blocks)


def distinct_rows(blocks: Blocks, first: Floats, executor: Executor | None) -> Blocks:
    """Return each different row that weighs something once, with the weight of all like it."""
    (rows,) = run_pass(
        Pass(_RowHashes.of(blocks, first).distinct_rows, _DistinctRows.collapse), blocks, executor
    )
    return _as_blocks(rows.at(np.flatnonzero(rows.weights > 0)), blocks)


def column_keys(blocks: Blocks, first: Floats) -> Keys:
    """Return a hash of each column by what it holds, (d,), to draw noise by.

    The sum, over the rows that carry the code, of a hash of how common the row's codes are: it
    depends neither on the order of the rows nor on that of the columns.
    """
    hashes = _RowHashes.of(blocks, first)
    keys = np.zeros(blocks.n_columns, np.uint64)
    for load in blocks.loaders:
        rows = load()
        _, common, _ = hashes.keys(rows)
        with np.errstate(over="ignore"):  # modulo 2⁶⁴, also where the loop is not compiled
            kernels.add_to_columns(rows.indptr, rows.indices, kernels.splitmix64(common), keys)
    return keys


def row_uniforms(blocks: Blocks, first: Floats, executor: Executor | None) -> Floats:
    """Return a number in [0, 1) for each row, (n,), to draw parts by.

    A hash of how common the row's codes are and of which one it is among identical rows, the
    lighter first: the rows that a part gets depend neither on their order nor on that of the
    columns.
    """
    parts = map_blocks(_RowHashes.of(blocks, first).keys, blocks, executor)
    patterns, common, weights = map(np.concatenate, zip(*parts, strict=True))
    ranks = _ranks_among_equals(patterns, weights, np.ones(patterns.size, dtype=np.int64))
    return _hash_uniform(common, ranks)


class Records(NamedTuple):
    """The records that rows stand for: the row of each, its chance in [0, 1), and its weight."""

    rows: Ints
    uniforms: Floats
    weights: Floats

    def part(self, drawn: Mask | Ints, n_rows: int) -> Floats:
        """Return what each row weighs in a part of the records, or drawn so often, (n_rows,)."""
        return np.bincount(self.rows, self.weights * drawn, n_rows).astype(np.float64)


def unit_records(blocks: Blocks, first: Floats, count: float, executor: Executor | None) -> Records:
    """Return the records that weighted rows stand for, to draw parts by.

    A row of weight w is ⌊w⌋ records of weight 1 and one of what is left. That unit is smaller
    where weights are fractions of the ``count`` records, and larger where those are more than
    ``CONFIG.max_records``. A record has the number that ``row_uniforms`` gives to one of w
    identical rows: parts of a table of patterns with counts have the records of its rows.
    """
    parts = map_blocks(_RowHashes.of(blocks, first).keys, blocks, executor)
    patterns, common, weights = map(np.concatenate, zip(*parts, strict=True))
    # a power of two, so that what follows is exact
    unit = 2.0 ** np.ceil(np.log2(blocks.weight / min(count, CONFIG.max_records)))
    counts = np.ceil(weights / unit).astype(np.int64)
    rows = np.repeat(np.arange(counts.size), counts)
    own = np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts)
    ranks = _ranks_among_equals(patterns, weights, counts)[rows] + own.astype(np.uint64)
    shares = np.minimum(weights[rows] - own * unit, unit)
    return Records(rows, _hash_uniform(common[rows], ranks), shares)


def _ranks_among_equals(patterns: Keys, weights: Floats, counts: Ints) -> Keys:
    """Return how many records like it come before those of each row, the lighter rows first."""
    order = np.lexsort((weights, patterns))
    ordered, own = patterns[order], counts[order]
    before = (np.cumsum(own) - own).astype(np.uint64)
    starts = np.maximum.accumulate(
        np.where(np.r_[True, ordered[1:] != ordered[:-1]], before, np.uint64(0))
    )
    ranks = np.empty_like(before)
    ranks[order] = before - starts
    return ranks


def _hash_uniform(common: Keys, ranks: Keys) -> Floats:
    return kernels.splitmix64(common + kernels.splitmix64(ranks + np.uint64(1))) / 2.0**64


class _WeightedRows(NamedTuple):
    """Different rows: their identity, chance in [0, 1), weight, number and places of ones.

    And the values of their features, (n, p).
    """

    patterns: Keys
    uniforms: Floats
    weights: Floats
    lengths: Ints
    indices: Indices
    values: Floats

    def at(self, places: Ints) -> _WeightedRows:
        """Return the rows at some places (sorted)."""
        keep = np.zeros(self.lengths.size, dtype=bool)
        keep[places] = True
        ones = self.indices[np.repeat(keep, self.lengths)]
        return _WeightedRows(
            self.patterns[keep],
            self.uniforms[keep],
            self.weights[keep],
            self.lengths[keep],
            ones,
            self.values[keep],
        )

    def collapse(self) -> _WeightedRows:
        """Return each row once, at its first place, with the weight of all that are the same."""
        _, places, inverse = np.unique(self.patterns, return_index=True, return_inverse=True)
        mass: Floats = np.bincount(inverse, weights=self.weights).astype(np.float64)
        order = np.argsort(places)
        return self.at(places[order])._replace(weights=mass[order])

    def sort(self) -> _WeightedRows:
        """Return the rows in the order of their identities, whatever the order they came in."""
        order = np.argsort(self.patterns)
        lengths = self.lengths[order]
        starts = (np.cumsum(self.lengths) - self.lengths)[order]
        ends = np.cumsum(lengths)
        ones = np.repeat(starts - (ends - lengths), lengths) + np.arange(lengths.sum())
        rows = (self.patterns[order], self.uniforms[order], self.weights[order], lengths)
        return _WeightedRows(*rows, self.indices[ones], self.values[order])


class _DistinctRows:
    """Rows that are added up: the same ones are collapsed whenever as many again have come."""

    def __init__(self, rows: _WeightedRows) -> None:
        self.parts, self.waiting, self.base = [rows], 0, CONFIG.min_waiting

    def __add__(self, other: Self) -> Self:
        return type(self)(self.collapse()).__iadd__(other)

    def __iadd__(self, other: Self) -> Self:
        self.parts += other.parts
        self.waiting += sum(part.lengths.size for part in other.parts)
        if self.waiting > self.base:
            self.parts, self.waiting = [self.collapse()], 0
            self.base = max(CONFIG.min_waiting, self.parts[0].lengths.size)
        return self

    def __reduce__(self) -> Any:
        return _DistinctRows, (self.collapse(),)

    def collapse(self) -> _WeightedRows:
        """Return each row once, with the weight of all that are the same."""
        return _concatenate(self.parts).collapse()


class _BucketWeights:
    """Weights by bucket: those of some ``places`` among ``size``, or all once they are added."""

    def __init__(self, size: int, places: Ints, weights: Floats) -> None:
        self.size, self.places, self.weights = size, places, weights
        self.dense: Floats | None = None

    def __iadd__(self, other: Self) -> Self:
        every = self.all()
        if other.dense is None:
            every[other.places] += other.weights
        else:
            every += other.dense
        return self

    def __reduce__(self) -> Any:
        if self.dense is None:
            return _BucketWeights, (self.size, self.places, self.weights)
        places = np.flatnonzero(self.dense)
        return _BucketWeights, (self.size, places, self.dense[places])

    def all(self) -> Floats:
        """Return the weight of every bucket, to add to."""
        if self.dense is None:
            self.dense = np.zeros(self.size)
            self.dense[self.places] = self.weights
        return self.dense


def _bound_shares(weight: float, buckets: _BucketWeights) -> npt.NDArray[np.uint8]:
    """Return a bound of the share of all that is in each bucket, as the place of its level."""
    shares = np.minimum(buckets.all() / weight, 1.0)
    return np.searchsorted(SHARE_BOUNDS, shares).astype(np.uint8)


def _keep_by_share(scale: float, gathered: _DistinctRows) -> _WeightedRows:
    """Return the rows whose chance is below the share that is due to their weight."""
    rows = gathered.collapse()
    share = np.minimum(rows.weights * scale, 1.0)
    return rows._replace(weights=rows.weights / share).at(np.flatnonzero(rows.uniforms < share))


def _concatenate(parts: list[_WeightedRows]) -> _WeightedRows:
    return _WeightedRows(*map(np.concatenate, zip(*parts, strict=True)))


def _as_blocks(rows: _WeightedRows, blocks: Blocks) -> Blocks:
    """Return some of the rows of blocks as blocks in memory."""
    rows = rows.sort()
    indptr = np.concatenate([[0], np.cumsum(rows.lengths)])
    seen = PreparedFeatures(blocks.variables, rows.values)
    return from_csr(indptr, rows.indices, blocks.n_columns, rows.weights, features=seen)


@dataclass(frozen=True)
class _RowHashes:
    """The hashes of the columns: ``identity`` tell rows apart, ``content`` give them their chance.

    ``features`` (2, p) are the same of the features: their places, and what they are like.
    """

    identity: Keys
    content: Keys
    features: Keys
    bits: int
    shards: int

    @classmethod
    def of(cls, blocks: Blocks, first: Floats, bits: int = 1, shards: int = 1) -> _RowHashes:
        """Return the hashes for rows whose M1 is ``first``, for 2ᵇⁱᵗˢ buckets in some shards."""
        return cls(
            kernels.splitmix64(np.arange(blocks.n_columns, dtype=np.uint64)),
            kernels.splitmix64(np.round(first * blocks.weight).astype(np.uint64)),
            np.array(
                [
                    kernels.splitmix64(~np.arange(len(blocks.variables), dtype=np.uint64)),
                    np.array([variable.key for variable in blocks.variables], dtype=np.uint64),
                ]
            ),
            bits,
            shards,
        )

    def keys(self, rows: Rows) -> tuple[Keys, Keys, Floats]:
        """Return the identity of each row of a block, how common its codes are, and its weight."""
        weights = rows.weights if rows.weights.size else np.ones(rows.indptr.size - 1)
        return (
            self._sum_keys(rows, self.identity, 0),
            self._sum_keys(rows, self.content, 1),
            weights,
        )

    def _sum_keys(self, rows: Rows, keys: Keys, of: int) -> Keys:
        """Return the sum of the keys of each row's codes and of its features."""
        with np.errstate(over="ignore"):  # modulo 2⁶⁴, also where the loop is not compiled
            sums = kernels.row_keys(rows.indptr, rows.indices, keys)
            if self.features.size:
                sums += _value_keys(rows.values, self.features[of])
        return sums

    def bucket_weights(self, rows: Rows) -> list[_BucketWeights]:
        """Return the weight in each bucket of a block's rows, shard by shard."""
        patterns = self._sum_keys(rows, self.identity, 0)
        buckets, inverse = np.unique(self._buckets(patterns), return_inverse=True)
        weights = rows.weights if rows.weights.size else None
        mass = np.bincount(inverse, weights=weights).astype(np.float64)
        size = (1 << self.bits) // self.shards
        cuts = np.searchsorted(buckets, np.arange(1, self.shards) * size)
        parts = zip(np.split(buckets, cuts), np.split(mass, cuts), strict=True)
        return [_BucketWeights(size, own - at * size, some) for at, (own, some) in enumerate(parts)]

    def distinct_rows(self, rows: Rows) -> list[_DistinctRows]:
        """Return the different rows of a block, with their weights, in one shard."""
        return [_DistinctRows(self._weighted_rows(rows, *self.keys(rows)).collapse())]

    def candidates(
        self, levels: npt.NDArray[np.uint8], bounds: Floats, rows: Rows
    ) -> list[_DistinctRows]:
        """Return the rows of a block whose chance is below the bound of their bucket, by shard."""
        whole = self._weighted_rows(rows, *self.keys(rows))
        buckets = self._buckets(whole.patterns)
        passed = whole.uniforms < bounds[levels[buckets]]
        shards = buckets // ((1 << self.bits) // self.shards)
        own = (np.flatnonzero(passed & (shards == shard)) for shard in range(self.shards))
        return [_DistinctRows(whole.at(places).collapse()) for places in own]

    def _weighted_rows(
        self, rows: Rows, patterns: Keys, common: Keys, weights: Floats
    ) -> _WeightedRows:
        chances = kernels.splitmix64(common) / 2.0**64
        values = rows.values if self.features.size else np.empty((patterns.size, 0))
        lengths = np.diff(rows.indptr)
        return _WeightedRows(patterns, chances, weights, lengths, rows.indices, values)

    def _buckets(self, patterns: Keys) -> npt.NDArray[np.int64]:
        return (kernels.splitmix64(patterns) >> np.uint64(64 - self.bits)).astype(np.int64)


def _value_keys(values: Floats, keys: Keys) -> Keys:
    """Return the sum, over the features of each row, of a hash of the feature and its value."""
    known = np.where(np.isnan(values), np.nan, values + 0.0)  # one bit pattern of NaN and of zero
    hashes = kernels.splitmix64((known.view(np.uint64) + keys).ravel()).reshape(values.shape)
    return np.asarray(hashes.sum(axis=1, dtype=np.uint64))
