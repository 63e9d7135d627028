"""Shuffle: rows that belong together are brought together, through files that workers write.

The rows of a chunk go to one Arrow file, a batch for each slot, and a slot is a hash of the key.
A file whose name nobody was told, as its worker was lost, is never read.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BufferedReader
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from comorb.errors import EngineError, StorageError
from comorb.model.arrays import Ints
from comorb.records.sources.duck import quoted, without_point
from comorb.remote import Remote, opened, place_of, written

SLOTS, MOST_SLOTS = 256, 4096
BUCKET = 1 << 20  # rows that one task reads, at most
ROW = "comorb.row"
_AT_ONCE = 1 << 19
_CELLS = 1 << 24
_AHEAD = 1 << 22


@dataclass(frozen=True)
class Chunk:
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

    def write(self, number: int, batches: Iterable[pa.RecordBatch]) -> Chunk:
        """Write the rows of a chunk."""
        if self.version != duckdb.__version__:
            raise EngineError(
                f"a worker has DuckDB {duckdb.__version__} and this process {self.version}, which "
                "number records in other ways; install the same one everywhere."
            )
        name, rows, held = f"{number:06d}-{secrets.token_hex(8)}.arrow", 0, []
        sink: pa.RecordBatchFileWriter | None = None
        try:
            with ExitStack() as stack:
                for table in _large(batches):
                    slots = self._slots(table)
                    order = np.argsort(slots, kind="stable")
                    places = pa.array(np.arange(rows, rows + len(table))[order])
                    sorted_rows = table.take(pa.array(order)).append_column(ROW, places)
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
                f"{self.folder} can't be written: {error.strerror or error}. Make room, or choose "
                "another place that all workers see."
            ) from None
        return Chunk(name, rows, tuple(held))

    @property
    def slots(self) -> int:
        """How many slots there are.

        >>> [Shuffle("", ("id",), rows=rows).slots for rows in (0, 10**8, 10**9, 10**11)]
        [256, 256, 512, 4096]
        """
        slots = SLOTS
        while slots < MOST_SLOTS and self.rows > 2 * slots * BUCKET:
            slots *= 2
        return slots

    def _slots(self, table: pa.Table) -> Ints:
        """Return the slot of each row; rows without a key are spread."""
        if not self.keys:
            return np.zeros(len(table), dtype=np.int64)
        known = ", ".join(
            f"CASE WHEN {quoted(name)} IS NOT NULL THEN hash({without_point(quoted(name))}) END"
            for name in self.keys
        )
        with duckdb.connect(":memory:", config={"threads": 1}) as connection:
            connection.register("rows", table.select(list(self.keys)))
            sql = f"SELECT coalesce({known}, 0) % {self.slots} AS slot FROM rows"
            found = connection.sql(sql).to_arrow_table()["slot"]
        return np.asarray(found.to_numpy(), dtype=np.int64)


def _large(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield batches as tables of many rows."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= min(_AT_ONCE, _CELLS // max(1, batch.num_columns)):
            yield pa.Table.from_batches(held)
            held = []
    if sum(map(len, held)):
        yield pa.Table.from_batches(held)


@dataclass(frozen=True)
class Bucket:
    """Rows of a table that one task reads: batches of files, and how many rows are before each."""

    folder: str
    pieces: tuple[tuple[str, int, tuple[int, ...]], ...]

    def table(self, schema: pa.Schema) -> tuple[pa.Table, pa.Array]:
        """Return the rows, in the order of the source, and the number of each in it."""
        if not self.pieces:
            return schema.empty_table(), pa.array([], pa.int64())
        tables, numbers = [], []
        for name, before, places in self.pieces:
            try:
                with _mapped(place_of(self.folder) / name) as file:
                    reader = pa.ipc.open_file(file)
                    part = pa.Table.from_batches(map(reader.get_batch, places), reader.schema)
            except (pa.ArrowException, OSError):
                raise StorageError(
                    f"{name}: rows that were brought together are damaged or gone; run again."
                ) from None
            numbers.append(part[ROW].to_numpy() + (before + 1))
            tables.append(part.drop_columns([ROW]))
        number = np.concatenate(numbers)
        order = np.argsort(number)
        return pa.concat_tables(tables).take(pa.array(order)), pa.array(number[order])


@contextmanager
def _mapped(place: Path | Remote) -> Iterator[Any]:
    """Open a file of batches; of a store's, many that follow each other are read at once."""
    if isinstance(place, Remote):
        with opened(place) as file:
            yield pa.PythonFile(BufferedReader(file, _AHEAD), "r")
    else:
        with pa.memory_map(str(place)) as file:
            yield file


def buckets_of(
    shuffle: Shuffle, tables: Sequence[Sequence[Chunk]], columns: int
) -> list[tuple[Bucket, ...]]:
    """Return what tasks read: all rows of some slots each, or of some batches without a key.

    The rows of other tables than the first, which has the records, come along by their slots.
    """
    most = min(BUCKET, _CELLS // max(1, columns))
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
        found.append(tuple(_bucket(shuffle.folder, *one) for one in each))
    return found


def _bucket(
    folder: str, chunks: Sequence[Chunk], before: Sequence[int], places: dict[int, list[int]]
) -> Bucket:
    own = ((chunks[n].file, before[n], tuple(some)) for n, some in places.items())
    return Bucket(folder, tuple(own))
