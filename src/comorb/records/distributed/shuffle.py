"""Shuffle: rows that belong together are brought together, and each part answers for the whole."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

from comorb.errors import EngineError, RecordsError, StorageError
from comorb.model.arrays import Ints
from comorb.records.sources.arrow import register_table
from comorb.records.sources.duck import (
    Merge,
    OpenedSource,
    SourceTable,
    connect,
    integer_sql,
    quote,
    restrict_access,
    take_first,
)
from comorb.records.sources.files import temporary_folder
from comorb.remote import Place, Remote, opened, place_of, written

T = TypeVar("T")

Answers = Mapping[str, Any]
FoundAnswers = Mapping[str, tuple[Any, Merge]]
_ROW_NUMBERS = "row_numbers"


@dataclass
class PartitionSource(OpenedSource):
    """A part of a source; ``answers`` are those of the whole, ``found`` those of this part."""

    answers: Answers = field(default_factory=dict)
    found: dict[str, tuple[Any, Merge]] = field(default_factory=dict)
    defined: str = ""

    def answer_whole(self, question: str, find: Callable[[], T], merge: Merge | None) -> T:
        """Return the answer of all parts where it is known, or that of this part."""
        if merge is None:
            raise RecordsError("source.no_id_by_name", label=self.label)
        key = sha256(f"{self.defined}\n{question}".encode()).hexdigest()
        if key in self.answers:
            answer: T = self.answers[key]
            return answer
        answer = find()
        self.found[key] = (answer, merge)
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
        """Let queries read an Arrow table by a name."""
        self._define(f"{name} {table.to_pydict()}")
        super().register(name, table)

    def numbered_sql(self, table: SourceTable, column: str) -> str:
        """Return the SQL of a table with the numbers that its rows have in the whole source."""
        return (
            f"SELECT {_ROW_NUMBERS}.number AS {quote(column)}, own.* "
            f"FROM {table.sql} AS own POSITIONAL JOIN {_ROW_NUMBERS}"
        )

    def _define(self, what: str) -> None:
        self.defined = sha256(f"{self.defined}\n{what}".encode()).hexdigest()


@dataclass(frozen=True)
class PartitionRows:
    """Some rows of a table with their numbers in it, its label, and what was doubtful about it."""

    label: str
    notes: tuple[str, ...]
    rows: pa.Table
    numbers: pa.Array


@dataclass(frozen=True)
class WholeSource:
    """What is known of a source of many parts: its label, its tables' names, and all answers."""

    label: str
    names: tuple[str, ...]
    answers: Answers = field(default_factory=dict)

    @contextmanager
    def open_partition(self, find: Callable[[str], PartitionRows]) -> Iterator[PartitionSource]:
        """Open a part of the source; the table that is opened first has the records."""
        with ExitStack() as stack:
            spill = stack.enter_context(temporary_folder())
            connection = stack.enter_context(connect(spill, None, threads=1))
            restrict_access(connection, [], Path(spill).resolve() / "copies")
            source = PartitionSource(self.label, connection, answers=self.answers)

            def opened(name: str) -> SourceTable:
                piece = find(name)
                if not source.opened:
                    connection.register(_ROW_NUMBERS, pa.table({"number": piece.numbers}))
                source.note(*piece.notes)
                return register_table(source, piece.label, piece.rows)

            source.openers = {name: partial(opened, name) for name in self.names}
            yield source


def merge_answers(found: list[FoundAnswers]) -> dict[str, Any]:
    """Return the answers to the questions that all parts were asked."""
    same = set.intersection(*(set(one) for one in found)) if found else set()
    answers = {}
    for key in same:
        merge = found[0][key][1]
        answers[key] = reduce(merge, (one[key][0] for one in found))
    return answers


def head_answers(found: FoundAnswers) -> dict[str, Any]:
    """Return the answers for which the first rows of a source stand."""
    return {key: answer for key, (answer, merge) in found.items() if merge is take_first}


MIN_SLOTS, MAX_SLOTS = 256, 4096
PARTITION_ROWS = 1 << 20  # rows that one task reads, at most
ROW_COLUMN = "comorb.row"
_BATCH_ROWS = 1 << 19
_BATCH_CELLS = 1 << 24
_READ_AHEAD_BYTES = 1 << 22


@dataclass(frozen=True)
class ShuffledFile:
    """What became of a chunk of a source: its file, and the slot and rows of each batch in it."""

    file: str
    rows: int
    batches: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Shuffle:
    """How the rows of chunks are told apart, and the folder to which they are written.

    ``keys`` are the columns of which the first that isn't null decides; without any, rows stay
    where they are. ``columns`` are those to write; all where none is named. ``rows`` are about as
    many as all chunks have: a task holds those of a slot at least, and of many there are more.
    """

    folder: str
    keys: tuple[str, ...]
    columns: tuple[str, ...] = ()
    rows: int = 0
    version: str = duckdb.__version__

    def write(self, number: int, batches: Iterable[pa.RecordBatch]) -> ShuffledFile:
        """Write the rows of a chunk."""
        if self.version != duckdb.__version__:
            raise EngineError(
                "engine.duckdb_version", version=duckdb.__version__, version2=self.version
            )
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
            raise StorageError(
                "write.shared_place", folder=self.folder, reason=error.strerror or error
            ) from None
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
        """Return the slot of each row; rows without a key are spread."""
        if not self.keys:
            return np.zeros(len(table), dtype=np.int64)
        known = ", ".join(
            f"CASE WHEN {quote(name)} IS NOT NULL THEN hash({integer_sql(quote(name))}) END"
            for name in self.keys
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
    """Rows of a table that one task reads: batches of files, and how many rows are before each."""

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
    """Open a file of batches; of a store's, many that follow each other are read at once."""
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

    The rows of other tables than the first, which has the records, come along by their slots.
    """
    most = min(PARTITION_ROWS, _BATCH_CELLS // max(1, columns))
    rows: dict[tuple[int, ...], int] = {}
    pieces: dict[tuple[int, ...], list[tuple[int, int, int]]] = {}
    own: set[tuple[int, ...]] = set()
    for which, chunks in enumerate(tables):
        for number, chunk in enumerate(chunks):
            for place, (slot, count) in enumerate(chunk.batches):
                key: tuple[int, ...] = (slot,) if shuffle.keys else (number, place)
                rows[key] = rows.get(key, 0) + count
                pieces.setdefault(key, []).append((which, number, place))
                own |= set() if which else {key}
    groups: list[list[tuple[int, ...]]] = []
    held = most
    for key in sorted(own):
        if held + rows[key] > most:
            groups.append([])
            held = 0
        groups[-1].append(key)
        held += rows[key]
    lonely = sorted(rows.keys() - own) if groups else []
    for place, key in enumerate(lonely):
        groups[place % len(groups)].append(key)
    before = [np.cumsum([0, *(chunk.rows for chunk in chunks)]).tolist() for chunks in tables]
    found = []
    for group in groups:
        places: list[dict[int, list[int]]] = [{} for _ in tables]
        for which, number, place in sorted(piece for key in group for piece in pieces[key]):
            places[which].setdefault(number, []).append(place)
        each = zip(tables, before, places, strict=True)
        found.append(tuple(_make_partition(shuffle.folder, *one) for one in each))
    return found


def _make_partition(
    folder: str, chunks: Sequence[ShuffledFile], before: Sequence[int], places: dict[int, list[int]]
) -> Partition:
    own = ((chunks[n].file, before[n], tuple(some)) for n, some in places.items())
    return Partition(folder, tuple(own))
