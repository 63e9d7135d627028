"""Row blocks, and the one way that anything is summed over them."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import islice
from math import fsum
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from comorb import __version__
from comorb.errors import InputError
from comorb.model.arrays import Floats, Indices, Ints
from comorb.model.exact import exact_sum as exact_sum
from comorb.model.exact import rounded as rounded
from comorb.model.exact import snap_for as snap_for
from comorb.model.features import FeatureTable
from comorb.model.kinds.variable import Variable
from comorb.model.prepared import Prepared, prepared
from comorb.model.threads import go_on, single_threaded

SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-9, 1e15  # of all rows together


NO_VALUES = np.empty((0, 0))


class Rows(NamedTuple):
    """One block: the places of the ones of a 0/1 CSR slice, and a weight per row or none.

    ``values`` (n, p) are those of the features, as their variables prepare them: NaN where one is
    missing. It is empty where there are no features.
    """

    indptr: Ints
    indices: Indices
    weights: Floats
    values: Floats = NO_VALUES


Loader = Callable[[], Rows]
AnyInts = npt.NDArray[np.int32] | npt.NDArray[np.int64]


class Additive(Protocol):
    """A statistic that can be added up."""

    def __add__(self, other: Any, /) -> Any: ...


A = TypeVar("A")
T = TypeVar("T")
S = TypeVar("S", bound=Additive)


class Journal(Protocol):
    """What is kept of the passes over the rows, so that an interrupted fit can go on."""

    def begin(self) -> None:
        """Hear that a pass begins."""

    def recall(self, key: bytes) -> Any:
        """Return what a pass came to, by the pass's key, or None when it was not made yet."""

    def keep(self, key: bytes, result: Any) -> None:
        """Keep what a pass came to."""


@dataclass(frozen=True)
class Pass:
    """What is added up over the rows: ``function`` of a block is a statistic for each shard.

    Each shard is added up by itself, wherever, and ``finish`` of the sum is what comes back. Of a
    statistic that is ``small``, however many the rows, a few sums may come back and be added here.
    """

    function: Callable[[Rows], Sequence[Any]]
    finish: Callable[[Any], Any]
    shards: int = 1
    small: bool = False


class Engine(Executor):
    """An executor that maps blocks in its own way, such as a cluster of machines."""

    def spread(self, function: Callable[[Rows], T], loaders: Sequence[Loader]) -> Iterator[T]:
        """Yield ``function`` of each block, in the order of the loaders."""
        raise NotImplementedError

    def each(self, function: Callable[[A], T], items: Sequence[A]) -> list[T]:
        """Return ``function`` of each item, in their order."""
        raise NotImplementedError

    def each_part(self, function: Callable[[int, Any], T], frame: Any) -> list[T]:
        """Return ``function`` of the number and the rows of each part of a frame of its own."""
        raise NotImplementedError

    def head(self, frame: Any, rows: int) -> Any:
        """Return the first rows of a frame of its own."""
        raise NotImplementedError

    def total(self, job: Pass, loaders: Sequence[Loader]) -> list[Any]:
        """Return what each shard of a pass comes to; clusters add up where the blocks are."""
        return [job.finish(sums) for sums in folded(self.spread(job.function, loaders))]


@dataclass(frozen=True)
class Blocks:
    """A 0/1 matrix as loaders of its row blocks, with the totals that every sum needs.

    ``weight`` is the sum of the row weights, which is ``n_rows`` when there are none. Features
    beside the codes are ``variables``; ``reach`` bounds the mean square of their numbers.
    """

    loaders: tuple[Loader, ...]
    n_rows: int
    n_columns: int
    weight: float
    journal: Journal | None = None
    variables: tuple[Variable, ...] = ()
    reach: float = 1.0

    @property
    def snap(self) -> float:
        """The rounding constant under which sums over these rows are exact."""
        return snap_for(self.weight)


def from_csr(
    indptr: AnyInts,
    indices: AnyInts,
    n_columns: int,
    weights: Floats | None = None,
    block_rows: int | None = None,
    features: FeatureTable | Prepared | None = None,
) -> Blocks:
    """Cut CSR arrays held in memory into blocks; their indices are not copied.

    ``weights`` are rounded to the grid of ``snap_for``, so that M1 and M̃2 are exact too. The
    default gives some 16 blocks of 8,192 to 65,536 rows; any other gives the same bits.
    ``features`` are those beside the codes, as people write them, or prepared for the variables
    of a model (``prepared.prepared_for``).
    """
    _check_ones(indptr, indices, n_columns)
    n_rows = indptr.size - 1
    total = float(n_rows)
    if weights is not None:
        if weights.shape != (n_rows,):
            raise InputError(
                f"expected one weight for each of the {n_rows} rows, got an array of shape "
                f"{weights.shape}; pass a vector as long as the matrix"
            )
        if not (np.isfinite(weights).all() and weights.min() >= 0 and weights.any()):
            raise InputError(
                "sample weights must be finite, not negative and not all zero; "
                "drop the rows that should not count, or give them weight 0"
            )
        if weights.max() > LARGEST_WEIGHT or not (
            SMALLEST_WEIGHT <= fsum(weights) <= LARGEST_WEIGHT
        ):
            raise InputError(
                f"expected sample weights that add up to {SMALLEST_WEIGHT:g} to "
                f"{LARGEST_WEIGHT:g}, got other ones; divide them all by the same number"
            )
        total = fsum(weights)
        weights = rounded(weights, total)
    seen = _seen(features, n_rows, weights, total)
    step = block_rows or min(65536, max(8192, -(-n_rows // 16)))
    arrays = (indptr, indices, weights, seen.values)
    loaders = tuple(
        partial(_slice, arrays, start, min(start + step, n_rows))
        for start in range(0, n_rows, step)
    )
    reach = seen.reach(weights, total) if seen.variables else 1.0
    return Blocks(loaders, n_rows, n_columns, total, None, seen.variables, reach)


def _seen(
    features: FeatureTable | Prepared | None, n_rows: int, weights: Floats | None, total: float
) -> Prepared:
    """Return the features as the model sees them, none of them where there are none."""
    if features is None or not features.values.shape[1]:
        return Prepared((), NO_VALUES)
    if features.values.shape[0] != n_rows:
        raise InputError(
            f"expected the features of {n_rows} rows, got those of {features.values.shape[0]}; "
            "give a row of features for each row of codes"
        )
    if isinstance(features, FeatureTable):
        return prepared(features, weights, total)
    return features


def _check_ones(indptr: AnyInts, indices: AnyInts, n_columns: int) -> None:
    """Refuse places of ones that lie outside the matrix: kernels trust them."""
    inside = indptr.size > 0 and indptr[0] == 0 and indptr[-1] <= indices.size
    inside = inside and not (np.diff(indptr) < 0).any()
    if not inside or (indices.size and not 0 <= indices.min() <= indices.max() < n_columns):
        raise InputError(
            f"expected a CSR matrix whose ones lie within its {n_columns} columns and its rows, "
            "got others; make it anew, and change no array of it by hand"
        )


def _slice(arrays: tuple[AnyInts, AnyInts, Floats | None, Floats], start: int, stop: int) -> Rows:
    indptr, indices, weights, values = arrays
    first, last = int(indptr[start]), int(indptr[stop])
    return Rows(
        indptr[start : stop + 1].astype(np.int64) - first,
        indices[first:last].astype(np.int32, copy=False),
        np.empty(0) if weights is None else weights[start:stop],
        values[start:stop] if values.size else values,
    )


def taken(
    blocks: Blocks,
    chosen: Ints,
    executor: Executor | None = None,
    weights: Floats | None = None,
) -> Blocks:
    """Return the rows at the places ``chosen`` (sorted), in the memory of this process.

    ``weights`` are theirs in place of what they had.
    """
    parts: list[Rows] = []
    start = 0
    for rows in map_blocks(_identity, blocks, executor):
        stop = start + rows.indptr.size - 1
        here = chosen[np.searchsorted(chosen, start) : np.searchsorted(chosen, stop)] - start
        lengths = np.diff(rows.indptr)
        keep = np.zeros(lengths.size, dtype=bool)
        keep[here] = True
        own = rows.weights[here] if rows.weights.size else rows.weights
        values = rows.values[here] if blocks.variables else rows.values
        parts.append(Rows(lengths[here], rows.indices[np.repeat(keep, lengths)], own, values))
        start = stop
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([part.indptr for part in parts]))])
    indices = np.concatenate([part.indices for part in parts])
    own = np.concatenate([part.weights for part in parts])
    given = weights if weights is not None else own if own.size else None
    values = np.concatenate([part.values for part in parts])
    return from_csr(
        indptr, indices, blocks.n_columns, given, features=Prepared(blocks.variables, values)
    )


def _identity(same: T) -> T:
    return same


def map_tasks(
    function: Callable[[A], T], tasks: Sequence[A], executor: Executor | None = None
) -> list[T]:
    """Return ``function`` of each task, side by side on a pool of threads or on an engine.

    The function must not use that pool itself. Dense linear algebra runs on one thread on workers,
    as it does here. Other executors are for blocks, not for tasks.
    """
    if isinstance(executor, ThreadPoolExecutor):
        return list(executor.map(function, tasks))
    if isinstance(executor, Engine) and len(tasks) > 1:
        return executor.each(partial(_on_one_thread, function), tasks)
    return [function(task) for task in tasks]


@single_threaded
def _on_one_thread(function: Callable[[A], T], task: A) -> T:
    return function(task)


def map_blocks(
    function: Callable[[Rows], T], blocks: Blocks, executor: Executor | None = None
) -> Iterator[T]:
    """Yield ``function`` of each block, in block order, with a bounded number under way.

    That number is the executor's ``window``, or 8 where it has none. A single block is not worth
    a thread.
    """
    if blocks.journal is not None:
        blocks.journal.begin()
    if isinstance(executor, Engine):
        yield from executor.spread(function, blocks.loaders)
        return
    alone = isinstance(executor, ThreadPoolExecutor) and len(blocks.loaders) == 1
    if executor is None or alone:
        yield from (applied(function, load) for load in blocks.loaders)
        return
    waiting: deque[Future[T]] = deque()
    loaders = iter(blocks.loaders)
    for load in islice(loaders, getattr(executor, "window", 8)):
        waiting.append(executor.submit(applied, function, load))
    while waiting:
        result = waiting.popleft().result()
        for load in islice(loaders, 1):
            waiting.append(executor.submit(applied, function, load))
        yield result


def applied(function: Callable[[Rows], T], load: Loader) -> T:
    """Return a function of a block, unless the work was broken off."""
    go_on()
    return function(load())


def map_reduce(
    function: Callable[[Rows], S],
    blocks: Blocks,
    executor: Executor | None = None,
    small: bool = True,
) -> S:
    """Return Σ_b function(block b); sums are exact, so that their order doesn't matter.

    A statistic that isn't ``small`` has more than some numbers for each cluster and code.
    """
    job = Pass(partial(_alone, function), _identity, small=small)
    found: S = total(job, blocks, executor)[0]
    return found


def total(job: Pass, blocks: Blocks, executor: Executor | None = None) -> list[Any]:
    """Return what each shard of a pass over the rows comes to.

    One that the journal of the blocks holds is not made again. All of a fit follows from its
    passes, so an interrupted fit that is run again gives the bits of an uninterrupted one.
    """
    journal, key = blocks.journal, b""
    if journal is not None:
        key = sha256(pickle.dumps((__version__, job, blocks.variables), 5)).digest()
        if (known := journal.recall(key)) is not None:
            return list(known)
    if isinstance(executor, Engine):
        if journal is not None:
            journal.begin()
        found = executor.total(job, blocks.loaders)
    else:
        found = [job.finish(sums) for sums in folded(map_blocks(job.function, blocks, executor))]
    if journal is not None:
        journal.keep(key, found)
    return found


def folded(partials: Iterable[Sequence[Any]]) -> list[Any]:
    """Return the sum of each shard, added into the first partial where it allows that."""
    rest = iter(partials)
    sums = list(next(rest))
    for parts in rest:
        for shard, part in enumerate(parts):
            sums[shard] += part
    return sums


def _alone(function: Callable[[Rows], T], rows: Rows) -> tuple[T]:
    return (function(rows),)
