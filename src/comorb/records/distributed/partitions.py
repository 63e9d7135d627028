"""Partitions: a source as tables of which each worker reads some files, or parts of a frame."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from comorb import __version__
from comorb.engines.base import Engine
from comorb.errors import EngineError, RecordsError
from comorb.messages import Message, pack, unpack
from comorb.records.distributed.shuffle import (
    Shuffle,
    ShuffledFile,
    catch_error,
    open_connection,
    raise_first,
    run_tasks,
)
from comorb.records.sources import folders
from comorb.records.sources.arrow import frame_rows
from comorb.records.sources.databases import is_query
from comorb.records.sources.duck import OpenedSource, SourceTable, quote, run_safely
from comorb.records.sources.files import ending_of, read_signature, table_name, temporary_folder
from comorb.records.sources.kinds import detect_kind
from comorb.records.sources.parquet import checksum_note, count_unsummed, open_parquet, read_schema
from comorb.records.sources.text_files import open_text
from comorb.remote import Place, Remote, is_remote, opened, place_of
from comorb.storage import write_text

HEAD_ROWS = 1000
_TASK_ROWS = 1 << 20


@dataclass
class ReadNotes:
    """Notes on some files, and how many of them have no checksums."""

    notes: list[str] = field(default_factory=list)
    unsummed: int = 0


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
        """The number of rows; as many as one task reads where it isn't known."""
        return _TASK_ROWS if self.span is None else self.span[1] - self.span[0]

    def batches(self, only: Sequence[str], notes: ReadNotes) -> Iterator[pa.RecordBatch]:
        """Yield the rows, with some columns or all; a file in a store is copied first."""
        if self.store is not None and self.store.stamp() == self.signature:
            with temporary_folder() as name:
                root = Path(name).resolve()
                self.store.fetch(root / self.file)
                here = replace(self, file=root / self.file, root=root, store=None)
                yield from replace(here, signature=read_signature(here.file)).batches(only, notes)
            return
        if self.store is not None or read_signature(self.file) != self.signature:
            raise RecordsError("source.changed_in_part", file=self.file.name)
        with open_connection([self.file]) as (connection, folder):
            source = OpenedSource(self.label, connection, folder=folder)
            if self.span is None:
                table = open_text(source, self.file)
            else:
                if self.span[0] == 0:
                    notes.unsummed += count_unsummed(source, self.label, [self.file])
                table = open_parquet(source, self.label, [self.file], self.root, self.span)
            yield from source.batches(table, f"SELECT {self._picks(table, only)} FROM {table.sql}")
            notes.notes += source.notes

    def _picks(self, table: SourceTable, only: Sequence[str]) -> str:
        """Return the SQL of the columns of all files, null where this file has none."""
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
    """A table of many parts: its label, first rows, and its parts or what writes them."""

    label: str
    head: pa.Table
    notes: tuple[str, ...]
    write: Callable[[Shuffle, Executor | None], list[ShuffledFile]] | None = None
    files: int = 0  # of Parquet, which may have checksums
    parts: tuple[FilePartition, ...] = ()

    @property
    def rows(self) -> int:
        """The number of rows in files that have it; else 0."""
        return sum(part.rows for part in self.parts if part.span is not None)

    def shuffle_rows(
        self, shuffle: Shuffle, executor: Executor | None
    ) -> tuple[list[ShuffledFile], tuple[str, ...]]:
        """Let workers shuffle the rows; return the files that they wrote, and all notes."""
        if self.write is None:
            items = list(enumerate(_group_small(self.parts)))
            written = run_tasks(partial(_write_files, shuffle), items, executor)
        else:
            written = self.write(shuffle, executor)
        first = checksum_note(self.label, sum(one.unsummed for one in written), self.files)
        notes = (first, *self.notes, *(note for one in written for note in one.notes))
        return [one for one in written if one.rows], tuple(dict.fromkeys(notes))


def partition_store(label: str, files: Mapping[str, Remote]) -> PartitionedTable | None:
    """Return files in a store, all text or all Parquet of the same columns; None for others."""
    with temporary_folder() as name:
        root = Path(name).resolve()
        first = next(iter(files))
        files[first].fetch(root / first)
        kind = detect_kind(root / first)
        if kind not in ("parquet", "text") or len({ending_of(one) for one in files}) > 1:
            return None
        of_text = kind == "text"
        spans: dict[str, tuple[int, int] | None] = dict.fromkeys(files)
        if not of_text:
            schemas = set()
            for one, store in files.items():
                with opened(store) as file:
                    footer = pq.read_metadata(file)
                schemas.add(str(footer.schema.to_arrow_schema()))
                spans[one] = 0, footer.num_rows
            if len(schemas) > 1:
                return None
        head = partition_files(label, folders.TableFiles(label, kind, (root / first,), root))
    columns = head.parts[0].columns
    parts = tuple(
        FilePartition(Path(one), label, columns, None, spans[one], store.stamp(), store)
        for one, store in files.items()
    )
    return replace(head, parts=parts, files=0 if of_text else len(files))


def partition_files(label: str, table: folders.TableFiles) -> PartitionedTable:
    """Return the files of a table, all text or all Parquet."""
    of_text = table.kind == "text"
    with open_connection(table.files) as (connection, folder):
        source = OpenedSource(label, connection, folder=folder)
        if of_text:
            found = open_text(source, table.files[0])
        else:
            found = open_parquet(source, label, table.files, table.root)
        rows = connection.sql(f"SELECT * FROM {found.sql} LIMIT {HEAD_ROWS}")
        head = run_safely(label, rows.to_arrow_table)
    columns = tuple(found.columns.items())
    parts = tuple(
        FilePartition(file, label, columns, table.root, span, read_signature(file))
        for file in table.files
        for span in ([None] if of_text else _row_spans(file))
    )
    if of_text:  # its workers note what they find
        return PartitionedTable(label, head, (), parts=parts)
    return PartitionedTable(label, head, tuple(source.notes), None, len(table.files), parts)


def _row_spans(file: Path) -> Iterator[tuple[int, int]]:
    """Yield the rows of a Parquet file for each task: whole row groups."""
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


def _group_small(parts: Sequence[FilePartition]) -> list[tuple[FilePartition, ...]]:
    """Return the parts that each task reads: successive small ones together."""
    groups: list[list[FilePartition]] = [[]]
    for part in parts:
        if groups[-1] and sum(one.rows for one in groups[-1]) + part.rows > _TASK_ROWS:
            groups.append([])
        groups[-1].append(part)
    return [tuple(group) for group in groups if group]


def _write_files(shuffle: Shuffle, item: tuple[int, tuple[FilePartition, ...]]) -> ShuffledFile:
    """Write some parts, or find what an interrupted run wrote of them, and recorded in a file."""
    number, parts = item
    key = sha256(repr((__version__, parts, shuffle)).encode()).hexdigest()
    record = place_of(shuffle.folder) / f"{number:06d}-{key[:32]}.json"
    if record.is_file():
        own = unpack(json.loads(record.read_text(encoding="utf-8")))
        lists = {"batches": tuple(map(tuple, own["batches"])), "notes": tuple(own["notes"])}
        return ShuffledFile(**own | lists)
    notes = ReadNotes()
    batches = (batch for part in parts for batch in part.batches(shuffle.columns, notes))
    rows = shuffle.write(number, batches)
    rows = replace(rows, notes=tuple(notes.notes), unsummed=notes.unsummed)
    write_text(json.dumps(pack(asdict(rows))), record)
    return rows


def partition_frame(
    frame: Any, executor: Executor | None, label: str | None = None
) -> PartitionedTable:
    """Return a frame of Spark or Dask, which its engine reads."""
    home = type(frame).__module__.partition(".")[0]
    label = label or Message("source.the_frame", type=type(frame).__name__)
    what = "Spark" if home == "pyspark" else "Dask"
    if not isinstance(executor, Engine) or what.lower() not in type(executor).__module__:
        raise EngineError("engine.records_there", what=what)
    rows = frame_rows(label, executor.head(frame, HEAD_ROWS))
    kinds = [pa.string() if pa.types.is_null(one.type) else one.type for one in rows.schema]
    schema = pa.schema(list(zip(rows.column_names, kinds, strict=True)))

    def write(shuffle: Shuffle, executor: Executor | None) -> list[ShuffledFile]:
        assert isinstance(executor, Engine)  # noqa: S101 - checked above
        own, fields = frame, schema
        if shuffle.columns:
            own = frame[list(shuffle.columns)]
            fields = pa.schema([schema.field(name) for name in shuffle.columns])
        task = partial(catch_error, _write_frame, shuffle, label, fields)
        return raise_first(executor.map_partitions(task, own))

    return PartitionedTable(label, rows.cast(schema), (), write)


def _write_frame(
    shuffle: Shuffle, label: str, schema: pa.Schema, number: int, rows: Any
) -> ShuffledFile:
    """Write the rows of a part of a frame: batches of Spark, or a pandas frame of Dask."""
    try:
        if hasattr(rows, "columns"):
            tables = iter([frame_rows(label, rows)])
        else:
            tables = (pa.Table.from_batches([batch]) for batch in rows)
        batches = (batch for table in tables for batch in table.cast(schema).to_batches())
        return shuffle.write(number, batches)
    except pa.ArrowException as error:
        raise RecordsError("source.other_types", label=label, type=type(error).__name__) from None


_FILE_KINDS = ("parquet", "text")
_JOINED_TABLES = ("person", "concept")  # with which a table of OMOP is read


class NotPartitionedError(Exception):
    """A table that workers can't read in parts."""


@dataclass(frozen=True)
class FrameTables:
    """Frames, or tables of Spark, by the names of their tables in a database."""

    frames: Mapping[str, Any]


@dataclass(frozen=True)
class PartitionedSource:
    """A source of tables: its label, what opens each, and the table that it names itself."""

    label: str
    openers: Mapping[str, Callable[[], PartitionedTable]]
    table: str | None = None

    @classmethod
    def of_one(cls, label: str, table: PartitionedTable | None) -> PartitionedSource | None:
        """Return a source of one table; None without it."""
        return None if table is None else cls(label, {label: lambda: table})


def partition_source(
    source: Any, table: str | None, executor: Executor | None
) -> PartitionedSource | None:
    """Return a source whose tables, or the one named, workers can read in parts; else None."""
    if isinstance(source, FrameTables):
        frames = {folders.standard_case(name): one for name, one in source.frames.items()}
        if len(frames) < len(source.frames):
            raise RecordsError("source.frame_twice")
        opened = {
            name: partial(_partition_one, name, one, executor) for name, one in frames.items()
        }
        return PartitionedSource("the frames", opened)
    if _is_frame(source):
        frame = partition_frame(source, executor)
        return PartitionedSource(frame.label, {"frame": lambda: frame})
    if isinstance(source, str) and source.startswith("table:"):
        return _partition_spark_table(source, executor)
    if table is not None and is_query(table):
        return None
    if folders.are_paths(source):
        return _partition_list(source)
    if is_remote(source):
        return _partition_stored(place_of(source), table)
    if not isinstance(source, str | Path) or "://" in str(source):
        return None
    return _partition_path(Path(source), table)


def _is_frame(source: Any) -> bool:
    return type(source).__module__.partition(".")[0] in ("pyspark", "dask")


def _partition_one(name: str, source: Any, executor: Executor | None) -> PartitionedTable:
    """Return one of several tables that were given separately."""
    if _is_frame(source):
        return partition_frame(source, executor, name)
    divided = partition_source(source, None, executor)
    if divided is None or (len(divided.openers) > 1 and divided.table is None):
        raise RecordsError("engine.one_frame", name=name, type=type(source).__name__)
    return divided.openers[divided.table or next(iter(divided.openers))]()


def _partition_spark_table(source: str, executor: Executor | None) -> PartitionedSource:
    """Return a table of Spark, one of OMOP with those that it is joined to in its schema."""
    engine: Any = executor
    if not hasattr(engine, "frame"):
        raise EngineError("engine.spark_table", source=source)
    name = source.removeprefix("table:")
    schema, dot, own = name.rpartition(".")
    names = {folders.standard_case(own): name}
    if folders.standard_case(own) in folders.STANDARD_TABLES:
        others = {one: f"{schema}{dot}{one}" for one in _JOINED_TABLES if one not in names}
        names |= {one: full for one, full in others.items() if engine.has(full)}

    def open_table(full: str) -> PartitionedTable:
        return partition_frame(engine.frame(full), executor, full)

    openers = {one: partial(open_table, full) for one, full in names.items()}
    return PartitionedSource(name, openers, next(iter(names)))


def _partition_list(paths: Sequence[str | Place]) -> PartitionedSource | None:
    """Return several files, all on the disk or all in a store; else None."""
    remote = [is_remote(one) for one in paths]
    if all(remote):
        name = place_of(paths[0]).name
        label = Message("text.others", parts=name) if len(paths) > 1 else name
        files = folders.find_listed_data(paths)
        return PartitionedSource.of_one(label, partition_store(label, files))
    if any(remote):
        return None
    several = folders.combine_files([Path(str(one)) for one in paths])
    return PartitionedSource(
        several.name, {several.name: partial(partition_files, several.name, several)}
    )


def _partition_stored(place: Place, table: str | None) -> PartitionedSource | None:
    """Return files in a store as one table, or as several of a standard data model."""
    files = folders.find_data_files(place)
    tables: dict[tuple[str, str], dict[str, Remote]] = {}
    for name, file in files.items():
        tables.setdefault(_standard_table(name), {})[name] = file
    others = tables.pop(("", ""), {})
    named = {one: partial(_partition_store_table, some) for (one, _), some in tables.items()}
    if len(named) < len(tables) or (
        table and not {table.lower(), table_name(table).lower()} & named.keys()
    ):
        return None
    if not named:
        return PartitionedSource.of_one(place.name, partition_store(place.name, files))
    unnamed = {
        table_name(Path(one).name): partial(_partition_store_table, {one: others[one]})
        for one in others
    }
    return PartitionedSource(place.name, unnamed | named)


def _standard_table(name: str) -> tuple[str, str]:
    """Return the standard table that a file in a store belongs to, and its folder."""
    *parents, file = name.split("/")
    for place, folder in enumerate(parents):
        if folders.standard_case(folder) in folders.STANDARD_TABLES:
            return folders.standard_case(folder), "/".join(parents[: place + 1])
    own = folders.standard_name(file)
    return (own, f"{'/'.join(parents)}/.") if own else ("", "")


def _partition_store_table(files: Mapping[str, Remote]) -> PartitionedTable:
    names = [Path(name) for name in files]
    spread = partition_store(names[0].name, files)
    if spread is None or (not spread.files and len(names) > 1 and not folders.are_numbered(names)):
        raise NotPartitionedError
    return spread


def _partition_path(path: Path, table: str | None) -> PartitionedSource | None:
    """Return the tables of a file, a folder or a glob."""
    files = folders.find_files(path)
    of_text = len(files) > 1 and {detect_kind(file) for file in files} == {"text"}
    is_standard = any(folders.standard_name(file.name) for file in files)
    if of_text and folders.is_glob(path) and not (table or is_standard):
        one = folders.TableFiles(path.stem, "text", tuple(files))
        return PartitionedSource(path.name, {one.name: partial(partition_files, path.name, one)})
    tables = folders.find_tables(path, files)
    names = {one.name.lower() for one in tables if one.kind in _FILE_KINDS}
    wanted = {table.lower(), table_name(table).lower()} if table else names
    if not wanted & names or (len(names) < len(tables) and not table):
        return None

    def open_table(one: folders.TableFiles) -> PartitionedTable:
        if one.kind not in _FILE_KINDS:
            raise NotPartitionedError
        whole = len(tables) == 1 and one.kind == "parquet"
        return partition_files(path.name if whole else one.files[0].name, one)

    return PartitionedSource(path.name, {one.name: partial(open_table, one) for one in tables})
