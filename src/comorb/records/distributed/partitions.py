"""Partitions: a source as tables that many workers read, each some of its files or parts."""

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
from comorb.engines.base import Engine, map_items
from comorb.errors import ComorbError, EngineError, RecordsError
from comorb.messages import Message, pack, unpack
from comorb.records.distributed.shuffle import Shuffle, ShuffledFile
from comorb.records.sources.arrow import frame_rows
from comorb.records.sources.databases import is_query
from comorb.records.sources.duck import (
    OpenedSource,
    SourceTable,
    connect,
    quote,
    restrict_access,
    run_safely,
)
from comorb.records.sources.files import (
    ending_of,
    read_signature,
    table_name,
    temporary_folder,
)
from comorb.records.sources.folders import (
    STANDARD_TABLES,
    TableFiles,
    are_numbered,
    are_paths,
    combine_files,
    find_data_files,
    find_files,
    find_listed_data,
    find_tables,
    is_glob,
    standard_case,
    standard_name,
)
from comorb.records.sources.kinds import detect_kind
from comorb.records.sources.parquet import (
    checksum_note,
    count_unsummed,
    open_parquet,
    read_schema,
)
from comorb.records.sources.text_files import open_text
from comorb.remote import Place, Remote, is_remote, opened, place_of
from comorb.storage import write_text

HEAD_ROWS = 1000
_TASK_ROWS = 1 << 20


@dataclass(frozen=True)
class ShuffledPartition:
    """A chunk that was written, what was doubtful about it, and whether it had no checksums."""

    chunk: ShuffledFile
    notes: tuple[str, ...] = ()
    bare: int = 0


@dataclass
class ReadNotes:
    """What was doubtful about some files, and how many of them had no checksums."""

    notes: list[str] = field(default_factory=list)
    bare: int = 0


@dataclass(frozen=True)
class FilePartition:
    """Some rows of a file, and the columns of all files with their types."""

    file: Path
    label: str
    columns: tuple[tuple[str, str], ...]
    root: Path | None = None
    span: tuple[int, int] | None = None
    signature: tuple[int, ...] | None = None
    store: Remote | None = None

    @property
    def rows(self) -> int:
        """How many there are; as many as one task reads where that isn't known."""
        return _TASK_ROWS if self.span is None else self.span[1] - self.span[0]

    def batches(self, only: Sequence[str], doubts: ReadNotes) -> Iterator[pa.RecordBatch]:
        """Yield the rows, of some columns or of all; a file in a store is copied here for that."""
        if self.store is not None and self.store.stamp() == self.signature:
            with temporary_folder() as name:
                root = Path(name).resolve()
                self.store.fetch(root / self.file)
                here = replace(self, file=root / self.file, root=root, store=None)
                yield from replace(here, signature=read_signature(here.file)).batches(only, doubts)
            return
        if self.store is not None or read_signature(self.file) != self.signature:
            raise RecordsError("source.changed_in_part", file=self.file.name)
        with _open_files(self.label, [self.file]) as source:
            if self.span is None:
                table = open_text(source, self.file)
            else:
                first = self.span[0] == 0
                doubts.bare += count_unsummed(source, self.label, [self.file]) if first else 0
                table = open_parquet(source, self.label, [self.file], self.root, self.span)
            yield from source.batches(table, f"SELECT {self._picks(table, only)} FROM {table.sql}")
            doubts.notes += source.notes

    def _picks(self, table: SourceTable, only: Sequence[str]) -> str:
        """Return the columns of all files, of their types, null where this file has none."""
        other = table.columns.keys() - dict(self.columns).keys()
        if other and self.span is None:
            raise RecordsError("source.other_column", file=self.file.name, column=min(other))
        return ", ".join(
            f"CAST({quote(name) if name in table.columns else 'NULL'} AS {kind}) AS {quote(name)}"
            for name, kind in self.columns
            if not only or name in only
        )


@dataclass(frozen=True)
class PartitionedTable:
    """A table of many parts: its label, its first rows, and its chunks or what writes them."""

    label: str
    head: pa.Table
    notes: tuple[str, ...]
    write: Callable[[Shuffle, Executor | None], list[ShuffledPartition]] | None = None
    files: int = 0
    chunks: tuple[FilePartition, ...] = ()

    @property
    def rows(self) -> int:
        """How many there are, where files tell that; else 0."""
        return sum(chunk.rows for chunk in self.chunks if chunk.span is not None)

    def shuffle_rows(
        self, shuffle: Shuffle, executor: Executor | None
    ) -> tuple[list[ShuffledFile], tuple[str, ...]]:
        """Let workers bring the rows together; return their chunks, and what is to be noted."""
        if self.write is None:
            items = list(enumerate(_group_small(self.chunks)))
            written = raise_errors(map_items(partial(_write, shuffle), items, executor))
        else:
            written = self.write(shuffle, executor)
        bare = checksum_note(self.label, sum(one.bare for one in written), self.files)
        notes = (bare, *self.notes, *(note for one in written for note in one.notes))
        return [one.chunk for one in written if one.chunk.rows], tuple(dict.fromkeys(notes))


def partition_store(label: str, files: Mapping[str, Remote]) -> PartitionedTable | None:
    """Return files in a store, all text or all Parquet of the same columns; None for others."""
    with temporary_folder() as name:
        root = Path(name).resolve()
        first = next(iter(files))
        files[first].fetch(root / first)
        kind = detect_kind(root / first)
        if kind not in ("parquet", "text") or len({ending_of(one) for one in files}) > 1:
            return None
        of_text, spans = kind == "text", dict.fromkeys(files)
        if not of_text:
            footers = {one: _footer(store) for one, store in files.items()}
            if len({str(one.schema.to_arrow_schema()) for one in footers.values()}) > 1:
                return None
            spans = {one: (0, footer.num_rows) for one, footer in footers.items()}
        head = partition_files(label, TableFiles(label, kind, (root / first,), root))
    columns = head.chunks[0].columns
    chunks = tuple(
        FilePartition(Path(one), label, columns, None, spans[one], store.stamp(), store)
        for one, store in files.items()
    )
    return replace(head, chunks=chunks, files=0 if of_text else len(files))


def _footer(store: Remote) -> pq.FileMetaData:
    with opened(store) as file:
        return pq.read_metadata(file)


def partition_files(label: str, table: TableFiles) -> PartitionedTable:
    """Return the files of a table, all text or all Parquet."""
    of_text = table.kind == "text"
    with _open_files(label, table.files) as source:
        if of_text:
            found = open_text(source, table.files[0])
            notes: tuple[str, ...] = ()
        else:
            found = open_parquet(source, label, table.files, table.root)
            notes = tuple(source.notes)
        rows = source.connection.sql(f"SELECT * FROM {found.sql} LIMIT {HEAD_ROWS}")
        head = run_safely(label, rows.to_arrow_table)
    columns = tuple(found.columns.items())
    chunks = [
        FilePartition(file, label, columns, table.root, span, read_signature(file))
        for file in table.files
        for span in ([None] if of_text else _row_spans(file))
    ]
    return PartitionedTable(
        label, head, notes, None, 0 if of_text else len(table.files), tuple(chunks)
    )


def _row_spans(file: Path) -> Iterator[tuple[int, int]]:
    """Yield the rows of a Parquet file that one task reads: whole row groups."""
    read_schema(file)
    metadata = pq.read_metadata(file)
    start = stop = 0
    for number in range(metadata.num_row_groups):
        stop += metadata.row_group(number).num_rows
        if stop - start >= _TASK_ROWS:
            yield start, stop
            start = stop
    if stop > start or not stop:
        yield start, stop


def _group_small(chunks: Sequence[FilePartition]) -> list[tuple[FilePartition, ...]]:
    """Return the chunks that a task reads: small ones that follow each other together."""
    groups: list[list[FilePartition]] = [[]]
    for chunk in chunks:
        if groups[-1] and sum(one.rows for one in groups[-1]) + chunk.rows > _TASK_ROWS:
            groups.append([])
        groups[-1].append(chunk)
    return [tuple(group) for group in groups if group]


def _write(
    shuffle: Shuffle, item: tuple[int, tuple[FilePartition, ...]]
) -> ShuffledPartition | ComorbError:
    """Write some chunks, or find what a task before wrote of them, which says so in a note."""
    number, chunks = item
    key = sha256(repr((__version__, chunks, shuffle)).encode()).hexdigest()
    note = place_of(shuffle.folder) / f"{number:06d}-{key[:32]}.json"
    try:
        if note.is_file():
            plain = json.loads(note.read_text(encoding="utf-8"))
            rows = ShuffledFile(plain["file"], plain["rows"], tuple(map(tuple, plain["batches"])))
            return ShuffledPartition(rows, tuple(unpack(plain["notes"])), plain["bare"])
        doubts = ReadNotes()
        batches = (batch for chunk in chunks for batch in chunk.batches(shuffle.columns, doubts))
        rows = shuffle.write(number, batches)
        own = asdict(rows) | asdict(doubts)
        write_text(json.dumps(pack(own)), note)
        return ShuffledPartition(rows, tuple(doubts.notes), doubts.bare)
    except ComorbError as error:
        return error


def partition_frame(
    frame: Any, executor: Executor | None, label: str | None = None
) -> PartitionedTable:
    """Return a frame of Spark or Dask, whose engine reads it."""
    home = type(frame).__module__.partition(".")[0]
    label = label or f"the {type(frame).__name__}"
    what = "Spark" if home == "pyspark" else "Dask"
    if not isinstance(executor, Engine) or what.lower() not in type(executor).__module__:
        raise EngineError("engine.records_there", what=what)
    head = executor.head(frame, HEAD_ROWS)
    rows = frame_rows(label, head)
    kinds = [pa.string() if pa.types.is_null(one.type) else one.type for one in rows.schema]
    schema = pa.schema(list(zip(rows.column_names, kinds, strict=True)))

    def write(shuffle: Shuffle, executor: Executor | None) -> list[ShuffledPartition]:
        assert isinstance(executor, Engine)  # noqa: S101 - checked above
        own, fields = frame, schema
        if shuffle.columns:
            own = frame[list(shuffle.columns)]
            fields = pa.schema([schema.field(name) for name in shuffle.columns])
        return raise_errors(
            executor.map_partitions(partial(_write_part, shuffle, label, fields), own)
        )

    return PartitionedTable(label, rows.cast(schema), (), write)


def _write_part(
    shuffle: Shuffle, label: str, schema: pa.Schema, number: int, rows: Any
) -> ShuffledPartition | ComorbError:
    """Write the rows of a part of a frame: batches of Spark, or a pandas frame of Dask."""
    try:
        if hasattr(rows, "columns"):
            batches: Any = frame_rows(label, rows).cast(schema).to_batches()
        else:
            batches = (batch for one in rows for batch in _cast(one, schema))
        return ShuffledPartition(shuffle.write(number, batches))
    except ComorbError as error:
        return error
    except pa.ArrowException as error:
        return RecordsError("source.other_types", label=label, type=type(error).__name__)


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> list[pa.RecordBatch]:
    if batch.schema == schema:
        return [batch]
    return list(pa.Table.from_batches([batch]).cast(schema).to_batches())


def raise_errors(results: list[Any]) -> list[Any]:
    """Return what tasks returned, or raise what one of them couldn't do."""
    for one in results:
        if isinstance(one, ComorbError):
            raise one
    return results


@contextmanager
def _open_files(label: str, files: Sequence[Path]) -> Iterator[OpenedSource]:
    with ExitStack() as stack:
        spill = stack.enter_context(temporary_folder())
        connection = stack.enter_context(connect(spill, None, threads=1))
        folder = Path(spill).resolve() / "copies"
        restrict_access(connection, list(files), folder)
        yield OpenedSource(label, connection, folder=folder)


_FILE_KINDS = ("parquet", "text")
_JOINED_TABLES = ("person", "concept")  # with which a table of OMOP is read


class NotPartitionedError(Exception):
    """A table that workers can't read in parts; no error of the records."""


@dataclass(frozen=True)
class FrameTables:
    """Frames, or tables of Spark, by the names that their tables have in a database."""

    frames: Mapping[str, Any]


@dataclass(frozen=True)
class PartitionedSource:
    """A source of tables: its label, what opens each, and the one that the source itself names."""

    label: str
    openers: Mapping[str, Callable[[], PartitionedTable]]
    table: str | None = None


def partition_source(
    source: Any, table: str | None, executor: Executor | None
) -> PartitionedSource | None:
    """Return a source whose tables workers can read in parts, None for one that they can't.

    ``table`` is the one that is asked for.
    """
    if isinstance(source, FrameTables):
        frames = {standard_case(name): one for name, one in source.frames.items()}
        if len(frames) < len(source.frames):
            raise RecordsError("source.frame_twice")
        opened = {
            name: partial(_partition_one, name, one, executor) for name, one in frames.items()
        }
        return PartitionedSource("the frames", opened)
    if _is_frame(source):
        spread = partition_frame(source, executor)
        return PartitionedSource(spread.label, {"frame": lambda: spread})
    if isinstance(source, str) and source.startswith("table:"):
        return _partition_spark_table(source, executor)
    if table is not None and is_query(table):
        return None
    if are_paths(source):
        return _partition_list(source)
    if is_remote(source):
        return _partition_stored(place_of(source), table)
    if not isinstance(source, str | Path) or "://" in str(source):
        return None
    return _partition_path(Path(source), table)


def _is_frame(source: Any) -> bool:
    return type(source).__module__.partition(".")[0] in ("pyspark", "dask")


def _partition_one(name: str, source: Any, executor: Executor | None) -> PartitionedTable:
    """Return one table of several that are given each by itself."""
    if _is_frame(source):
        return partition_frame(source, executor, name)
    divided = partition_source(source, None, executor)
    if divided is None or (len(divided.openers) > 1 and divided.table is None):
        raise RecordsError("engine.one_frame", name=name, type=type(source).__name__)
    return divided.openers[divided.table or next(iter(divided.openers))]()


def _partition_spark_table(source: str, executor: Executor | None) -> PartitionedSource:
    """Return a table of Spark, one of OMOP with those beside it in the same schema."""
    engine: Any = executor
    if not hasattr(engine, "frame"):
        raise EngineError("engine.spark_table", source=source)
    name = source.removeprefix("table:")
    schema, dot, own = name.rpartition(".")
    names = {standard_case(own): name}
    if standard_case(own) in STANDARD_TABLES:
        beside = {one: f"{schema}{dot}{one}" for one in _JOINED_TABLES if one not in names}
        names |= {one: full for one, full in beside.items() if engine.has(full)}

    def opened(full: str) -> PartitionedTable:
        return partition_frame(engine.frame(full), executor, full)

    return PartitionedSource(
        name, {one: partial(opened, names[one]) for one in names}, next(iter(names))
    )


def _partition_list(paths: Sequence[str | Place]) -> PartitionedSource | None:
    """Return several files, on the disk or in a store; None where they are in both."""
    afar = [is_remote(one) for one in paths]
    if all(afar):
        name = place_of(paths[0]).name
        label = Message("text.others", parts=name) if len(paths) > 1 else name
        spread = partition_store(label, find_listed_data(paths))
        return None if spread is None else PartitionedSource(label, {label: lambda: spread})
    if any(afar):
        return None
    several = combine_files([Path(str(one)) for one in paths])
    return PartitionedSource(
        several.name, {several.name: partial(partition_files, several.name, several)}
    )


def _partition_stored(place: Place, table: str | None) -> PartitionedSource | None:
    """Return files in a store as one table, or as several by the names of the usual models."""
    files = find_data_files(place)
    tables: dict[tuple[str, str], dict[str, Remote]] = {}
    for name, file in files.items():
        tables.setdefault(_standard_table(name), {})[name] = file
    others = tables.pop(("", ""), {})
    named = {one: partial(_partition_store_table, some) for (one, _), some in tables.items()}
    if len(named) < len(tables) or (
        table and not {table.lower(), table_name(table).lower()} & named.keys()
    ):
        return None
    if named:
        aside = {
            table_name(Path(one).name): partial(_partition_store_table, {one: others[one]})
            for one in others
        }
        return PartitionedSource(place.name, aside | named)
    spread = partition_store(place.name, files)
    return None if spread is None else PartitionedSource(place.name, {place.name: lambda: spread})


def _standard_table(name: str) -> tuple[str, str]:
    """Return the usual table of which a file in a store is, and where that lies."""
    *folders, file = name.split("/")
    for place, folder in enumerate(folders):
        if standard_case(folder) in STANDARD_TABLES:
            return standard_case(folder), "/".join(folders[: place + 1])
    own = standard_name(file)
    return (own, f"{'/'.join(folders)}/.") if own else ("", "")


def _partition_store_table(files: Mapping[str, Remote]) -> PartitionedTable:
    names = [Path(name) for name in files]
    spread = partition_store(names[0].name, files)
    if spread is None or (not spread.files and len(names) > 1 and not are_numbered(names)):
        raise NotPartitionedError
    return spread


def _partition_path(path: Path, table: str | None) -> PartitionedSource | None:
    """Return the tables of a file, a folder or a glob."""
    files = find_files(path)
    of_text = len(files) > 1 and {detect_kind(file) for file in files} == {"text"}
    if of_text and is_glob(path) and not table and not any(standard_name(f.name) for f in files):
        one = TableFiles(path.stem, "text", tuple(files))
        return PartitionedSource(path.name, {one.name: partial(partition_files, path.name, one)})
    tables = find_tables(path, files)
    names = {one.name.lower() for one in tables if one.kind in _FILE_KINDS}
    asked = {table.lower(), table_name(table).lower()} if table else names
    if not asked & names or (len(names) < len(tables) and not table):
        return None
    alone = len(tables) == 1
    opened = {
        one.name: partial(_partition_folder_table, path.name if alone else "", one)
        for one in tables
    }
    return PartitionedSource(path.name, opened)


def _partition_folder_table(label: str, table: TableFiles) -> PartitionedTable:
    if table.kind not in _FILE_KINDS:
        raise NotPartitionedError
    own = label if label and table.kind == "parquet" else table.files[0].name
    return partition_files(own, table)
