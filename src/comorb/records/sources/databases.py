"""SQLite and PostgreSQL: opened for reading only, every column streamed as Arrow text."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from comorb.errors import RecordsError, not_installed
from comorb.messages import Message
from comorb.records.sources.duck import quote

_BATCH_ROWS = 100_000
_QUERY = re.compile(r"\s*(select|with)\b", re.IGNORECASE)
_PG_TABLES = (
    "SELECT table_name::text FROM information_schema.tables "
    "WHERE table_schema = ANY (current_schemas(false)) ORDER BY 1"
)


@dataclass(frozen=True)
class Database:
    """A database: its label, its tables, and a function that streams a table or a query."""

    label: str
    tables: tuple[str, ...]
    stream: Callable[[str], AbstractContextManager[pa.RecordBatchReader]]


def is_query(text: str) -> bool:
    """Return whether a text is a query and not the name of a table."""
    return _QUERY.match(text) is not None


@contextmanager
def open_sqlite(file: Path) -> Iterator[Database]:
    """Open an SQLite file for reading."""
    label = file.name
    # DuckDB pulls the rows from a thread of its own, one at a time.
    opened = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, check_same_thread=False)
    with closing(opened) as connection:

        def query(sql: str) -> list[tuple[Any, ...]]:
            rows: list[tuple[Any, ...]]
            rows = _run_sqlite(label, lambda: connection.execute(sql).fetchall())
            return rows

        # SQLite reads what is left of a file that was cut off, without an error.
        checks = "SELECT quick_check, page_size FROM pragma_quick_check(1), pragma_page_size"
        ((state, page),) = query(checks)
        if state != "ok" or file.stat().st_size % page:
            raise RecordsError("source.damaged", label=label)

        @contextmanager
        def stream(table: str) -> Iterator[pa.RecordBatchReader]:
            sql = table if is_query(table) else f'SELECT * FROM "{table.replace(chr(34), "")}"'
            cursor = _run_sqlite(label, lambda: connection.execute(sql))
            schema = pa.schema([(column[0], pa.string()) for column in cursor.description])

            def batches() -> Iterator[pa.RecordBatch]:
                while rows := _run_sqlite(label, lambda: cursor.fetchmany(_BATCH_ROWS)):
                    columns = zip(*rows, strict=True)
                    texts = [[None if v is None else str(v) for v in column] for column in columns]
                    yield pa.record_batch([pa.array(one, pa.string()) for one in texts], schema)

            yield pa.RecordBatchReader.from_batches(schema, batches())

        names = query(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite_%' ORDER BY name"
        )
        yield Database(label, tuple(name for (name,) in names), stream)


def _run_sqlite(label: str, action: Callable[[], Any]) -> Any:
    try:
        return action()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        safe = re.match(r"no such (table|column): \S+|near \S+: syntax error|attempt", str(error))
        reason = safe[0] if safe else Message("database.damaged")
        if reason == "attempt":
            reason = Message("database.query_writes")
    raise RecordsError("source.unreadable", label=label, reason=reason)


@contextmanager
def open_postgresql(url: str) -> Iterator[Database]:
    """Open a PostgreSQL database for reading, by its URL."""
    try:
        import adbc_driver_postgresql.dbapi as adbc
    except ImportError:
        raise RecordsError(not_installed(Message("install.postgres"), "postgres")) from None

    parts = urlsplit(url)
    label = f"{parts.hostname or 'localhost'}{parts.path}"
    with closing(_run_postgresql(label, lambda: adbc.connect(url))) as connection:

        def execute(cursor: Any, sql: str) -> Any:
            def act() -> Any:
                cursor.execute(sql)
                return cursor.fetch_record_batch()

            return _run_postgresql(label, act)

        @contextmanager
        def stream(table: str) -> Iterator[pa.RecordBatchReader]:
            inner = table.rstrip("; \n") if is_query(table) else f"TABLE {quote(table)}"
            with connection.cursor() as cursor:
                shape = execute(cursor, f"SELECT * FROM ({inner}) AS records LIMIT 0").schema
                names = map(quote, shape.names)
                columns = ", ".join(f"{name}::text AS {name}" for name in names)
                yield execute(cursor, f"SELECT {columns} FROM ({inner}) AS records")

        with connection.cursor() as cursor:
            _run_postgresql(label, lambda: cursor.execute("SET TRANSACTION READ ONLY"))
            names = execute(cursor, _PG_TABLES).read_all()
        yield Database(label, tuple(names.column(0).to_pylist()), stream)


def _run_postgresql(label: str, action: Callable[[], Any]) -> Any:
    from adbc_driver_manager import Error

    try:
        return action()
    except Error as error:
        state, text = getattr(error, "sqlstate", None) or "", str(error)
    if "assword" in text or "authentication" in text or state.startswith("28"):
        reason = Message("database.refused")
    elif state == "25006" or "data-modifying" in text:
        reason = Message("database.writes")
    elif state == "3D000" or ("database" in text and "does not exist" in text):
        reason = Message("database.unknown")
    elif state.startswith("42"):
        found = re.search(r"ERROR:\s*(.*)", text)
        reason = Message("database.query", reason=found[1] if found else Message("database.check"))
    elif "onnection refused" in text or "could not translate" in text or "timeout" in text.lower():
        reason = Message("database.silent")
    elif state and not state.startswith(("08", "57")):
        reason = Message("database.state", state=state)
    else:
        reason = Message("database.broke_off")
    raise RecordsError("source.database", label=label, reason=reason)
