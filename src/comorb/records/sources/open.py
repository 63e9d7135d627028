"""Open a source: a path, a URL or a frame becomes tables of DuckDB.

The kind of a file is found by its content, not its name. Every column of text is read as VARCHAR,
so that ids and codes never become numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.records.sources.arrow import copy_reader, open_arrow, open_frame
from comorb.records.sources.databases import Database, is_query, open_postgresql, open_sqlite
from comorb.records.sources.delta import open_delta
from comorb.records.sources.duck import (
    OpenedSource,
    SourceTable,
    connect,
    literal,
    quote,
    restrict_access,
    run_safely,
)
from comorb.records.sources.fhir_files import add_resources, open_objects, types_at_start
from comorb.records.sources.files import refuse_changes, temporary_folder
from comorb.records.sources.folders import (
    TableFiles,
    are_paths,
    combine_files,
    fetch_list,
    fetch_records,
    find_files,
    find_tables,
    several_files_error,
    standard_case,
    unpack,
)
from comorb.records.sources.parquet import check_checksums, open_parquet
from comorb.records.sources.statistics import KINDS, open_statistics
from comorb.records.sources.text_files import check_unique_columns, open_text
from comorb.records.sources.workbooks import add_sheets
from comorb.remote import is_remote, place_of


@contextmanager
def open_source(source: Any, memory: str | None = None) -> Iterator[OpenedSource]:
    """Open a file, a folder, a pattern or a list of Parquet files, a URL or a frame.

    A frame is a table in memory, a polars LazyFrame, an Arrow dataset or a reader of batches. The
    tables are gone when the context ends; ``memory`` is the most that DuckDB may hold, such as
    '2GB', before it uses the disk.
    """
    with ExitStack() as stack:
        spill = stack.enter_context(temporary_folder())
        connection = stack.enter_context(connect(spill, memory))
        folder, fetched = (Path(spill).resolve() / name for name in ("copies", "fetched"))
        if isinstance(source, str) and source.startswith(("postgresql://", "postgres://")):
            yield _from_database(stack.enter_context(open_postgresql(source)), connection)
        elif is_remote(source):
            copy = fetch_records(place_of(source), fetched)
            yield _from_path(copy, connection, folder, stack)
        elif isinstance(source, str | Path):
            yield _from_path(Path(source), connection, folder, stack)
        elif are_paths(source):
            table = combine_files(fetch_list(source, fetched))
            if table.kind != "parquet":
                raise RecordsError("source.several_texts")
            stack.enter_context(refuse_changes(table.name, table.files))
            yield _from_files(table.name, [table], connection, folder)
        else:
            restrict_access(connection, [], folder)
            label = Message("source.the_frame", type=type(source).__name__)
            opened = OpenedSource(label, connection, folder=folder)
            opened.openers["frame"] = lambda: open_frame(opened, source)
            yield opened


def _from_path(
    path: Path, connection: duckdb.DuckDBPyConnection, folder: Path, stack: ExitStack
) -> OpenedSource:
    """Open a file, a folder or a pattern; an archive is unpacked and opened as a folder."""
    label, files = path.name, find_files(path)
    stack.enter_context(refuse_changes(label, files))
    tables = find_tables(path, files)
    if [table.kind for table in tables] == ["zip"]:
        unpacked = folder / "unpacked"
        unpacked.mkdir(parents=True)
        files = unpack(files[0], unpacked)
        path = files[0] if len(files) == 1 else unpacked
        tables = find_tables(path, find_files(path))
    kinds = {table.kind for table in tables}
    if "zip" in kinds:
        raise RecordsError("source.zip_inside", label=label)
    if len(tables) == 1 and kinds == {"sqlite"}:
        return _from_database(stack.enter_context(open_sqlite(files[0])), connection)
    if len(tables) == 1 and kinds == {"duckdb"}:
        return _from_duckdb(files[0], connection)
    if kinds & {"sqlite", "duckdb"}:
        raise RecordsError("source.database_beside", label=label)
    source = _from_files(label, tables, connection, folder)
    source.ask = partial(_answer_query, source)
    return source


def _from_files(
    label: str, tables: list[TableFiles], connection: duckdb.DuckDBPyConnection, folder: Path
) -> OpenedSource:
    """Return a source that opens each table by its name."""
    restrict_access(connection, [file for table in tables for file in table.files], folder)
    source = OpenedSource(label, connection, folder=folder)
    mixed: list[Path] = []
    for table in tables:
        if table.kind == "workbook":
            add_sheets(source, table.files[0], table.name if len(tables) > 1 else None)
        elif table.kind == "json" and (types := _fhir_types(table)) and types != {table.name}:
            mixed += table.files
        else:
            if table.name in source.openers:
                raise RecordsError("source.table_twice", source=label, table=table.name)
            source.openers[table.name] = partial(_open_table, source, table)
    if mixed:
        bulk = [t for t in tables if t.kind == "json" and _fhir_types(t) == {t.name}]
        for table in bulk:
            del source.openers[table.name]
        add_resources(source, label, [*mixed, *(f for t in bulk for f in t.files)])
    return source


def _fhir_types(table: TableFiles) -> set[str]:
    return {name.lower() for file in table.files for name in types_at_start(file)}


def _open_table(source: OpenedSource, table: TableFiles) -> SourceTable:
    if table.kind == "delta" and table.root is not None:
        return open_delta(source, table.root)
    file = table.files[0]
    if table.kind == "parquet":
        label = source.label if len(source.openers) == 1 else file.name
        check_checksums(source, label, table.files)
        return open_parquet(source, label, table.files, table.root)
    if table.kind == "arrow":
        return open_arrow(source, file)
    if table.kind == "json":
        return open_objects(source, file.name, table.files)
    if table.kind in KINDS:
        return open_statistics(source, file, table.kind)
    if len(table.files) > 1:
        raise several_files_error(source.label, table.name)
    return open_text(source, file)


def _answer_query(source: OpenedSource, query: str) -> SourceTable:
    """Answer a query on files; the tables in it are opened under their names."""
    for name in source.openers:
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", query, re.IGNORECASE):
            table = source.table(name)
            source.rows(table, f"CREATE TEMP VIEW {quote(name)} AS SELECT * FROM {table.sql}")
    return source.view(Message("source.the_query", source=source.label), query)


def _from_duckdb(file: Path, connection: duckdb.DuckDBPyConnection) -> OpenedSource:
    attach = f"ATTACH {literal(str(file))} AS records (READ_ONLY)"
    run_safely(file.name, lambda: connection.execute(attach))
    connection.execute("USE records")
    restrict_access(connection, [file])
    source = OpenedSource(file.name, connection)
    source.ask = lambda query: source.view(Message("source.the_query", source=file.name), query)
    for schema, name in connection.sql(
        "SELECT table_schema, table_name FROM information_schema.tables "
        "WHERE table_catalog = 'records' ORDER BY ALL"
    ).fetchall():
        sql, label = f"SELECT * FROM records.{quote(schema)}.{quote(name)}", f"table {name}"
        source.openers[standard_case(name)] = partial(source.view, f"{file.name}, {label}", sql)
    return source


def _from_database(database: Database, connection: duckdb.DuckDBPyConnection) -> OpenedSource:
    """Open a database, whose tables are copied into DuckDB, which groups faster."""
    restrict_access(connection, [])
    source = OpenedSource(database.label, connection)

    def load(what: str) -> SourceTable:
        label: str = Message("source.the_table", source=database.label, table=what)
        if is_query(what):
            label = Message("source.the_query", source=database.label)
        with database.stream(what) as reader:
            check_unique_columns(label, reader.schema.names)
            return copy_reader(source, label, reader)

    source.ask = load
    source.openers = {standard_case(name): partial(load, name) for name in database.tables}
    return source
