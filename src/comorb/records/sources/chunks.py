"""Chunks: a table that many workers read, each some of its files or parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from comorb import __version__
from comorb.engines.mapping import each
from comorb.errors import ComorbError, EngineError, RecordsError
from comorb.model.blocks import Engine
from comorb.records.sources.duck import (
    OpenedSource,
    SourceTable,
    connect,
    guarded,
    lock,
    quoted,
)
from comorb.records.sources.endings import ending_of
from comorb.records.sources.folders import TableFiles
from comorb.records.sources.frames import frame_rows
from comorb.records.sources.kinds import kind_of
from comorb.records.sources.pages import bare_files, bare_note
from comorb.records.sources.parquet import open_parquet, schema_of
from comorb.records.sources.shuffle import Chunk, Shuffle
from comorb.records.sources.spill import temporary_folder
from comorb.records.sources.stamps import stamp_of
from comorb.records.sources.textfile import open_text
from comorb.remote import Remote, opened, place_of
from comorb.storage import write_text

HEAD = 1000
_ROWS = 1 << 20


@dataclass(frozen=True)
class Written:
    """A chunk that was written, what was doubtful about it, and whether it had no checksums."""

    chunk: Chunk
    notes: tuple[str, ...] = ()
    bare: int = 0


@dataclass
class Doubts:
    """What was doubtful about some files, and how many of them had no checksums."""

    notes: list[str] = field(default_factory=list)
    bare: int = 0


@dataclass(frozen=True)
class FileChunk:
    """Some rows of a file, and the columns of all files with their types."""

    file: Path
    label: str
    columns: tuple[tuple[str, str], ...]
    root: Path | None = None
    span: tuple[int, int] | None = None
    stamp: tuple[int, ...] | None = None
    store: Remote | None = None

    @property
    def rows(self) -> int:
        """How many there are; as many as one task reads where that isn't known."""
        return _ROWS if self.span is None else self.span[1] - self.span[0]

    def batches(self, only: Sequence[str], doubts: Doubts) -> Iterator[pa.RecordBatch]:
        """Yield the rows, of some columns or of all; a file in a store is copied here for that."""
        if self.store is not None and self.store.stamp() == self.stamp:
            with temporary_folder() as name:
                root = Path(name).resolve()
                self.store.fetch(root / self.file)
                here = replace(self, file=root / self.file, root=root, store=None)
                yield from replace(here, stamp=stamp_of(here.file)).batches(only, doubts)
            return
        if self.store is not None or stamp_of(self.file) != self.stamp:
            raise RecordsError(f"{self.file.name} changed while it was read; read it again.")
        with _opened(self.label, [self.file]) as source:
            if self.span is None:
                table = open_text(source, self.file)
            else:
                first = self.span[0] == 0
                doubts.bare += bare_files(source, self.label, [self.file]) if first else 0
                table = open_parquet(source, self.label, [self.file], self.root, self.span)
            yield from source.batches(table, f"SELECT {self._picks(table, only)} FROM {table.sql}")
            doubts.notes += source.notes

    def _picks(self, table: SourceTable, only: Sequence[str]) -> str:
        """Return the columns of all files, of their types, null where this file has none."""
        other = table.columns.keys() - dict(self.columns).keys()
        if other and self.span is None:
            raise RecordsError(
                f"{self.file.name} has the column {min(other)!r}, which the first file hasn't; "
                "write the same columns to all files."
            )
        return ", ".join(
            f"CAST({quoted(name) if name in table.columns else 'NULL'} AS {kind}) AS {quoted(name)}"
            for name, kind in self.columns
            if not only or name in only
        )


@dataclass(frozen=True)
class Spread:
    """A table of many parts: its label, its first rows, and its chunks or what writes them."""

    label: str
    head: pa.Table
    notes: tuple[str, ...]
    write: Callable[[Shuffle, Executor | None], list[Written]] | None = None
    files: int = 0
    chunks: tuple[FileChunk, ...] = ()

    @property
    def rows(self) -> int:
        """How many there are, where files tell that; else 0."""
        return sum(chunk.rows for chunk in self.chunks if chunk.span is not None)

    def shuffled(
        self, shuffle: Shuffle, executor: Executor | None
    ) -> tuple[list[Chunk], tuple[str, ...]]:
        """Let workers bring the rows together; return their chunks, and what is to be noted."""
        if self.write is None:
            items = list(enumerate(_grouped(self.chunks)))
            written = told(each(partial(_write, shuffle), items, executor))
        else:
            written = self.write(shuffle, executor)
        bare = bare_note(self.label, sum(one.bare for one in written), self.files)
        notes = (bare, *self.notes, *(note for one in written for note in one.notes))
        return [one.chunk for one in written if one.chunk.rows], tuple(dict.fromkeys(notes))


def spread_store(label: str, files: Mapping[str, Remote]) -> Spread | None:
    """Return files in a store, all text or all Parquet of the same columns; None for others."""
    with temporary_folder() as name:
        root = Path(name).resolve()
        first = next(iter(files))
        files[first].fetch(root / first)
        kind = kind_of(root / first)
        if kind not in ("parquet", "text") or len({ending_of(one) for one in files}) > 1:
            return None
        of_text, spans = kind == "text", dict.fromkeys(files)
        if not of_text:
            footers = {one: _footer(store) for one, store in files.items()}
            if len({str(one.schema.to_arrow_schema()) for one in footers.values()}) > 1:
                return None
            spans = {one: (0, footer.num_rows) for one, footer in footers.items()}
        head = spread_files(label, TableFiles(label, kind, (root / first,), root))
    columns = head.chunks[0].columns
    chunks = tuple(
        FileChunk(Path(one), label, columns, None, spans[one], store.stamp(), store)
        for one, store in files.items()
    )
    return replace(head, chunks=chunks, files=0 if of_text else len(files))


def _footer(store: Remote) -> pq.FileMetaData:
    with opened(store) as file:
        return pq.read_metadata(file)


def spread_files(label: str, table: TableFiles) -> Spread:
    """Return the files of a table, all text or all Parquet."""
    of_text = table.kind == "text"
    with _opened(label, table.files) as source:
        if of_text:
            found = open_text(source, table.files[0])
            notes: tuple[str, ...] = ()
        else:
            found = open_parquet(source, label, table.files, table.root)
            notes = tuple(source.notes)
        rows = source.connection.sql(f"SELECT * FROM {found.sql} LIMIT {HEAD}")
        head = guarded(label, rows.to_arrow_table)
    columns = tuple(found.columns.items())
    chunks = [
        FileChunk(file, label, columns, table.root, span, stamp_of(file))
        for file in table.files
        for span in ([None] if of_text else _spans(file))
    ]
    return Spread(label, head, notes, None, 0 if of_text else len(table.files), tuple(chunks))


def _spans(file: Path) -> Iterator[tuple[int, int]]:
    """Yield the rows of a Parquet file that one task reads: whole row groups."""
    schema_of(file)
    metadata = pq.read_metadata(file)
    start = stop = 0
    for number in range(metadata.num_row_groups):
        stop += metadata.row_group(number).num_rows
        if stop - start >= _ROWS:
            yield start, stop
            start = stop
    if stop > start or not stop:
        yield start, stop


def _grouped(chunks: Sequence[FileChunk]) -> list[tuple[FileChunk, ...]]:
    """Return the chunks that a task reads: small ones that follow each other together."""
    groups: list[list[FileChunk]] = [[]]
    for chunk in chunks:
        if groups[-1] and sum(one.rows for one in groups[-1]) + chunk.rows > _ROWS:
            groups.append([])
        groups[-1].append(chunk)
    return [tuple(group) for group in groups if group]


def _write(shuffle: Shuffle, item: tuple[int, tuple[FileChunk, ...]]) -> Written | ComorbError:
    """Write some chunks, or find what a task before wrote of them, which says so in a note."""
    number, chunks = item
    key = sha256(repr((__version__, chunks, shuffle)).encode()).hexdigest()
    note = place_of(shuffle.folder) / f"{number:06d}-{key[:32]}.json"
    try:
        if note.is_file():
            plain = json.loads(note.read_text(encoding="utf-8"))
            rows = Chunk(plain["file"], plain["rows"], tuple(map(tuple, plain["batches"])))
            return Written(rows, tuple(plain["notes"]), plain["bare"])
        doubts = Doubts()
        batches = (batch for chunk in chunks for batch in chunk.batches(shuffle.columns, doubts))
        rows = shuffle.write(number, batches)
        own = asdict(rows) | asdict(doubts)
        write_text(json.dumps(own), note)
        return Written(rows, tuple(doubts.notes), doubts.bare)
    except ComorbError as error:
        return error


def spread_frame(frame: Any, executor: Executor | None, label: str | None = None) -> Spread:
    """Return a frame of Spark or Dask, whose engine reads it."""
    home = type(frame).__module__.partition(".")[0]
    label = label or f"the {type(frame).__name__}"
    what = "Spark" if home == "pyspark" else "Dask"
    if not isinstance(executor, Engine) or what.lower() not in type(executor).__module__:
        raise EngineError(f"Records of {what} are read where they are; name the engine {what}.")
    head = executor.head(frame, HEAD)
    rows = frame_rows(label, head)
    kinds = [pa.string() if pa.types.is_null(one.type) else one.type for one in rows.schema]
    schema = pa.schema(list(zip(rows.column_names, kinds, strict=True)))

    def write(shuffle: Shuffle, executor: Executor | None) -> list[Written]:
        assert isinstance(executor, Engine)  # noqa: S101 - checked above
        own, fields = frame, schema
        if shuffle.columns:
            own = frame[list(shuffle.columns)]
            fields = pa.schema([schema.field(name) for name in shuffle.columns])
        return told(executor.each_part(partial(_write_part, shuffle, label, fields), own))

    return Spread(label, rows.cast(schema), (), write)


def _write_part(
    shuffle: Shuffle, label: str, schema: pa.Schema, number: int, rows: Any
) -> Written | ComorbError:
    """Write the rows of a part of a frame: batches of Spark, or a pandas frame of Dask."""
    try:
        if hasattr(rows, "columns"):
            batches: Any = frame_rows(label, rows).cast(schema).to_batches()
        else:
            batches = (batch for one in rows for batch in _cast(one, schema))
        return Written(shuffle.write(number, batches))
    except ComorbError as error:
        return error
    except pa.ArrowException as error:
        return RecordsError(
            f"{label}: a part has columns of other types than the first ({type(error).__name__}); "
            "give each column one type."
        )


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> list[pa.RecordBatch]:
    if batch.schema == schema:
        return [batch]
    return list(pa.Table.from_batches([batch]).cast(schema).to_batches())


def told(results: list[Any]) -> list[Any]:
    """Return what tasks returned, or raise what one of them couldn't do."""
    for one in results:
        if isinstance(one, ComorbError):
            raise one
    return results


@contextmanager
def _opened(label: str, files: Sequence[Path]) -> Iterator[OpenedSource]:
    with ExitStack() as stack:
        spill = stack.enter_context(temporary_folder())
        connection = stack.enter_context(connect(spill, None, threads=1))
        folder = Path(spill).resolve() / "copies"
        lock(connection, list(files), folder)
        yield OpenedSource(label, connection, folder=folder)
