"""Engines: where the blocks of rows are, and what maps them.

The mathematics is the same everywhere and its sums are exact, so a fit has the same bits in
memory, from a file larger than memory, and on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from comorb.engines.block_files import open_blocks
from comorb.engines.checkpoints import FileJournal
from comorb.errors import EngineError
from comorb.model.blocks import workers

__all__ = ["FileJournal", "open_blocks", "open_engine"]


@contextmanager
def open_engine(name: str = "threads") -> Iterator[Executor | None]:
    """Start the engine that maps the blocks, or connect to it.

    Parameters
    ----------
    name : str, default="threads"
        ``threads``: all cores of this machine. ``dask``: a local cluster, a worker a core;
        ``dask://host:8786``: a scheduler that runs. ``spark``: Spark on this machine, which
        tries a lost task four times; ``spark://…``, ``local[…]``, ``yarn``: a master;
        ``sc://…``: Spark Connect.

    Yields
    ------
    Executor or None
        For `BernoulliMixture.fit_blocks`; stopped when the block ends, unless it ran before.

    Examples
    --------
    >>> with open_engine("threads") as engine:
    ...     pass
    """
    kind = name.partition("://")[0].partition("[")[0]
    if name == "threads":
        with workers(-1) as pool:
            yield pool
    elif kind == "dask":
        from comorb.engines.dask_engine import dask_engine

        with dask_engine(name.partition("://")[2] or None) as engine:
            yield engine
    elif kind in ("spark", "local", "yarn", "sc"):
        from comorb.engines.spark_engine import spark_engine

        with spark_engine("local[*,4]" if name == "spark" else name) as engine:
            yield engine
    else:
        raise EngineError("engine.unknown", name=name)
