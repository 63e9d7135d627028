"""Sources: a path, a URL or a frame becomes tables of DuckDB.

A file is known by its content, whatever it is called. Text is read with every column as VARCHAR,
so that ids and codes never become numbers.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from comorb.errors import RecordsError
from comorb.records.sources.databases import Database, is_query, open_postgresql, open_sqlite
from comorb.records.sources.dialect import compression_of, open_bytes, refuse_twice, sniff
from comorb.records.sources.duck import (
    OpenedSource,
    SourceTable,
    connect,
    guarded,
    literal,
    lock,
    quoted,
)

PARTS = ("condition_occurrence", "concept", "person", "condition", "patient")
_KINDS = {b"PAR1": "parquet", b"ARROW1": "arrow", b"SQLite format 3": "sqlite"}
_DATA_FILE = re.compile(
    r"[^._].*\.(csv|tsv|txt|parquet|ndjson|jsonl|arrow|feather)(\.gz|\.zst)?", re.IGNORECASE
)


@contextmanager
def open_source(source: Any, memory: str | None = None) -> Iterator[OpenedSource]:
    """Open a file, a folder, a glob of Parquet files, a ``postgresql://`` URL or a frame.

    The tables are gone when the context ends; ``memory`` is the most that DuckDB may hold, such as
    '2GB', before it uses the disk.
    """
    with ExitStack() as stack:
        spill = stack.enter_context(tempfile.TemporaryDirectory(prefix="comorb-"))
        connection = stack.enter_context(connect(spill, memory))
        if isinstance(source, str) and source.startswith(("postgresql://", "postgres://")):
            database = stack.enter_context(open_postgresql(source))
            yield _from_database(database, connection)
        elif isinstance(source, str | Path):
            path = Path(source)
            files = {file: _kind(file) for file in _files(path)}
            first, kind = next(iter(files.items()))
            if len(files) == 1 and kind == "sqlite":
                yield _from_database(stack.enter_context(open_sqlite(first)), connection)
            elif len(files) == 1 and kind == "duckdb":
                yield _from_duckdb(first, connection)
            else:
                yield _from_files(path, files, connection)
        else:
            yield _from_frame(source, connection)


def _files(path: Path) -> list[Path]:
    """Return the files of a path, a folder or a glob, as absolute paths."""
    if path.is_file():
        return [path.resolve()]
    if path.is_dir():
        files = [file for file in sorted(path.iterdir()) if _DATA_FILE.fullmatch(file.name)]
        if not files:
            raise RecordsError(
                f"The folder {path.name} holds no data: expected .csv, .tsv, .txt, .parquet, "
                ".ndjson or .arrow files."
            )
    elif any(mark in path.name for mark in "*?["):
        files = sorted(path.parent.glob(path.name))
        if not files:
            raise RecordsError(f"No file matches {path.name}; check the pattern and the folder.")
    else:
        raise RecordsError(f"There is no file or folder {path}; check the name.")
    return [file.resolve() for file in files]


def _kind(file: Path) -> str:
    """Return what a file is by its content, whatever it is called."""
    with file.open("rb") as stream:
        start = stream.read(16)
    for mark, kind in _KINDS.items():
        if start.startswith(mark):
            return kind
    if start[8:12] == b"DUCK":
        return "duckdb"
    with open_bytes(file, compression_of(file)) as stream:
        text = stream.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"["):
        raise RecordsError(
            f"{file.name} is one JSON array; write one JSON object in each line (NDJSON)."
        )
    return "json" if text.startswith(b"{") else "text"


def _from_files(
    path: Path, files: dict[Path, str], connection: duckdb.DuckDBPyConnection
) -> OpenedSource:
    """Open files as one table each, or Parquet files without a part's name as one table."""
    lock(connection, list(files))
    source = OpenedSource(path.name, connection)
    parted = [file for file in files if _part(file) in PARTS]
    if set(files.values()) == {"parquet"} and not parted:
        source.openers[path.stem] = lambda: _parquet(source, path.name, list(files))
        return source
    names = {file: _part(file) if file in parted else file.name for file in files}
    for name in dict.fromkeys(names.values()):
        same = [file for file in files if names[file] == name]
        kinds = {files[file] for file in same}
        if len(same) > 1 and (len(kinds) > 1 or not kinds & {"parquet", "json"}):
            raise RecordsError(
                f"{path.name} holds the table {name!r} in more than one file; join them into one."
            )
        source.openers[name] = partial(_open_files, source, same, kinds.pop())
    return source


def _standard(name: str) -> str:
    return name.lower() if name.lower() in PARTS else name


def _part(file: Path) -> str:
    return re.split(r"[.\-]", file.name)[0].lower()


def _open_files(source: OpenedSource, files: list[Path], kind: str) -> SourceTable:
    file = files[0]
    if kind == "parquet":
        return _parquet(source, file.name, files)
    if kind == "arrow":
        table = guarded(file.name, lambda: pa.ipc.open_file(pa.memory_map(str(file))).read_all())
        return register_table(source, file.name, table)
    if kind == "json":
        names = ", ".join(literal(str(file)) for file in files)
        packed = literal(compression_of(file))
        sql = f"SELECT json FROM read_ndjson_objects([{names}], compression = {packed})"
        return source.view(file.name, sql, text=True)
    return _text(file)


def _text(file: Path) -> SourceTable:
    dialect = sniff(file)
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in dialect.columns)
    read = (
        f"read_csv({literal(str(file))}, columns = {{{columns}}}, "
        f"delim = {literal(dialect.delimiter)}, quote = '\"', escape = '\"', header = true, "
        f"encoding = {literal(dialect.encoding)}, compression = {literal(dialect.compression)}, "
        "auto_detect = false, strict_mode = true)"
    )
    return SourceTable(file.name, read, dict.fromkeys(dialect.columns, "VARCHAR"), text=True)


def _parquet(source: OpenedSource, label: str, files: list[Path]) -> SourceTable:
    names = ", ".join(literal(str(file)) for file in files)
    return source.view(label, f"SELECT * FROM read_parquet([{names}], hive_partitioning = false)")


def register_table(source: OpenedSource, label: str, table: pa.Table) -> SourceTable:
    """Let DuckDB read an Arrow table, without copying it."""
    refuse_twice(label, table.column_names)
    name = f"arrow_{len(source.opened)}"
    source.connection.register(name, table)
    return source.view(label, f"SELECT * FROM {name}")


def _from_frame(frame: Any, connection: duckdb.DuckDBPyConnection) -> OpenedSource:
    lock(connection, [])
    label = f"the {type(frame).__name__}"
    source = OpenedSource(label, connection)
    if type(frame).__module__.partition(".")[0] == "pandas":
        frame = _from_pandas(label, frame)
    if not hasattr(frame, "__arrow_c_stream__"):
        raise RecordsError(
            f"Records can't be read from a {type(frame).__name__}: give a path, a postgresql:// "
            "URL, or a pandas, polars or Arrow table."
        )
    source.openers["frame"] = lambda: register_table(source, label, pa.table(frame))
    return source


def _from_pandas(label: str, frame: Any) -> pa.Table:
    """Convert column by column, mixed ones (428 beside 'V58') as text."""
    refuse_twice(label, [str(name) for name in frame.columns])
    columns = {}
    for name in frame.columns:
        values = frame[name]
        try:
            columns[str(name)] = pa.array(values, from_pandas=True)
        except pa.ArrowException:
            gone = values.isna()
            texts = [None if no else str(value) for value, no in zip(values, gone, strict=True)]
            columns[str(name)] = pa.array(texts, pa.string())
    return pa.table(columns)


def _from_duckdb(file: Path, connection: duckdb.DuckDBPyConnection) -> OpenedSource:
    guarded(
        file.name,
        lambda: connection.execute(f"ATTACH {literal(str(file))} AS records (READ_ONLY)"),
    )
    connection.execute("USE records")
    lock(connection, [file])
    source = OpenedSource(file.name, connection)
    source.ask = lambda query: source.view(f"{file.name}, the query", query)
    for schema, name in connection.sql(
        "SELECT table_schema, table_name FROM information_schema.tables "
        "WHERE table_catalog = 'records' ORDER BY ALL"
    ).fetchall():
        sql = f"SELECT * FROM records.{quoted(schema)}.{quoted(name)}"
        source.openers[_standard(name)] = partial(source.view, f"{file.name}, table {name}", sql)
    return source


def _from_database(database: Database, connection: duckdb.DuckDBPyConnection) -> OpenedSource:
    """Copy what is asked for into DuckDB, which groups faster than the database."""
    lock(connection, [])
    source = OpenedSource(database.label, connection)

    def load(what: str) -> SourceTable:
        label = f"{database.label}, {'the query' if is_query(what) else f'table {what}'}"
        name = f"copy_{len(source.opened)}"
        with database.stream(what) as reader:
            refuse_twice(label, reader.schema.names)
            connection.register("incoming", reader)
            source.rows(SourceTable(label, name, {}), f"CREATE TEMP TABLE {name} AS FROM incoming")
            connection.unregister("incoming")
        return source.view(label, f"SELECT * FROM {name}")

    source.ask = load
    source.openers = {_standard(name): partial(load, name) for name in database.tables}
    return source
