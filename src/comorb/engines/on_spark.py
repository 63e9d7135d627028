"""Spark: a pass is one job over the row groups, by the DataFrame API alone.

Each task adds up its own blocks, further stages add up what tasks came to where they are many, and
a few rows come back, however many records there are.
"""

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
from functools import lru_cache, partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pyarrow as pa

from comorb import __version__
from comorb.engines import partials
from comorb.engines.packing import packed, unpacked
from comorb.errors import EngineError, not_installed
from comorb.model.blocks import Engine, Loader, Pass, Rows

A = TypeVar("A")
T = TypeVar("T")
Batches = Iterable[pa.RecordBatch]
Row = tuple[int, int, bytes]  # the shard, the place in it, and what was packed

_BLOCKS_A_TASK = 16  # a task costs Spark more than a block costs a task
_ROWS = "shard int, place int, packed binary"
_SCHEMA = pa.schema([("shard", pa.int32()), ("place", pa.int32()), ("packed", pa.binary())])
_OF_JAVA = ("java.", "javax.", "scala.", "org.apache.", "io.grpc.", "py4j.", "pyspark.")
_NAMED = re.compile(r"^\s*(?:Caused by: )?([A-Za-z_][\w.$]*(?:Error|Exception)): (.+)$", re.M)
_TOO_MUCH = re.compile(r"[^\n]*spark\.driver\.maxResultSize[^\n]*")
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # what drives only plans, on one core
_PORT, _TIMEOUT = 15002, 10  # of Spark Connect; seconds until it is taken for lost
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
_AGAIN = "Run the same command again: it goes on from the last whole pass."


class SparkEngine(Engine):
    """Maps the row groups of a file on a Spark session, also over Spark Connect.

    The model travels with the tasks. Blocks that are in the memory of this process are mapped
    here. The executors of the ``session`` see the file and have comorb installed. ``received``
    counts the bytes that came back.
    """

    def __init__(self, session: Any) -> None:
        self.session = session
        self.received = 0

    def spread(self, function: Callable[[Rows], T], loaders: Sequence[Loader]) -> Iterator[T]:
        """Yield ``function`` of each block, in the order of the loaders."""
        if not partials.in_file(loaders):
            yield from (function(load()) for load in loaders)
            return
        groups = partials.grouped(loaders, _BLOCKS_A_TASK)
        with told_by_spark():
            found = self._collected(self._mapped(groups, partial(_spread, function)))
        for results in found:
            yield from results

    def total(self, job: Pass, loaders: Sequence[Loader]) -> list[Any]:
        """Return what each shard of a pass comes to, added up by the workers."""
        if not partials.in_file(loaders):
            return partials.finished(job, partials.summed(job, (load() for load in loaders)))
        groups = partials.grouped(loaders, _BLOCKS_A_TASK)
        width = len(groups)
        with told_by_spark():
            rows = self._mapped(groups, partial(_summed, job))
            while width > partials.FEWEST_TASKS:
                width = -(-width // partials.FAN)
                rows = rows.repartition(width * job.shards, "shard", "place")
                rows = rows.mapInArrow(_sent(_added, None), _ROWS)
            if job.small:
                return partials.finished(job, partials.folded(self._collected(rows)))
            rows = rows.repartition(job.shards, "shard")
            return self._collected(rows.mapInArrow(_sent(_added, job.finish), _ROWS))

    def each(self, function: Callable[[A], T], items: Sequence[A]) -> list[T]:
        """Return ``function`` of each item, in their order."""
        if not items:
            return []
        with told_by_spark():
            numbers = self.session.range(0, len(items), 1, len(items))
            rows = numbers.mapInArrow(_sent(_over_items, (list(items), function)), _ROWS)
            return self._collected(rows)

    def each_part(self, function: Callable[[int, Any], T], frame: Any) -> list[T]:
        """Return ``function`` of the number and the batches of each part of a DataFrame."""
        with told_by_spark():
            return self._collected(frame.mapInArrow(_sent(_over_part, function), _ROWS))

    def head(self, frame: Any, rows: int) -> pa.Table:
        """Return the first rows of a DataFrame."""
        from pyspark.sql.pandas.types import to_arrow_schema

        parts = self.each_part(_held, frame.limit(rows))
        held = [batch for part in parts for batch in part]
        return pa.Table.from_batches(held, None if held else to_arrow_schema(frame.schema))

    def frame(self, table: str) -> Any:
        """Return a table of the session as a DataFrame."""
        try:
            found = self.session.table(table)
            found.schema  # noqa: B018 - Spark Connect looks for a table no sooner
            return found
        except Exception as error:
            raise EngineError(
                f"Spark has no table {table!r} ({type(error).__name__}); check its name, and the "
                "catalogue of the session."
            ) from None

    def has(self, table: str) -> bool:
        """Tell whether the session has a table."""
        with told_by_spark():
            return bool(self.session.catalog.tableExists(table))

    def _mapped(self, groups: list[tuple[Loader, ...]], work: Callable[..., Iterator[Row]]) -> Any:
        numbers = self.session.range(0, len(groups), 1, len(groups))
        return numbers.mapInArrow(_sent(_over_groups, (groups, work)), _ROWS)

    def _collected(self, rows: Any) -> list[Any]:
        """Return what the rows of a DataFrame hold, by shard and place."""
        found = sorted((row[0], row[1], bytes(row[2])) for row in rows.collect())
        self.received += sum(len(content) for _, _, content in found)
        return [unpacked(content) for _, _, content in found]


@contextmanager
def told_by_spark() -> Iterator[None]:
    """Tell what went wrong by Spark's own cause."""
    try:
        with quiet():
            yield
    except Exception as error:
        raise EngineError(told(error)) from None


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out what Spark thinks of the pandas that is here, and Python of Spark 3.5."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet", FutureWarning)
        warnings.filterwarnings("ignore", "distutils Version classes", DeprecationWarning)
        yield


def _sent(work: Callable[..., Iterator[Row]], about: Any) -> Callable[[Batches], Any]:
    """Return what a worker does, in a form that it can look at before it has comorb."""
    from pyspark import cloudpickle

    content, version = cloudpickle.dumps((work, about)), __version__

    def step(batches: Batches) -> Iterator[pa.RecordBatch]:
        try:
            import comorb

            found = comorb.__version__
        except ImportError:
            found = None
        if found != version:
            raise RuntimeError(f"comorb-version:{found}:")
        from comorb.engines.on_spark import worked

        yield from worked(content, batches)

    return step


def worked(content: bytes, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield the rows that a task makes of others."""
    work, about = pickle.loads(content)  # noqa: S301 - our own, sent to our own task
    for shard, place, made in work(about, batches):
        yield pa.record_batch([[shard], [place], [made]], schema=_SCHEMA)
    _settled(len(sys.modules))


@lru_cache(maxsize=1)
def _settled(_modules: int) -> None:
    """Take what modules hold out of the search for garbage that Spark makes after every task.

    That search takes longer than a small task. It is settled again when more modules are there.
    """
    gc.collect()
    gc.freeze()


def _over_groups(about: Any, batches: Batches) -> Iterator[Row]:
    groups, work = about
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from work(number, (load() for load in groups[number]))


def _over_items(about: Any, batches: Batches) -> Iterator[Row]:
    items, function = about
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield 0, number, packed(function(items[number]))


def _over_part(function: Callable[[int, Any], Any], batches: Batches) -> Iterator[Row]:
    from pyspark import TaskContext

    number = TaskContext.get().partitionId()
    yield 0, number, packed(function(number, batches))


def _held(_number: int, batches: Batches) -> list[pa.RecordBatch]:
    return list(batches)


def _spread(function: Callable[[Rows], Any], number: int, blocks: Iterable[Rows]) -> Iterator[Row]:
    yield 0, number, packed(partials.each(function, blocks))


def _summed(job: Pass, number: int, blocks: Iterable[Rows]) -> Iterator[Row]:
    for shard, sums in enumerate(partials.summed(job, blocks)):
        yield shard, number // partials.FAN, packed([sums])


def _added(finish: Callable[[Any], Any] | None, batches: Batches) -> Iterator[Row]:
    """Yield the sum of the partials of each place, or what each shard comes to in the end."""
    held: dict[tuple[int, int], list[Any]] = {}
    for batch in batches:
        for shard, place, content in zip(*(column.to_pylist() for column in batch), strict=True):
            key = (shard, 0 if finish else place)
            own = unpacked(content)
            held[key] = partials.folded([held.pop(key), own]) if key in held else own
    for (shard, place), (sums,) in held.items():
        yield shard, place // partials.FAN, packed(finish(sums) if finish else [sums])


def told(error: Exception) -> str:
    """Return what Spark's own words say went wrong, and what to do."""
    text = str(error)
    if version := re.search(r"comorb-version:([^:{}]*):", text):
        found = None if version[1] == "None" else version[1]
        return f"Spark: {partials.other_version(found)}"
    if too_much := _TOO_MUCH.search(text):
        return (
            f"Spark gave up: {_short(too_much[0])} Start Spark with a larger "
            f"spark.driver.maxResultSize (such as 1g). {_AGAIN}"
        )
    named = [f"{kind}: {rest.strip()}" for kind, rest in _NAMED.findall(text)]
    own = [line for line in named if not line.startswith(_OF_JAVA)]
    cause = (own or named or [text.partition("\n")[0]])[-1]
    return f"Spark gave up ({type(error).__name__}): {_short(cause)} {_AGAIN}"


def _short(line: str) -> str:
    line = line.strip()
    return line if line.endswith((".", "!")) else f"{line}."


def _check_answers(address: str) -> None:
    """Refuse an address where nothing listens, of which Spark Connect would tell after minutes."""
    if any(os.environ.get(name) for name in _PROXIES):
        return
    found = urlsplit(address.partition(";")[0])
    try:
        with socket.create_connection((found.hostname or "", found.port or _PORT), _TIMEOUT):
            return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise EngineError(
            f"no Spark Connect server answers at {found.hostname}:{found.port or _PORT} "
            f"({reason}); check the address and start it."
        ) from None


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
        _check_answers(master)
        builder = builder.remote(master)
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_SUBMIT_OPTS", _QUICK_START)
        builder = builder.master(master).config("spark.ui.enabled", "false")
        builder = builder.config("spark.log.level", "OFF")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
    try:
        with quiet():
            session = builder.getOrCreate()
    except ImportError as error:
        raise EngineError(
            f"Spark Connect lacks a package ({_short(str(error).partition(chr(10))[0])}) Install "
            "all that it needs with: pip install 'comorb[spark]'"
        ) from None
    except Exception as error:
        needs = "a Spark Connect server" if master.startswith("sc://") else "a master"
        java = "" if master.startswith("sc://") else "Java 17 or newer, and "
        cause = _short(str(error).partition("\n")[0])
        raise EngineError(
            f"no Spark session could be started at {master} ({type(error).__name__}: {cause}) "
            f"Spark needs {java}{needs} that answers."
        ) from None
    try:
        yield SparkEngine(session)
    finally:
        session.stop()
