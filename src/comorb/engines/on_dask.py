"""Dask: the row groups live on its workers, and each pass sends the model and fetches the sums."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from operator import call
from typing import Any, TypeVar

from comorb.engines.blockfile import RowGroup
from comorb.errors import EngineError, not_installed
from comorb.model.blocks import Engine, Loader, Rows

T = TypeVar("T")

_WINDOW = 64
_TIMEOUT = "10s"


class DaskEngine(Engine):
    """Maps the row groups of a file on the workers of a Dask cluster.

    A worker reads a row group once and keeps it; when the worker dies, another one reads it
    again. Blocks that are in the memory of this process are mapped here. ``client`` is a
    connection to a cluster whose workers see the file.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._blocks: dict[Loader, Any] = {}

    def spread(self, function: Callable[[Rows], T], loaders: Sequence[Loader]) -> Iterator[T]:
        """Yield ``function`` of each block, in the order of the loaders."""
        if not all(isinstance(load, RowGroup) for load in loaders):
            yield from (function(load()) for load in loaders)
            return
        submit = self._client.submit
        try:
            for load in loaders:
                if load not in self._blocks:
                    self._blocks[load] = submit(load, pure=False)
            sent = submit(_same, function, pure=False)
            asked = [submit(call, sent, self._blocks[load], pure=False) for load in loaders]
            for start in range(0, len(asked), _WINDOW):
                part = asked[start : start + _WINDOW]
                yield from self._client.gather(part)
                asked[start : start + _WINDOW] = [None] * len(part)
        except _lost() as error:
            raise EngineError(
                f"the Dask scheduler is lost or gave up ({type(error).__name__}). Start it again "
                "and run the same command: it goes on from the last whole pass."
            ) from None


def _lost() -> tuple[type[BaseException], ...]:
    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    lost = (CommClosedError, FutureCancelledError, KilledWorker)
    return (*lost, asyncio.CancelledError, TimeoutError, ConnectionError)


def _same(function: T) -> T:
    return function


@contextmanager
def dask_engine(address: str | None = None) -> Iterator[DaskEngine]:
    """Connect to the Dask scheduler at ``host:port``, or start a cluster on this machine.

    A local cluster has a worker a core and no dashboard.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise EngineError(not_installed("Dask", "dask")) from None
    with ExitStack() as stack:
        target = f"tcp://{address}"
        if address is None:
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
            raise EngineError(
                f"no Dask scheduler answers at {address}; check the address and start it."
            ) from None
        yield DaskEngine(client)
