"""Row blocks, the threads that run over them, and the one way in which they are summed."""

from __future__ import annotations

import os
import pickle
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial, wraps
from hashlib import sha256
from itertools import islice
from math import fsum
from threading import local
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from threadpoolctl import ThreadpoolController

from comorb import __version__
from comorb.errors import ComorbWarning, InputError
from comorb.messages import Message
from comorb.model.arrays import Floats, Indices, Ints
from comorb.model.emissions.base import FeatureTable, Variable
from comorb.model.exact_sums import exact_sum as exact_sum
from comorb.model.exact_sums import snap_for as snap_for
from comorb.model.exact_sums import snap_to_grid as snap_to_grid
from comorb.model.features import PreparedFeatures, prepare_features

P = ParamSpec("P")
A = TypeVar("A")
T = TypeVar("T")

_here = local()


class Threads(ThreadPoolExecutor):
    """A pool of threads that holds at most one block more than it has threads.

    When its context ends by an error or a Ctrl-C, its tasks end at their next block of rows.
    """

    def __init__(self, count: int) -> None:
        super().__init__(count, initializer=setattr, initargs=(_here, "pool", self))
        self.window = count + 1
        self.cancelled = False

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait for the tasks that run, or cancel them."""
        self.cancelled = kind is not None
        self.shutdown(wait=True, cancel_futures=self.cancelled)


@contextmanager
def workers(n_jobs: int | None) -> Iterator[Executor | None]:
    """Yield a pool of ``n_jobs`` threads: all cores for −1 or None, no pool for 1.

    The answer does not depend on the number, so the default is all there are.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    count = (cores or 1) if n_jobs in (None, -1) else n_jobs
    if not isinstance(count, int) or count < 1:
        raise InputError("model.n_jobs", n_jobs=n_jobs)
    if count == 1:
        yield None
        return
    with Threads(count) as pool:
        yield pool


_controller = cache(ThreadpoolController)


def single_threaded(function: Callable[P, T]) -> Callable[P, T]:
    """Run dense linear algebra on one thread, so that its rounding is the same everywhere."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with _controller().limit(limits=1):
            return function(*args, **kwargs)

    return run


# The sum of all weights: beyond these the grid of exact sums leaves float64 no digits.
MIN_WEIGHT, MAX_WEIGHT = 1e-9, 1e15
NO_VALUES = np.empty((0, 0))


@dataclass(frozen=True)
class Config:
    """How rows in memory are cut into blocks, and how many are under way; any gives the same bits.

    ``python -m benchmarks engine`` prints the seconds of a pass, and its speed-up by threads.
    """

    n_blocks: int = 16
    min_block_rows: int = 8192
    max_block_rows: int = 65536
    window: int = 8  # blocks under way, of an executor that names no number of its own


CONFIG = Config()


class Rows(NamedTuple):
    """One block: the places of the ones of a 0/1 CSR slice, and a weight per row or none.

    ``values`` (n, p) are those of the features, as their variables prepare them: NaN where one is
    missing. It is empty where there are no features.
    """

    indptr: Ints
    indices: Indices
    weights: Floats
    values: Floats = NO_VALUES

    @property
    def row_weights(self) -> Floats:
        """The weight of each row, 1 where there are none."""
        return self.weights if self.weights.size else np.ones(self.indptr.size - 1)


Loader = Callable[[], Rows]
AnyInts = npt.NDArray[np.int32] | npt.NDArray[np.int64]


class Journal(Protocol):
    """The results of passes over the rows, kept so that an interrupted fit can go on."""

    def begin(self) -> None:
        """Count a pass that begins."""

    def recall(self, key: bytes) -> Any:
        """Return the result of a pass by its key, or None when it was not made yet."""

    def keep(self, key: bytes, result: Any) -> None:
        """Keep the result of a pass."""


@dataclass(frozen=True)
class Pass:
    """A sum over the rows: ``function`` of a block is a statistic for each shard.

    Each shard is added up by itself, wherever, and ``finish`` of the sum is its result. Of a
    statistic that is ``small``, however many the rows, a few sums may come back and be added here.
    """

    function: Callable[[Rows], Sequence[Any]]
    finish: Callable[[Any], Any]
    shards: int = 1
    small: bool = False

    def sum_blocks(self, blocks: Iterable[Rows]) -> list[Any]:
        """Return the sum of each shard over some blocks."""
        return fold_partials(map(self.function, blocks))

    def finish_all(self, sums: Iterable[Any]) -> list[Any]:
        """Return the result of each shard."""
        return [self.finish(one) for one in sums]


class BlockExecutor(Executor, ABC):
    """An executor that maps blocks in its own way, such as a cluster of machines."""

    @abstractmethod
    def map_blocks(self, function: Callable[[Rows], T], loaders: Sequence[Loader]) -> Iterator[T]:
        """Yield ``function`` of each block, in the order of the loaders."""

    @abstractmethod
    def map_items(self, function: Callable[[A], T], items: Sequence[A]) -> list[T]:
        """Return ``function`` of each item, in their order."""

    def run_pass(self, job: Pass, loaders: Sequence[Loader]) -> list[Any]:
        """Return the result of each shard of a pass; clusters add up where the blocks are."""
        return job.finish_all(fold_partials(self.map_blocks(job.function, loaders)))


@dataclass(frozen=True)
class Blocks:
    """A 0/1 matrix as loaders of its row blocks, with the totals that every sum needs.

    ``weight`` is the sum of the row weights, ``n_rows`` when there are none. ``variables`` are the
    features other than codes; ``mean_square`` bounds the mean square of their numbers.
    ``n_weighted`` is how many rows have a weight above zero, where not all have.
    """

    loaders: tuple[Loader, ...]
    n_rows: int
    n_columns: int
    weight: float
    journal: Journal | None = None
    variables: tuple[Variable, ...] = ()
    mean_square: float = 1.0
    n_weighted: int | None = None

    @property
    def records(self) -> float:
        """How many records the rows stand for, at least one for each row with a weight.

        Unlike ``n_rows`` it is the same for rows and for their patterns with counts.
        """
        return max(float(self.n_rows if self.n_weighted is None else self.n_weighted), self.weight)

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
    features: FeatureTable | PreparedFeatures | None = None,
) -> Blocks:
    """Cut CSR arrays held in memory into blocks; their indices are not copied.

    ``weights`` are rounded to the grid of ``snap_for``, so that M1 and M̃2 are exact too. The
    default gives some 16 blocks of 8,192 to 65,536 rows; any other gives the same bits.
    ``features`` are as people write them, or prepared for the variables of a model
    (``features.prepare_for``).
    """
    # kernels trust the places of the ones
    inside = indptr.size > 0 and indptr[0] == 0 and indptr[-1] <= indices.size
    inside = inside and not (np.diff(indptr) < 0).any()
    if not inside or (indices.size and not 0 <= indices.min() <= indices.max() < n_columns):
        raise InputError("matrix.places", columns=n_columns)
    n_rows = indptr.size - 1
    total, n_weighted = float(n_rows), None
    if weights is not None:
        total = _check_weights(weights, n_rows)
        weights = snap_to_grid(weights, total)
        n_weighted = int(np.count_nonzero(weights))
    seen = _prepare_features(features, n_rows, weights, total)
    even = -(-n_rows // CONFIG.n_blocks)
    step = block_rows or min(CONFIG.max_block_rows, max(CONFIG.min_block_rows, even))
    arrays = (indptr, indices, weights, seen.values)
    loaders = tuple(
        partial(_slice, arrays, start, min(start + step, n_rows))
        for start in range(0, n_rows, step)
    )
    mean_square = seen.mean_square(weights, total) if seen.variables else 1.0
    return Blocks(loaders, n_rows, n_columns, total, None, seen.variables, mean_square, n_weighted)


def _check_weights(weights: Floats, n_rows: int) -> float:
    """Return the sum of row weights, or refuse what are none."""
    if weights.shape != (n_rows,):
        raise InputError("weights.shape", n=n_rows, shape=str(weights.shape))
    if not (np.isfinite(weights).all() and weights.min() >= 0 and weights.any()):
        raise InputError("weights.values")
    if weights.max() > MAX_WEIGHT or not (MIN_WEIGHT <= fsum(weights) <= MAX_WEIGHT):
        raise InputError("weights.sum", low=MIN_WEIGHT, high=MAX_WEIGHT)
    return fsum(weights)


def _prepare_features(
    features: FeatureTable | PreparedFeatures | None,
    n_rows: int,
    weights: Floats | None,
    total: float,
) -> PreparedFeatures:
    """Return the features as the model sees them, none where there are none."""
    if features is None or not features.values.shape[1]:
        return PreparedFeatures((), NO_VALUES)
    if features.values.shape[0] != n_rows:
        raise InputError("model.feature_rows", n=n_rows, came=features.values.shape[0])
    if isinstance(features, FeatureTable):
        return prepare_features(features, weights, total)
    return features


def _slice(arrays: tuple[AnyInts, AnyInts, Floats | None, Floats], start: int, stop: int) -> Rows:
    indptr, indices, weights, values = arrays
    first, last = int(indptr[start]), int(indptr[stop])
    return Rows(
        indptr[start : stop + 1].astype(np.int64) - first,
        indices[first:last].astype(np.int32, copy=False),
        np.empty(0) if weights is None else weights[start:stop],
        values[start:stop] if values.size else values,
    )


def take_rows(
    blocks: Blocks, chosen: Ints, executor: Executor | None = None, weights: Floats | None = None
) -> Blocks:
    """Return the rows at the places ``chosen`` (sorted) in memory, with new weights if given."""
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
    features = PreparedFeatures(blocks.variables, values)
    return from_csr(indptr, indices, blocks.n_columns, given, features=features)


def _identity(same: T) -> T:
    return same


def map_tasks(
    function: Callable[[A], T], tasks: Sequence[A], executor: Executor | None = None
) -> list[T]:
    """Return ``function`` of each task, side by side on a pool of threads or on an engine.

    The function must not use that pool itself. On workers, too, dense linear algebra runs on one
    thread. Other executors are for blocks, not for tasks.
    """
    if isinstance(executor, ThreadPoolExecutor):
        return list(executor.map(function, tasks))
    if isinstance(executor, BlockExecutor) and len(tasks) > 1:
        return executor.map_items(partial(_on_one_thread, function), tasks)
    return [function(task) for task in tasks]


@single_threaded
def _on_one_thread(function: Callable[[A], T], task: A) -> T:
    return function(task)


def map_blocks(
    function: Callable[[Rows], T], blocks: Blocks, executor: Executor | None = None
) -> Iterator[T]:
    """Yield ``function`` of each block, in block order.

    At most the executor's ``window`` of blocks, 8 where it has none, are under way. A single block
    is not worth a thread.
    """
    if blocks.journal is not None:
        blocks.journal.begin()
    if isinstance(executor, BlockExecutor):
        yield from executor.map_blocks(function, blocks.loaders)
        return
    alone = isinstance(executor, ThreadPoolExecutor) and len(blocks.loaders) == 1
    if executor is None or alone:
        yield from (apply_to_block(function, load) for load in blocks.loaders)
        return
    waiting: deque[Future[T]] = deque()
    loaders = iter(blocks.loaders)
    for load in islice(loaders, getattr(executor, "window", CONFIG.window)):
        waiting.append(executor.submit(apply_to_block, function, load))
    while waiting:
        result = waiting.popleft().result()
        for load in islice(loaders, 1):
            waiting.append(executor.submit(apply_to_block, function, load))
        yield result


def apply_to_block(function: Callable[[Rows], T], load: Loader) -> T:
    """Return a function of a block; raise KeyboardInterrupt where the pool was cancelled."""
    pool = getattr(_here, "pool", None)
    if pool is not None and pool.cancelled:
        raise KeyboardInterrupt
    return function(load())


def map_reduce(
    function: Callable[[Rows], T],
    blocks: Blocks,
    executor: Executor | None = None,
    small: bool = True,
) -> T:
    """Return Σ_b function(block b); sums are exact, so that their order doesn't matter.

    A statistic that isn't ``small`` has more than some numbers for each cluster and code.
    """
    job = Pass(partial(_as_one_shard, function), _identity, small=small)
    found: T = run_pass(job, blocks, executor)[0]
    return found


def run_pass(job: Pass, blocks: Blocks, executor: Executor | None = None) -> list[Any]:
    """Return the result of each shard of a pass over the rows.

    A pass that the journal of the blocks holds is not made again. All of a fit follows from its
    passes, so an interrupted fit that is run again gives the bits of an uninterrupted one.
    """
    journal, key = blocks.journal, b""
    if journal is not None:
        key = sha256(pickle.dumps((__version__, job, blocks.variables), 5)).digest()
        if (known := journal.recall(key)) is not None:
            return list(known)
    if isinstance(executor, BlockExecutor):
        if journal is not None:
            journal.begin()
        found = executor.run_pass(job, blocks.loaders)
    else:
        found = job.finish_all(fold_partials(map_blocks(job.function, blocks, executor)))
    if journal is not None:
        journal.keep(key, found)
    return found


def fold_partials(partials: Iterable[Sequence[Any]]) -> list[Any]:
    """Return the sum of each shard, added into the first partial where it allows that."""
    rest = iter(partials)
    sums = list(next(rest))
    for parts in rest:
        for shard, part in enumerate(parts):
            sums[shard] += part
    return sums


def _as_one_shard(function: Callable[[Rows], T], rows: Rows) -> tuple[T]:
    return (function(rows),)


def move_columns(indptr: AnyInts, indices: AnyInts, place: Indices) -> tuple[Ints, Indices]:
    """Return CSR rows whose ones are in new columns, ``place`` of the old; those at −1 are gone.

    Each row is sorted as long as ``place`` ascends where it isn't −1.
    """
    new = place[indices]
    ends = np.concatenate(([0], np.cumsum(new >= 0)))
    return ends[indptr], new[new >= 0]


def move_row_columns(place: Indices, width: int, rows: Rows) -> Rows:
    """Return rows with their ones in the columns that ``place`` gives, sorted in each row."""
    indptr, indices = move_columns(rows.indptr, rows.indices, place)
    known = place[place >= 0]
    if (np.diff(known) < 0).any():
        matrix = csr_array((np.ones(len(indices)), indices, indptr), shape=(len(indptr) - 1, width))
        matrix.sort_indices()
        indices = matrix.indices.astype(np.int32)
    return Rows(indptr, indices, rows.weights, rows.values)


class CodedRecords(Protocol):
    """Records whose columns have codes: a cohort."""

    @property
    def codes(self) -> Sequence[str]:
        """The code of each column."""

    def blocks(self, variables: tuple[Variable, ...] | None = None) -> Blocks:
        """Return the rows in blocks, their features as the variables of a model see them."""


def align_codes(
    records: CodedRecords, codes: Sequence[str], variables: tuple[Variable, ...]
) -> Blocks:
    """Return records with the codes that a model knows, in its columns; others are warned of."""
    blocks = records.blocks(variables)
    if not codes:
        raise InputError("model.no_names")
    if list(codes) == list(records.codes):
        return blocks
    column = {code: place for place, code in enumerate(codes)}
    place = np.array([column.get(code, -1) for code in records.codes], dtype=np.int32)
    if not (place >= 0).any():
        raise InputError("model.no_known_code", n=place.size)
    if unknown := int((place < 0).sum()):
        text = Message("model.unknown_codes", unknown=unknown, n=place.size)
        warnings.warn(text, ComorbWarning, stacklevel=5)
    move = partial(move_row_columns, place, len(codes))
    loaders = tuple(partial(apply_to_block, move, load) for load in blocks.loaders)
    return replace(blocks, loaders=loaders, n_columns=len(codes))
