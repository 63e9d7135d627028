"""Spark: a pass is one job over the row groups, without a plan where there is a Spark context.

Each task adds up its own blocks, further stages add up what tasks came to where they are many, and
a few rows come back, however many records there are. Spark Connect, which has no context, does the
same by data frames, whose plans cost whatever drives more than twice as much.
"""

from __future__ import annotations

import gc
import pickle
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache, partial
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa

from comorb import __version__
from comorb.engines import partials
from comorb.engines.packing import packed, unpacked
from comorb.errors import EngineError
from comorb.model.blocks import Engine, Loader, Pass, Rows

A = TypeVar("A")
T = TypeVar("T")
Batches = Iterable[pa.RecordBatch]
Row = tuple[int, int, bytes]  # the shard, the place in it, and what was packed

_BLOCKS_A_TASK = 16  # a task costs Spark more than a block costs a task
_ROWS = "shard int, place int, packed binary"
_SCHEMA = pa.schema([("shard", pa.int32()), ("place", pa.int32()), ("packed", pa.binary())])
_OF_JAVA = ("java.", "javax.", "scala.", "org.apache.", "io.grpc.", "py4j.", "pyspark.")
_NAMED = re.compile(r"^\s*(?:(?:Caused by)?: )?([A-Za-z_][\w.$]*(?:Error|Exception)): (.+)$", re.M)
_TOO_MUCH = re.compile(r"[^\n]*spark\.driver\.maxResultSize[^\n]*")
_AGAIN = "Run the same command again: it goes on from the last whole pass."


class SparkEngine(Engine):
    """Maps the row groups of a file on a Spark session, also over Spark Connect.

    The model travels with the tasks. Blocks that are in the memory of this process are mapped
    here. The executors see the file and have comorb installed. ``home`` is a session, or a Spark
    context, of which a session is made where tables are asked for. ``received`` counts the bytes
    that came back.
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

        with told_by_spark():
            return SparkSession.builder.getOrCreate()

    def stop(self) -> None:
        """Stop the session, and the context with it."""
        vars(self).get("session", self.context).stop()

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
                rows = self._brought_together(rows, job.shards, width, None)
            if job.small:
                return partials.finished(job, partials.folded(self._collected(rows)))
            return self._collected(self._brought_together(rows, job.shards, 1, job.finish))

    def each(self, function: Callable[[A], T], items: Sequence[A]) -> list[T]:
        """Return ``function`` of each item, in their order."""
        if not items:
            return []
        with told_by_spark():
            return self._collected(self._tasks(len(items), _over_items, (list(items), function)))

    def each_part(self, function: Callable[[int, Any], T], frame: Any) -> list[T]:
        """Return ``function`` of the number and the batches of each part of a DataFrame."""
        with told_by_spark():
            return self._collected(_framed(frame, _over_part, function))

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
        return self._tasks(len(groups), _over_groups, (groups, work))

    def _tasks(self, count: int, work: Callable[..., Iterator[Row]], about: Any) -> Any:
        """Return the rows that so many tasks make, each of its number."""
        if self.context is None:
            numbers = self.session.range(0, count, 1, count)
            return _framed(numbers, _by_row, (work, about))
        return self.context.parallelize(range(count), count).mapPartitions(_sent(work, about))

    def _brought_together(
        self, rows: Any, shards: int, places: int, finish: Callable[[Any], Any] | None
    ) -> Any:
        """Return the sums of each shard and place, or what each shard comes to in the end."""
        if self.context is None:
            by = ("shard",) if finish else ("shard", "place")
            rows = rows.repartition(places * shards, *by)
            return _framed(rows, _by_row, (_added, finish))
        keyed = rows.map(lambda row: (row[0] * places + row[1] % places, row))
        dealt = keyed.partitionBy(places * shards, lambda key: key).values()
        return dealt.mapPartitions(_sent(_added, finish))

    def _collected(self, rows: Any) -> list[Any]:
        """Return what the rows hold, by shard and place."""
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


def _framed(frame: Any, work: Callable[..., Iterator[Row]], about: Any) -> Any:
    """Return a DataFrame of the rows that a worker makes of the batches of another."""
    return frame.mapInArrow(_sent(_batched, (work, about)), _ROWS)


def _sent(work: Callable[..., Iterator[Any]], about: Any) -> Callable[[Iterable[Any]], Any]:
    """Return what a worker does, in a form that it can look at before it has comorb."""
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
        from comorb.engines.on_spark import worked

        yield from worked(content, given)

    return step


def worked(content: bytes, given: Iterable[Any]) -> Iterator[Any]:
    """Yield what a task makes of what it is given."""
    work, about = pickle.loads(content)  # noqa: S301 - our own, sent to our own task
    yield from work(about, given)
    _settled(len(sys.modules))


@lru_cache(maxsize=1)
def _settled(_modules: int) -> None:
    """Take what modules hold out of the search for garbage that Spark makes after every task.

    That search takes longer than a small task. It is settled again when more modules are there.
    """
    gc.collect()
    gc.freeze()


def _batched(about: Any, batches: Batches) -> Iterator[pa.RecordBatch]:
    work, further = about
    for row in work(further, batches):
        yield pa.record_batch([[value] for value in row], schema=_SCHEMA)


def _by_row(about: Any, batches: Batches) -> Iterator[Row]:
    """Yield the rows that a task makes of those in batches, or of numbers."""
    work, further = about
    columns = ([column.to_pylist() for column in batch.columns] for batch in batches)
    rows = (one[0] if len(one) == 1 else zip(*one, strict=True) for one in columns)
    yield from work(further, chain.from_iterable(rows))


def _over_groups(about: Any, numbers: Iterable[int]) -> Iterator[Row]:
    groups, work = about
    for number in numbers:
        yield from work(number, (load() for load in groups[number]))


def _over_items(about: Any, numbers: Iterable[int]) -> Iterator[Row]:
    items, function = about
    for number in numbers:
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


def _added(finish: Callable[[Any], Any] | None, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the sum of the partials of each place, or what each shard comes to in the end."""
    held: dict[tuple[int, int], list[Any]] = {}
    for shard, place, content in rows:
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
            f"Spark gave up: {sentence(too_much[0])} Start Spark with a larger "
            f"spark.driver.maxResultSize (such as 1g). {_AGAIN}"
        )
    named = [f"{kind}: {rest.strip()}" for kind, rest in _NAMED.findall(text)]
    own = [line for line in named if not line.startswith(_OF_JAVA)]
    cause = (own or named or [text])[-1]
    return f"Spark gave up ({type(error).__name__}): {sentence(cause)} {_AGAIN}"


def sentence(words: object) -> str:
    """Return the first line of what Spark says, with a full stop."""
    line = str(words).partition("\n")[0].strip()
    return line if line.endswith((".", "!")) else f"{line}."
