"""Engine: an executor of blocks that can also read frames of its own, as Spark and Dask do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any, TypeVar

from comorb.model.blocks import Loader, Pass, Rows, fold_partials

A = TypeVar("A")
T = TypeVar("T")


class Engine(Executor):
    """An executor that maps blocks in its own way, such as a cluster of machines."""

    def map_blocks(self, function: Callable[[Rows], T], loaders: Sequence[Loader]) -> Iterator[T]:
        """Yield ``function`` of each block, in the order of the loaders."""
        raise NotImplementedError

    def map_items(self, function: Callable[[A], T], items: Sequence[A]) -> list[T]:
        """Return ``function`` of each item, in their order."""
        raise NotImplementedError

    def map_partitions(self, function: Callable[[int, Any], T], frame: Any) -> list[T]:
        """Return ``function`` of the number and the rows of each part of a frame of its own."""
        raise NotImplementedError

    def head(self, frame: Any, rows: int) -> Any:
        """Return the first rows of a frame of its own."""
        raise NotImplementedError

    def run_pass(self, job: Pass, loaders: Sequence[Loader]) -> list[Any]:
        """Return what each shard of a pass comes to; clusters add up where the blocks are."""
        return [job.finish(sums) for sums in fold_partials(self.map_blocks(job.function, loaders))]
