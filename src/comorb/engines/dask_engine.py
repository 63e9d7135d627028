"""Dask: the row groups live on its workers, which add up what they hold; the sum comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from operator import call
from typing import Any, TypeVar

from comorb.engines.base import FAN_IN, Engine, group_loaders, in_file, version_problem
from comorb.engines.block_files import RowGroup
from comorb.errors import EngineError, not_installed
from comorb.model.blocks import Loader, Pass, Rows, fold_partials

A = TypeVar("A")
T = TypeVar("T")

# A worker keeps the blocks of its tasks: few a task spread evenly. So many tasks are fetched at
# once, which bounds memory here. ``python -m benchmarks scale`` prints the seconds of a pass.
_BLOCKS_PER_TASK, _WINDOW = 4, 16
_TIMEOUT = "10s"  # until a scheduler that doesn't answer is taken for lost


class DaskEngine(Engine):
    """Maps the row groups of a file on the workers of a Dask cluster.

    A worker reads the row groups of a task once and keeps them; when the worker dies, another one
    reads them again. Blocks that are in the memory of this process are mapped here. ``client`` is
    a connection to a cluster whose workers see the file.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._held: dict[tuple[Loader, ...], Any] = {}
        self._same_version = False

    def map_blocks(self, function: Callable[[Rows], T], loaders: Sequence[Loader]) -> Iterator[T]:
        """Yield ``function`` of each block, in the order of the loaders."""
        if not in_file(loaders):
            yield from (function(load()) for load in loaders)
            return
        with _translate_errors():
            futures = self._submit_groups(_map_each, function, loaders)
            for start in range(0, len(futures), _WINDOW):
                part = futures[start : start + _WINDOW]
                for results in self._client.gather(part):
                    yield from results
                futures[start : start + _WINDOW] = [None] * len(part)

    def run_pass(self, job: Pass, loaders: Sequence[Loader]) -> list[Any]:
        """Return the result of each shard of a pass, added up by the workers."""
        if not in_file(loaders):
            return super().run_pass(job, loaders)
        with _translate_errors():
            sums = self._submit_groups(Pass.sum_blocks, job, loaders)
            while len(sums) > 1:
                parts = (sums[at : at + FAN_IN] for at in range(0, len(sums), FAN_IN))
                sums = [self._submit(_add_partials, *part, priority=1) for part in parts]
            found: list[Any] = self._submit(Pass.finish_all, job, sums[0]).result()
            return found

    def map_items(self, function: Callable[[A], T], items: Sequence[A]) -> list[T]:
        """Return ``function`` of each item, in their order."""
        with _translate_errors():
            self._check()
            return list(self._client.gather([self._submit(function, item) for item in items]))

    def map_partitions(self, function: Callable[[int, Any], T], frame: Any) -> list[T]:
        """Return ``function`` of the number and the pandas frame of each partition."""
        with _translate_errors():
            self._check()
            parts = self._client.compute(frame.to_delayed())
            futures = [self._submit(function, number, part) for number, part in enumerate(parts)]
            parts.clear()
            return list(self._client.gather(futures))

    def head(self, frame: Any, rows: int) -> Any:
        """Return the first rows of a DataFrame, as pandas has them."""
        return frame.head(rows, npartitions=-1)

    def _submit_groups(
        self, work: Callable[..., T], about: Any, loaders: Sequence[Loader]
    ) -> list[Any]:
        """Return futures of some work on the blocks of each task."""
        self._check()
        sent = self._submit(_identity, about)
        groups = group_loaders(loaders, _BLOCKS_PER_TASK)
        return [self._submit(work, sent, self._blocks(group)) for group in groups]

    def _blocks(self, group: tuple[Loader, ...]) -> Any:
        """Return the future of the blocks of a task; plain row groups stay on the workers."""
        if group in self._held:
            return self._held[group]
        read = self._submit(_read, group)
        if all(type(load) is RowGroup for load in group):
            self._held[group] = read
        return read

    def _submit(self, *words: Any, priority: int = 0) -> Any:
        return self._client.submit(*words, pure=False, priority=priority)

    def _check(self) -> None:
        """Refuse workers whose comorb is another."""
        if self._same_version:
            return
        found = self._client.get_versions(packages=["comorb"])["workers"].values()
        for worker in found:
            if problem := version_problem("Dask", worker["packages"].get("comorb")):
                raise EngineError(problem)
        self._same_version = True


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise an `EngineError` where the cluster is lost."""
    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    lost = (CommClosedError, FutureCancelledError, KilledWorker)
    try:
        yield
    except (*lost, asyncio.CancelledError, TimeoutError, ConnectionError) as error:
        raise EngineError("engine.dask_lost", type=type(error).__name__) from None


def _read(group: tuple[Loader, ...]) -> list[Rows]:
    return list(map(call, group))


def _map_each(function: Callable[[Rows], T], blocks: list[Rows]) -> list[T]:
    return list(map(function, blocks))


def _add_partials(*partials: list[Any]) -> list[Any]:
    """Return the sum of partial sums, which stay as they are: a task may be repeated."""
    return fold_partials([deepcopy(partials[0]), *partials[1:]])


def _identity(about: T) -> T:
    return about


@contextmanager
def dask_engine(address: str | None = None) -> Iterator[DaskEngine]:
    """Connect to the Dask scheduler at ``host:port``, or start a cluster on this machine.

    A local cluster has a worker a core and no dashboard.
    """
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise EngineError(not_installed("Dask", "dask")) from None
    with ExitStack() as stack:
        target = f"tcp://{address}"
        if address is None:
            # A lost worker is started again. Dask looks 15 s later whether it is there, and gives
            # it up for good if it was lost once more just then: with the last one, all would wait.
            stack.enter_context(dask.config.set({"distributed.deploy.lost-worker-timeout": "365d"}))
            target = stack.enter_context(
                LocalCluster(
                    threads_per_worker=1,
                    dashboard_address="127.0.0.1:0",
                    scheduler_kwargs={"dashboard": False},
                )
            )
        try:
            client = stack.enter_context(Client(target, timeout=_TIMEOUT))
        except OSError:
            raise EngineError("engine.dask_silent", address=address) from None
        yield DaskEngine(client)
