"""Engine: an executor of blocks and of frames of its own, with what Dask and Spark share."""

from __future__ import annotations

import pickle
import zlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from itertools import pairwise
from typing import Any, TypeVar

from comorb import __version__
from comorb.engines.block_files import RowGroup
from comorb.messages import Message
from comorb.model.blocks import BlockExecutor, Loader

A = TypeVar("A")
T = TypeVar("T")

# Tasks of a pass at least, where there are as many blocks, and partial sums that are added at once;
# ``python -m benchmarks scale`` prints the seconds of a pass on each engine.
MIN_TASKS, FAN_IN = 8, 16


class Engine(BlockExecutor):
    """An executor of blocks that also reads frames of its own."""

    @abstractmethod
    def map_partitions(self, function: Callable[[int, Any], T], frame: Any) -> list[T]:
        """Return ``function`` of the number and the rows of each partition of a frame."""

    @abstractmethod
    def head(self, frame: Any, rows: int) -> Any:
        """Return the first rows of a frame."""


def map_items(function: Callable[[A], T], items: Sequence[A], executor: Executor | None) -> list[T]:
    """Return ``function`` of each item, in their order; both can be sent to another machine.

    A task may be done twice where a worker is lost, and counts once.

    >>> map_items(str.upper, ["a", "b"], None)
    ['A', 'B']
    """
    if isinstance(executor, BlockExecutor):
        return executor.map_items(function, items)
    return list(map(function, items) if executor is None else executor.map(function, items))


def pack(value: Any) -> bytes:
    """Return a value as compressed bytes, for another process of our own.

    >>> unpack(pack([1, "two", {3.0}]))
    [1, 'two', {3.0}]
    """
    return zlib.compress(pickle.dumps(value, 5), 1)


def unpack(content: bytes) -> Any:
    """Return the value of bytes that `pack` made."""
    return pickle.loads(zlib.decompress(content))  # noqa: S301 - made by a task of our own


def in_file(loaders: Sequence[Loader]) -> bool:
    """Return whether blocks are in a file that workers see, not in the memory of this process."""
    return bool(loaders) and all(isinstance(load, RowGroup) for load in loaders)


def group_loaders(loaders: Sequence[Loader], most: int) -> list[tuple[Loader, ...]]:
    """Return the blocks of each task, in order: as many in each, ``most`` of them at most.

    >>> [len(group) for group in group_loaders([tuple] * 35, 4)]
    [4, 4, 4, 4, 4, 4, 4, 4, 3]
    >>> [len(group) for group in group_loaders([tuple] * 11, 4)]
    [2, 2, 2, 1, 1, 1, 1, 1]
    """
    count = min(len(loaders), max(MIN_TASKS, -(-len(loaders) // most)))
    size, larger = divmod(len(loaders), count)
    ends = [number * size + min(number, larger) for number in range(count + 1)]
    return [tuple(loaders[start:stop]) for start, stop in pairwise(ends)]


def version_problem(engine: str, found: str | None) -> str | None:
    """Return what is wrong with a worker's comorb, in one line; None where it is as here."""
    if found == __version__:
        return None
    if found is None:
        return Message("engine.no_comorb", engine=engine, version=__version__)
    return Message("engine.version", engine=engine, found=found, version=__version__)
