"""Spark: a pass is one job over the numbers of the row groups, by the DataFrame API alone."""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import pyarrow as pa

from comorb.engines.blockfile import RowGroup
from comorb.errors import EngineError, not_installed
from comorb.model.blocks import Engine, Loader, Rows

T = TypeVar("T")

BLOCKS_A_TASK = 4  # a task costs Spark more than a block costs a task


class SparkEngine(Engine):
    """Maps the row groups of a file on a Spark session, also over Spark Connect.

    The model travels in the closure and each partial comes back with the number of its row
    group; they are folded here in that order. Blocks that are in the memory of this process
    are mapped here. The executors of the session see the file and have comorb installed.
    """

    def __init__(self, session: Any) -> None:
        self._session = session

    def spread(self, function: Callable[[Rows], T], loaders: Sequence[Loader]) -> Iterator[T]:
        """Yield ``function`` of each block, in the order of the loaders."""
        if not all(isinstance(load, RowGroup) for load in loaders):
            yield from (function(load()) for load in loaders)
            return
        loaded = tuple(loaders)

        def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    partial = pickle.dumps(function(loaded[number]()))
                    yield pa.record_batch({"id": [number], "partial": [partial]})

        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "PySpark does not yet", FutureWarning)
                tasks = -(-len(loaded) // BLOCKS_A_TASK)
                numbers = self._session.range(0, len(loaded), 1, tasks)
                partials = numbers.mapInArrow(step, "id long, partial binary").toArrow()
        except Exception as error:
            raise EngineError(
                f"Spark gave up ({type(error).__name__}): {_first_line(error)} Look at its log, "
                "and run the same command again: it goes on from the last whole pass."
            ) from None
        for partial in partials.sort_by("id")["partial"]:
            yield pickle.loads(partial.as_buffer())  # noqa: S301 - made by our own job


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if "Error: " in line]
    return lines[-1] if lines else str(error).partition("\n")[0]


@contextmanager
def spark_engine(master: str) -> Iterator[SparkEngine]:
    """Start a Spark session, or connect to one.

    ``local[2,4]`` is this machine, two cores and four tries of a lost task; ``spark://host:7077``
    or ``yarn`` a cluster; ``sc://host`` Spark Connect.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise EngineError(not_installed("Spark", "spark")) from None
    builder = SparkSession.builder.appName("comorb")
    if master.startswith("sc://"):
        builder = builder.remote(master)
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master(master).config("spark.ui.enabled", "false")
        builder = builder.config("spark.log.level", "OFF")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
    try:
        session = builder.getOrCreate()
    except Exception as error:
        raise EngineError(
            f"no Spark session could be started at {master} ({type(error).__name__}); Spark needs "
            "Java 17 or newer, and a master that answers."
        ) from None
    try:
        yield SparkEngine(session)
    finally:
        session.stop()
