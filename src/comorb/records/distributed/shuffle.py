"""Shuffle: rows of a record are brought together, and each partition answers for the whole."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial, reduce
from hashlib import sha256
from io import BufferedReader
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np
import pyarrow as pa

from comorb.engines.base import map_items
from comorb.errors import ComorbError, EngineError, RecordsError, StorageError
from comorb.model.arrays import Ints
from comorb.records.sources import duck
from comorb.records.sources.arrow import register_table
from comorb.records.sources.duck import Merge, OpenedSource, SourceTable
from comorb.records.sources.files import temporary_folder
from comorb.remote import Place, Remote, opened, place_of, written

T = TypeVar("T")
Item = TypeVar("Item")

Answers = Mapping[str, Any]
FoundAnswers = Mapping[str, tuple[Any, Merge]]
_ROW_NUMBERS = "row_numbers"


@dataclass
class PartitionSource(OpenedSource):
    """A partition of a source; ``answers`` are those of the whole, ``found`` its own."""

    answers: Answers = field(default_factory=dict)
    found: dict[str, tuple[Any, Merge]] = field(default_factory=dict)
    defined: str = ""

    def answer_whole(self, question: str, find: Callable[[], T], merge: Merge | None) -> T:
        """Return the answer of all partitions where it is known, or that of this one."""
        if merge is None:
            raise RecordsError("source.no_id_by_name", label=self.label)
        key = sha256(f"{self.defined}\n{question}".encode()).hexdigest()
        if key not in self.answers:
            self.found[key] = (find(), merge)
        answer: T = self.answers[key] if key in self.answers else self.found[key][0]
        return answer

    def view(self, label: str, sql: str, text: bool = False) -> SourceTable:
        """Name a query, so that it can be read as a table."""
        self._define(sql)
        return super().view(label, sql, text)

    def rows(self, table: SourceTable, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement on a table and return the rows that it gives."""
        if sql.startswith("CREATE"):
            self._define(sql)
        return super().rows(table, sql)

    def register(self, name: str, table: pa.Table) -> None:
        """Register an Arrow table under a name."""
        self._define(f"{name} {table.to_pydict()}")
        super().register(name, table)

    def numbered_sql(self, table: SourceTable, column: str) -> str:
        """Return the SQL of a table with the numbers that its rows have in the whole source."""
        return (
            f"SELECT {_ROW_NUMBERS}.number AS {duck.quote(column)}, own.* "
            f"FROM {table.sql} AS own POSITIONAL JOIN {_ROW_NUMBERS}"
        )

    def _define(self, what: str) -> None:
        self.defined = sha256(f"{self.defined}\n{what}".encode()).hexdigest()


@dataclass(frozen=True)
class PartitionRows:
    """Some rows of a table with their numbers in it, and its label and notes."""

    label: str
    notes: tuple[str, ...]
    rows: pa.Table
    numbers: pa.Array


@dataclass(frozen=True)
class WholeSource:
    """A source of many partitions: its label, the names of its tables, and all answers."""

    label: str
    names: tuple[str, ...]
    answers: Answers = field(default_factory=dict)

    @contextmanager
    def open_partition(self, find: Callable[[str], PartitionRows]) -> Iterator[PartitionSource]:
        """Open a partition of the source; the table that is opened first has the records."""
        with open_connection([]) as (connection, _):
            source = PartitionSource(self.label, connection, answers=self.answers)

            def open_table(name: str) -> SourceTable:
                part = find(name)
                if not source.opened:
                    connection.register(_ROW_NUMBERS, pa.table({"number": part.numbers}))
                source.note(*part.notes)
                return register_table(source, part.label, part.rows)

            source.openers = {name: partial(open_table, name) for name in self.names}
            yield source


@contextmanager
def open_connection(
    files: Sequence[Path],
) -> Iterator[tuple[duckdb.DuckDBPyConnection, Path]]:
    """Open DuckDB on one thread, to read some files; yield it with its folder for copies."""
    with temporary_folder() as spill, duck.connect(spill, None, threads=1) as connection:
        folder = Path(spill).resolve() / "copies"
        duck.restrict_access(connection, list(files), folder)
        yield connection, folder


def run_tasks(
    function: Callable[[Item], T], items: Sequence[Item], executor: Executor | None
) -> list[T]:
    """Return ``function`` of each item by the workers; raise the first `ComorbError` of a task."""
    return raise_first(map_items(partial(catch_error, function), items, executor))


def catch_error(function: Callable[..., T], *args: Any) -> T | ComorbError:
    """Return what a function returns, or the error it raises: engines don't keep its type."""
    try:
        return function(*args)
    except ComorbError as error:
        return error


def raise_first(results: Sequence[T | ComorbError]) -> list[T]:
    """Return what tasks returned, or raise the first error among it."""
    found = []
    for one in results:
        if isinstance(one, ComorbError):
            raise one
        found.append(one)
    return found


def merge_answers(found: list[FoundAnswers]) -> dict[str, Any]:
    """Return the answers to the questions that all partitions have answered."""
    same = set.intersection(*map(set, found)) if found else set()
    return {key: reduce(found[0][key][1], (one[key][0] for one in found)) for key in same}


def head_answers(found: FoundAnswers) -> dict[str, Any]:
    """Return the answers that the first rows of a source give for all."""
    return {key: answer for key, (answer, merge) in found.items() if merge is duck.take_first}


MIN_SLOTS, MAX_SLOTS = 256, 4096
PARTITION_ROWS = 1 << 20  # rows that one task reads, at most
ROW_COLUMN = "comorb.row"
_BATCH_ROWS = 1 << 19
_BATCH_CELLS = 1 << 24
_READ_AHEAD_BYTES = 1 << 22


@dataclass(frozen=True)
class ShuffledFile:
    """The shuffled rows of a part of a source: their file, and the slot and rows of each batch."""

    file: str
    rows: int
    batches: tuple[tuple[int, int], ...]
    notes: tuple[str, ...] = ()
    unsummed: int = 0  # files without checksums


@dataclass(frozen=True)
class Shuffle:
    """How rows are divided into slots, and the folder to which they are written.

    The first of the columns ``keys`` that isn't null decides; without any, rows stay where they
    are. ``columns`` are those to write, all where none is named. ``rows`` is about the total number
    of rows: a task holds those of a slot at least, so many rows need more slots.
    """

    folder: str
    keys: tuple[str, ...]
    columns: tuple[str, ...] = ()
    rows: int = 0
    version: str = duckdb.__version__

    def write(self, number: int, batches: Iterable[pa.RecordBatch]) -> ShuffledFile:
        """Write the rows of a part of the source."""
        if self.version != duckdb.__version__:
            versions = {"version": duckdb.__version__, "version2": self.version}
            raise EngineError("engine.duckdb_version", **versions)
        name, rows, held = f"{number:06d}-{secrets.token_hex(8)}.arrow", 0, []
        sink: pa.RecordBatchFileWriter | None = None
        try:
            with ExitStack() as stack:
                for table in _combine_batches(batches):
                    slots = self._slots(table)
                    order = np.argsort(slots, kind="stable")
                    places = pa.array(np.arange(rows, rows + len(table))[order])
                    sorted_rows = table.take(pa.array(order)).append_column(ROW_COLUMN, places)
                    if sink is None:
                        options = pa.ipc.IpcWriteOptions(compression="lz4")
                        file = stack.enter_context(written(place_of(self.folder) / name))
                        sink = pa.ipc.new_file(file, sorted_rows.schema, options=options)
                    ends = np.flatnonzero(np.diff(slots[order], prepend=-1, append=-1))
                    for start, stop in pairwise(ends.tolist()):
                        part = sorted_rows.slice(start, stop - start).combine_chunks()
                        sink.write_table(part)
                        held.append((int(slots[order[start]]), stop - start))
                    rows += len(table)
                if sink is not None:
                    sink.close()
        except OSError as error:
            reason = error.strerror or error
            raise StorageError("write.shared_place", folder=self.folder, reason=reason) from None
        return ShuffledFile(name, rows, tuple(held))

    @property
    def slots(self) -> int:
        """How many slots there are.

        >>> [Shuffle("", ("id",), rows=rows).slots for rows in (0, 10**8, 10**9, 10**11)]
        [256, 256, 512, 4096]
        """
        slots = MIN_SLOTS
        while slots < MAX_SLOTS and self.rows > 2 * slots * PARTITION_ROWS:
            slots *= 2
        return slots

    def _slots(self, table: pa.Table) -> Ints:
        """Return the slot of each row."""
        if not self.keys:
            return np.zeros(len(table), dtype=np.int64)
        keys = [duck.quote(name) for name in self.keys]
        known = ", ".join(
            f"CASE WHEN {key} IS NOT NULL THEN hash({duck.integer_sql(key)}) END" for key in keys
        )
        with duckdb.connect(":memory:", config={"threads": 1}) as connection:
            connection.register("rows", table.select(list(self.keys)))
            sql = f"SELECT coalesce({known}, 0) % {self.slots} AS slot FROM rows"
            found = connection.sql(sql).to_arrow_table()["slot"]
        return np.asarray(found.to_numpy(), dtype=np.int64)


def _combine_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield batches as tables of many rows."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= min(_BATCH_ROWS, _BATCH_CELLS // max(1, batch.num_columns)):
            yield pa.Table.from_batches(held)
            held = []
    if sum(map(len, held)):
        yield pa.Table.from_batches(held)


@dataclass(frozen=True)
class Partition:
    """The rows of a table that one task reads: batches of files, and how many rows precede each."""

    folder: str
    batches: tuple[tuple[str, int, tuple[int, ...]], ...]

    def table(self, schema: pa.Schema) -> tuple[pa.Table, pa.Array]:
        """Return the rows, in the order of the source, and the number of each in it."""
        if not self.batches:
            return schema.empty_table(), pa.array([], pa.int64())
        tables, numbers = [], []
        for name, before, places in self.batches:
            try:
                with _open_batches(place_of(self.folder) / name) as file:
                    reader = pa.ipc.open_file(file)
                    part = pa.Table.from_batches(map(reader.get_batch, places), reader.schema)
            except (pa.ArrowException, OSError):
                raise StorageError("engine.rows_gone", name=name) from None
            numbers.append(part[ROW_COLUMN].to_numpy() + (before + 1))
            tables.append(part.drop_columns([ROW_COLUMN]))
        number = np.concatenate(numbers)
        order = np.argsort(number)
        return pa.concat_tables(tables).take(pa.array(order)), pa.array(number[order])


@contextmanager
def _open_batches(place: Place) -> Iterator[Any]:
    """Open a file of batches; one in a store is read ahead."""
    if isinstance(place, Remote):
        with opened(place) as file:
            yield pa.PythonFile(BufferedReader(file, _READ_AHEAD_BYTES), "r")
    else:
        with pa.memory_map(str(place)) as file:
            yield file


def plan_partitions(
    shuffle: Shuffle, tables: Sequence[Sequence[ShuffledFile]], columns: int
) -> list[tuple[Partition, ...]]:
    """Return what tasks read: all rows of some slots each, or of some batches without a key.

    The first table has the records; rows of the others follow by their slots.
    """
    most = min(PARTITION_ROWS, _BATCH_CELLS // max(1, columns))
    rows: Counter[tuple[int, ...]] = Counter()
    pieces: dict[tuple[int, ...], list[tuple[int, int, int]]] = {}
    for which, files in enumerate(tables):
        for number, file in enumerate(files):
            for place, (slot, count) in enumerate(file.batches):
                key: tuple[int, ...] = (slot,) if shuffle.keys else (number, place)
                rows[key] += count
                pieces.setdefault(key, []).append((which, number, place))
    own = {key for key, some in pieces.items() if some[0][0] == 0}
    groups: list[list[tuple[int, ...]]] = []
    held = most
    for key in sorted(own):
        if held + rows[key] > most:
            groups.append([])
            held = 0
        groups[-1].append(key)
        held += rows[key]
    others = sorted(rows.keys() - own) if groups else []
    for place, key in enumerate(others):
        groups[place % len(groups)].append(key)
    before = [np.cumsum([0, *(file.rows for file in files)]).tolist() for files in tables]
    found = []
    for group in groups:
        places: list[dict[int, list[int]]] = [{} for _ in tables]
        for which, number, place in sorted(piece for key in group for piece in pieces[key]):
            places[which].setdefault(number, []).append(place)
        batches = (
            tuple((files[n].file, starts[n], tuple(some)) for n, some in picked.items())
            for files, starts, picked in zip(tables, before, places, strict=True)
        )
        found.append(tuple(Partition(shuffle.folder, some) for some in batches))
    return found
