"""Spark: a pass is one job over the row groups, on a context or by Spark Connect."""

from __future__ import annotations

import gc
import os
import pickle
import re
import socket
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache, partial
from itertools import chain
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pyarrow as pa

from comorb import __version__
from comorb.engines.base import (
    FAN_IN,
    MIN_TASKS,
    Engine,
    group_loaders,
    in_file,
    pack,
    unpack,
    version_problem,
)
from comorb.errors import EngineError, not_installed
from comorb.messages import Message
from comorb.model.blocks import Loader, Pass, Rows, fold_partials

A = TypeVar("A")
T = TypeVar("T")
Batches = Iterable[pa.RecordBatch]
Row = tuple[int, int, bytes]  # the shard, the place in it, and what was packed

# A task costs Spark more than a block does: `python -m benchmarks scale`.
_BLOCKS_PER_TASK = 16
_ROWS = "shard int, place int, packed binary"
_SCHEMA = pa.schema([("shard", pa.int32()), ("place", pa.int32()), ("packed", pa.binary())])
_OF_JAVA = ("java.", "javax.", "scala.", "org.apache.", "io.grpc.", "py4j.", "pyspark.")
_NAMED = re.compile(r"^\s*(?:(?:Caused by)?: )?([A-Za-z_][\w.$]*(?:Error|Exception)): (.+)$", re.M)
_TOO_MUCH = re.compile(r"[^\n]*spark\.driver\.maxResultSize[^\n]*")


class SparkEngine(Engine):
    """Maps the row groups of a file on a Spark session, also over Spark Connect.

    The model is sent with the tasks. Blocks in the memory of this process are mapped here. The
    executors see the file and have comorb installed. ``home`` is a session, or a Spark context, of
    which a session is made for tables. ``received`` counts the bytes that came back.
    """

    def __init__(self, home: Any) -> None:
        self.context, self.received = home, 0
        if not hasattr(home, "parallelize"):
            self.session = home
            self.context = None if ".connect." in type(home).__module__ else home.sparkContext

    @cached_property
    def session(self) -> Any:
        """The session of the context."""
        from pyspark.sql import SparkSession

        with spark_errors():
            return SparkSession.builder.getOrCreate()

    def stop(self) -> None:
        """Stop the session, and the context with it."""
        vars(self).get("session", self.context).stop()

    def map_blocks(self, function: Callable[[Rows], T], loaders: Sequence[Loader]) -> Iterator[T]:
        """Yield ``function`` of each block, in the order of the loaders."""
        if not in_file(loaders):
            yield from (function(load()) for load in loaders)
            return
        groups = group_loaders(loaders, _BLOCKS_PER_TASK)
        yield from chain.from_iterable(self.map_items(partial(_map_group, function), groups))

    def run_pass(self, job: Pass, loaders: Sequence[Loader]) -> list[Any]:
        """Return the result of each shard of a pass, added up by the workers."""
        if not in_file(loaders):
            return super().run_pass(job, loaders)
        groups = group_loaders(loaders, _BLOCKS_PER_TASK)
        width = len(groups)
        with spark_errors():
            rows = self._tasks(width, _sum_groups, (groups, job))
            while width > MIN_TASKS:
                width = -(-width // FAN_IN)
                rows = self._combine(rows, job.shards, width, None)
            if job.small:
                return job.finish_all(fold_partials(self._collect(rows)))
            return self._collect(self._combine(rows, job.shards, 1, job.finish))

    def map_items(self, function: Callable[[A], T], items: Sequence[A]) -> list[T]:
        """Return ``function`` of each item, in their order."""
        if not items:
            return []
        with spark_errors():
            return self._collect(self._tasks(len(items), _over_items, (list(items), function)))

    def map_partitions(self, function: Callable[[int, Any], T], frame: Any) -> list[T]:
        """Return ``function`` of the number and the batches of each partition."""
        with spark_errors():
            return self._collect(_map_frame(frame, _over_partition, function))

    def head(self, frame: Any, rows: int) -> pa.Table:
        """Return the first rows of a DataFrame."""
        from pyspark.sql.pandas.types import to_arrow_schema

        parts = self.map_partitions(lambda _, batches: list(batches), frame.limit(rows))
        held = list(chain.from_iterable(parts))
        return pa.Table.from_batches(held, None if held else to_arrow_schema(frame.schema))

    def frame(self, table: str) -> Any:
        """Return a table of the session as a DataFrame."""
        try:
            found = self.session.table(table)
            found.schema  # noqa: B018 - Spark Connect looks for a table no sooner
            return found
        except Exception as error:
            raise EngineError(
                "engine.spark_no_table", table=table, type=type(error).__name__
            ) from None

    def has(self, table: str) -> bool:
        """Return whether the session has a table."""
        with spark_errors():
            return bool(self.session.catalog.tableExists(table))

    def _tasks(self, count: int, work: Callable[..., Iterator[Row]], about: Any) -> Any:
        """Return the rows that so many tasks make, each of its number."""
        if self.context is None:
            numbers = self.session.range(0, count, 1, count)
            return _map_frame(numbers, _by_row, (work, about))
        return self.context.parallelize(range(count), count).mapPartitions(_make_task(work, about))

    def _combine(
        self, rows: Any, shards: int, places: int, finish: Callable[[Any], Any] | None
    ) -> Any:
        """Return the sums of each shard and place, or what each shard comes to in the end."""
        if self.context is None:
            by = ("shard",) if finish else ("shard", "place")
            rows = rows.repartition(places * shards, *by)
            return _map_frame(rows, _by_row, (_add_task, finish))
        keyed = rows.map(lambda row: (row[0] * places + row[1] % places, row))
        dealt = keyed.partitionBy(places * shards, lambda key: key).values()
        return dealt.mapPartitions(_make_task(_add_task, finish))

    def _collect(self, rows: Any) -> list[Any]:
        """Return what the rows hold, by shard and place."""
        found = sorted((row[0], row[1], bytes(row[2])) for row in rows.collect())
        self.received += sum(len(content) for _, _, content in found)
        return [unpack(content) for _, _, content in found]


@contextmanager
def spark_errors() -> Iterator[None]:
    """Raise an `EngineError` with the cause that Spark names."""
    try:
        with quiet():
            yield
    except Exception as error:
        raise EngineError(explain(error)) from None


@contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings of Spark about the installed pandas, and of Python about Spark 3.5."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet", FutureWarning)
        warnings.filterwarnings("ignore", "distutils Version classes", DeprecationWarning)
        yield


def _map_frame(frame: Any, work: Callable[..., Iterator[Row]], about: Any) -> Any:
    """Return a DataFrame of the rows that a worker makes of the batches of another."""
    return frame.mapInArrow(_make_task(_to_batches, (work, about)), _ROWS)


def _make_task(work: Callable[..., Iterator[Any]], about: Any) -> Callable[[Iterable[Any]], Any]:
    """Return the function of a worker, which first checks the comorb that the worker has."""
    from pyspark import cloudpickle

    content, version = cloudpickle.dumps((work, about)), __version__

    def step(given: Iterable[Any]) -> Iterator[Any]:
        try:
            import comorb

            found = comorb.__version__
        except ImportError:
            found = None
        if found != version:
            raise RuntimeError(f"comorb-version:{found}:")

        yield from run_task(content, given)

    return step


def run_task(content: bytes, given: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows that a task makes of its input."""
    work, about = pickle.loads(content)  # noqa: S301 - our own, sent to our own task
    yield from work(about, given)
    _freeze_modules(len(sys.modules))


@lru_cache(maxsize=1)
def _freeze_modules(_modules: int) -> None:
    """Exempt what modules hold from the garbage collection that Spark runs after every task.

    That collection takes longer than a small task. New modules are exempted in turn.
    """
    gc.collect()
    gc.freeze()


def _to_batches(about: Any, batches: Batches) -> Iterator[pa.RecordBatch]:
    work, own = about
    for row in work(own, batches):
        yield pa.record_batch([[value] for value in row], schema=_SCHEMA)


def _by_row(about: Any, batches: Batches) -> Iterator[Row]:
    """Yield the rows that a task makes of those in batches, or of numbers."""
    work, own = about
    columns = ([column.to_pylist() for column in batch.columns] for batch in batches)
    rows = (one[0] if len(one) == 1 else zip(*one, strict=True) for one in columns)
    yield from work(own, chain.from_iterable(rows))


def _sum_groups(about: Any, numbers: Iterable[int]) -> Iterator[Row]:
    groups, job = about
    for number in numbers:
        for shard, sums in enumerate(job.sum_blocks(load() for load in groups[number])):
            yield shard, number // FAN_IN, pack([sums])


def _map_group(function: Callable[[Rows], T], group: tuple[Loader, ...]) -> list[T]:
    return [function(load()) for load in group]


def _over_items(about: Any, numbers: Iterable[int]) -> Iterator[Row]:
    items, function = about
    for number in numbers:
        yield 0, number, pack(function(items[number]))


def _over_partition(function: Callable[[int, Any], Any], batches: Batches) -> Iterator[Row]:
    from pyspark import TaskContext

    number = TaskContext.get().partitionId()
    yield 0, number, pack(function(number, batches))


def _add_task(finish: Callable[[Any], Any] | None, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the sum of the partials of each place, or what each shard comes to in the end."""
    held: dict[tuple[int, int], list[Any]] = {}
    for shard, place, content in rows:
        key = (shard, 0 if finish else place)
        own = unpack(content)
        held[key] = fold_partials([held.pop(key), own]) if key in held else own
    for (shard, place), (sums,) in held.items():
        yield shard, place // FAN_IN, pack(finish(sums) if finish else [sums])


def explain(error: Exception) -> str:
    """Return the cause that Spark's error names, and what to do."""
    text = str(error)
    if version := re.search(r"comorb-version:([^:{}]*):", text):
        found = None if version[1] == "None" else version[1]
        return version_problem("Spark", found) or text
    again = Message("engine.spark_again")
    if too_much := _TOO_MUCH.search(text):
        return Message("engine.spark_result_size", cause=first_sentence(too_much[0]), again=again)
    named = [f"{kind}: {rest.strip()}" for kind, rest in _NAMED.findall(text)]
    own = [line for line in named if not line.startswith(_OF_JAVA)]
    cause = first_sentence((own or named or [text])[-1])
    return Message("engine.spark_lost", type=type(error).__name__, cause=cause, again=again)


def first_sentence(words: object) -> str:
    """Return the first line of what Spark says, with a full stop."""
    line = str(words).partition("\n")[0].strip()
    return line if line.endswith((".", "!")) else f"{line}."


_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # what drives only plans, on one core
_SILENT = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}
_PORT, _TIMEOUT = 15002, 10  # of Spark Connect; seconds until it is taken for lost
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")


def _check_answers(address: str) -> None:
    """Refuse an address where nothing listens; Spark Connect would take minutes to notice."""
    if any(os.environ.get(name) for name in _PROXIES):
        return
    found = urlsplit(address.partition(";")[0])
    try:
        with socket.create_connection((found.hostname or "", found.port or _PORT), _TIMEOUT):
            return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise EngineError(
            "engine.spark_silent", address=f"{found.hostname}:{found.port or _PORT}", reason=reason
        ) from None


@contextmanager
def spark_engine(master: str) -> Iterator[SparkEngine]:
    """Start Spark for a run, or connect to it.

    ``local[2,4]`` is this machine, two cores and four tries of a lost task; ``spark://host:7077``
    or ``yarn`` a cluster; ``sc://host`` Spark Connect.
    """
    connects = master.startswith("sc://")
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise EngineError(not_installed("Spark", "spark")) from None
    if connects:
        _check_answers(master)
    try:
        with quiet():
            if connects:
                from pyspark.sql import SparkSession

                home = SparkSession.builder.appName("comorb").remote(master).getOrCreate()
            else:
                home = _start(master)
            engine = SparkEngine(home)
    except ImportError as error:
        raise EngineError("engine.spark_package", cause=first_sentence(error)) from None
    except Exception as error:
        key = "engine.spark_connect_session" if connects else "engine.spark_session"
        raise EngineError(
            key, master=master, type=type(error).__name__, cause=first_sentence(error)
        ) from None
    try:
        yield engine
    finally:
        engine.stop()


def _start(master: str) -> Any:
    from pyspark import SparkConf, SparkContext

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_SUBMIT_OPTS", _QUICK_START)
    wanted = SparkConf().setMaster(master).setAppName("comorb").setAll(_SILENT.items())
    return SparkContext.getOrCreate(wanted)
