"""Partials: what a worker of a cluster adds up of its blocks, alike on every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any, TypeVar

from comorb import __version__
from comorb.engines.blockfile import RowGroup
from comorb.model.blocks import Loader, Pass, Rows
from comorb.model.blocks import folded as folded

A = TypeVar("A")
T = TypeVar("T")

FEWEST_TASKS = 8  # where there are as many blocks
FAN = 16  # partials that are added up at once


def grouped(loaders: Sequence[Loader], most: int) -> list[tuple[Loader, ...]]:
    """Return the blocks of each task, in order: as many in each, ``most`` of them at most.

    >>> [len(group) for group in grouped([tuple] * 35, 4)]
    [4, 4, 4, 4, 4, 4, 4, 4, 3]
    >>> [len(group) for group in grouped([tuple] * 11, 4)]
    [2, 2, 2, 1, 1, 1, 1, 1]
    """
    count = min(len(loaders), max(FEWEST_TASKS, -(-len(loaders) // most)))
    size, larger = divmod(len(loaders), count)
    ends = [number * size + min(number, larger) for number in range(count + 1)]
    return [tuple(loaders[start:stop]) for start, stop in pairwise(ends)]


def in_file(loaders: Sequence[Loader]) -> bool:
    """Tell whether blocks are in a file that workers see, and not in the memory of this process."""
    return bool(loaders) and all(isinstance(load, RowGroup) for load in loaders)


def each(function: Callable[[Rows], T], blocks: Iterable[Rows]) -> list[T]:
    """Return a function of each block of a task."""
    return [function(rows) for rows in blocks]


def summed(job: Pass, blocks: Iterable[Rows]) -> list[Any]:
    """Return the sum over the blocks of a task, of each shard."""
    return folded(map(job.function, blocks))


def added(*partials: list[Any]) -> list[Any]:
    """Return the sum of what tasks came to; theirs stays as it is, should it be asked for again."""
    return folded([deepcopy(partials[0]), *partials[1:]])


def finished(job: Pass, sums: list[Any]) -> list[Any]:
    """Return what each shard comes to."""
    return [job.finish(one) for one in sums]


def other_version(found: str | None) -> str | None:
    """Return what to tell of a worker's comorb, in one line; None where it is the same as here."""
    if found == __version__:
        return None
    have = "no comorb" if found is None else f"comorb {found}"
    return f"a worker has {have}; install comorb {__version__}, as here, on every worker."
