"""Merging: how what two parts of a table answer to a query becomes the answer of both."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from comorb.errors import RecordsError, TooLargeError, lacks_memory
from comorb.messages import Message
from comorb.records.sources.files import check_columns, check_rows, current_limits, table_name

T = TypeVar("T")
Merge = Callable[[Any, Any], Any]

_DUCKDB_CONFIG = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
_BATCH_CELLS = 1 << 24
_BATCH_ROWS = 1 << 20
_NUMBER_TYPES = re.compile(r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|FLOAT|DECIMAL.*)$")
_CSV_LINE = re.compile(r"CSV Error on Line: (\d+)")
_CSV_WIDTH = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
_JSON_LINE = re.compile(r"(?:line|record/value) (\d+)")


@dataclass(frozen=True)
class SourceTable:
    """One table: what to call it, what to write after FROM, and its columns with their types.

    Text is slow to read twice, and the first row of a text file is its header; ``counted`` says
    that its rows were held against the limit when it was looked through.
    """

    label: str
    sql: str
    columns: dict[str, str]
    text: bool = False
    counted: bool = False

    @property
    def first_row(self) -> int:
        """The number of the first row of data, as a spreadsheet counts."""
        return 2 if self.text else 1


@dataclass
class OpenedSource:
    """The tables of one source; each is opened when it is first asked for.

    Attributes
    ----------
    openers : dict
        What opens a table, by its name.
    ask : callable, optional
        What answers a query.
    folder : path, optional
        Where copies of what DuckDB can't read as it is may be written.
    usual : str, optional
        The table that is read when none is named, with what to note then.
    notes : list of str
        What was doubtful when its tables were opened, for the ledger.
    numbers : set of str
        The columns that were stored as numbers and are read as text.
    """

    label: str
    connection: duckdb.DuckDBPyConnection
    openers: dict[str, Callable[[], SourceTable]] = field(default_factory=dict)
    ask: Callable[[str], SourceTable] | None = None
    opened: dict[str, SourceTable] = field(default_factory=dict)
    folder: Path | None = None
    default: tuple[str, str] | None = None
    notes: list[str] = field(default_factory=list)
    numbers: set[str] = field(default_factory=set)

    def name_of(self, asked: str) -> str | None:
        """Return the name of the table that is meant, in whatever case and with any ending."""
        if asked in self.openers:
            return asked
        wanted = (asked.lower(), table_name(asked).lower())
        same = [name for name in self.openers if name.lower() in wanted]
        return same[0] if len(same) == 1 else None

    def open_default(self) -> SourceTable | None:
        """Return the table that is read when none is named, if the source has one."""
        if self.default is None:
            return None
        name, note = self.default
        self.note(note)
        return self.table(name)

    def note(self, *notes: str) -> None:
        """Keep what is doubtful, once."""
        self.notes.extend(note for note in notes if note and note not in self.notes)

    def stored_as_numbers(self, table: SourceTable, columns: Sequence[str]) -> list[str]:
        """Return those columns of a table that the source holds as numbers."""
        return [
            name
            for name in columns
            if name in self.numbers or _NUMBER_TYPES.match(table.columns.get(name, ""))
        ]

    def copies(self) -> Path:
        """Return a folder in which DuckDB may read what is written."""
        if self.folder is None:
            raise RecordsError("source.no_copy", label=self.label)
        self.folder.mkdir(exist_ok=True)
        return self.folder

    def table(self, name: str) -> SourceTable:
        """Return a table by its name."""
        if name not in self.opened:
            table = self.openers[name]()
            check_columns(table.label, len(table.columns))
            self._check_rows(table)
            self.opened[name] = table
        return self.opened[name]

    def _check_rows(self, table: SourceTable) -> None:
        most = current_limits().rows
        if most and not table.counted:
            some = f"SELECT 1 FROM {table.sql} LIMIT {most + 1}"
            ((rows,),) = self.rows(table, f"SELECT count(*) FROM ({some})")
            check_rows(table.label, rows)

    def view(self, label: str, sql: str, text: bool = False) -> SourceTable:
        """Name a query, so that it can be read as a table."""
        count = "SELECT count(*) FROM duckdb_views() WHERE temporary"
        name = f"view_{self.connection.sql(count).fetchall()[0][0]}"
        run_safely(label, lambda: self.connection.execute(f"CREATE TEMP VIEW {name} AS {sql}"))
        view = run_safely(label, lambda: self.connection.sql(f"SELECT * FROM {name}"))
        columns = dict(zip(view.columns, map(str, view.types), strict=True))
        return SourceTable(label, name, columns, text)

    def rows(self, table: SourceTable, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement on a table and return the rows that it gives."""
        return run_safely(table.label, lambda: self.connection.execute(sql).fetchall())

    def answer_whole(self, question: str, find: Callable[[], T], merge: Merge | None) -> T:
        """Return what ``find`` finds in all rows; ``merge`` makes one answer of those of two parts.

        Where this is a part of a source, the answer is that of all parts. Without a ``merge`` the
        parts can't tell, and the question is refused there.
        """
        return find()

    def query_whole(
        self, table: SourceTable, sql: str, merge: Merge | None
    ) -> list[tuple[Any, ...]]:
        """Return the rows that a query gives of a table that is whole."""
        return self.answer_whole(sql, lambda: self.rows(table, sql), merge)

    def register(self, name: str, table: pa.Table) -> None:
        """Let queries read an Arrow table by a name; it is made of what the whole source told.

        What is made of the rows of a part is registered with its connection: a question about the
        whole source is the same for all parts.
        """
        self.connection.register(name, table)

    def numbered_sql(self, table: SourceTable, column: str) -> str:
        """Return the SQL of a table with the numbers of its rows in a column."""
        return f"SELECT row_number() OVER () AS {quote(column)}, * FROM {table.sql}"

    def batches(
        self, table: SourceTable, sql: str, most: int = _BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query on a table in batches, in order; the next is on its way."""
        rows = max(1024, min(most, _BATCH_CELLS // max(1, len(table.columns))))
        reader = run_safely(table.label, lambda: self.connection.sql(sql).to_arrow_reader(rows))

        def read() -> pa.RecordBatch | None:
            return run_safely(table.label, lambda: next(reader, None))

        with ThreadPoolExecutor(1) as ahead:
            coming = ahead.submit(read)
            while (batch := coming.result()) is not None:
                coming = ahead.submit(read)
                yield batch


def quote(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def text_sql(name: str, kind: str) -> str:
    """Return the SQL that reads a column as text."""
    if kind == "VARCHAR":
        return quote(name)
    return f"CAST({quote(name)} AS VARCHAR)"


def integer_sql(name: str) -> str:
    """Return the SQL of a whole number as text, without the '.0' that it may have beside blanks."""
    text = f"CAST({name} AS VARCHAR)"
    return f"CASE WHEN ends_with({text}, '.0') THEN left({text}, -2) ELSE {text} END"


def literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def connect(
    spill: str, memory: str | None, threads: int | None = None
) -> duckdb.DuckDBPyConnection:
    """Return a connection that installs nothing and spills to a folder when memory is short."""
    config: dict[str, Any] = {**_DUCKDB_CONFIG, "temp_directory": spill}
    if threads is not None:
        config["threads"] = threads
    if current_limits().expanded:
        config["max_temp_directory_size"] = f"{current_limits().expanded}B"
    if memory is not None:
        config["memory_limit"] = memory
    try:
        return duckdb.connect(":memory:", config=config)
    except duckdb.Error:
        raise RecordsError("source.memory", memory=memory) from None


def restrict_access(
    connection: duckdb.DuckDBPyConnection, paths: list[Path], folder: Path | None = None
) -> None:
    """Let a connection read these files, and copies in a folder, and nothing else from now on."""
    allowed = ", ".join(literal(str(path)) for path in paths)
    connection.execute(f"SET allowed_paths = [{allowed}]")
    if folder is not None:
        connection.execute(f"SET allowed_directories = [{literal(f'{folder}/')}]")
    connection.execute("SET streaming_buffer_size = '64MB'")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def run_safely(label: str, action: Callable[[], T]) -> T:
    """Run an action of DuckDB; raise its error without a word of the data.

    The new error is raised outside the handler, so that not even its context holds a row.
    """
    try:
        return action()
    except (duckdb.Error, pa.ArrowException, OSError, UnicodeDecodeError) as error:
        kind = TooLargeError if lacks_memory(error) else RecordsError
        message = _explain(label, error)
    raise kind(message)


def _explain(label: str, error: Exception) -> str:
    text = str(error)
    row = _CSV_LINE.search(text)
    where = Message("text.row", label=label, row=int(row[1])) if row else label
    if width := _CSV_WIDTH.search(text):
        expected, came = int(width[1]), int(width[2])
        key = "text.fields_cut" if came < expected else "text.fields"
        return Message(key, where=where, came=came, expected=expected)
    if "unterminated quote" in text or "line size" in text.lower():
        return Message("text.quote", where=where)
    if "invalid state" in text:
        return Message("text.line_ends", where=where)
    if "nvalid unicode" in text or isinstance(error, UnicodeDecodeError):
        return Message("text.encoding", where=where)
    if "JSON" in text:
        line = _JSON_LINE.search(text)
        where = Message("text.row", label=label, row=int(line[1])) if line else label
        return Message("text.no_json", where=where)
    return _explain_by_kind(label, error, text)


def _explain_by_kind(label: str, error: Exception, text: str) -> str:
    if "read-only transaction" in text:
        return Message("source.query_writes", label=label)
    if lacks_memory(error):
        return Message("source.more_memory", label=label)
    if isinstance(error, duckdb.PermissionException):
        return Message("source.refers_outside", label=label)
    if isinstance(error, duckdb.BinderException | duckdb.CatalogException | duckdb.ParserException):
        first = text.splitlines()[0].partition(": ")[2]
        return Message("source.bad_query", label=label, reason=first)
    if "arquet" in text or "magic bytes" in text:
        return Message("source.damaged_parquet", label=label)
    return Message("source.not_to_end", label=label, type=type(error).__name__)


Rows = list[tuple[Any, ...]]


def take_first(one: Any, _two: Any) -> Any:
    """Return the answer of the first part."""
    return one


def take_either(one: Rows, two: Rows) -> Rows:
    """Return what any part has found."""
    return one or two


def unite_rows(one: Rows, two: Rows) -> Rows:
    """Return the rows of both, each once."""
    return list(dict.fromkeys((*one, *two)))


def all_true(one: Rows, two: Rows) -> Rows:
    """Return whether both say yes, column by column; nothing is no answer."""
    return _merge_columns(one, two, lambda a, b: a and b)


def take_largest(one: Rows, two: Rows) -> Rows:
    """Return the larger value of each column."""
    return _merge_columns(one, two, max)


def add_histograms(one: Rows, two: Rows) -> Rows:
    """Return the counts of the values of each column."""
    return _merge_columns(one, two, lambda a, b: dict(Counter(a) + Counter(b)))


def add_rows(one: Rows, two: Rows, keys: int = 0) -> Rows:
    """Return rows with the same ``keys`` first columns as one, their other columns added up."""
    sums: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in (*one, *two):
        key, counts = row[:keys], row[keys:]
        before = sums.get(key)
        sums[key] = counts if before is None else tuple(map(sum, zip(before, counts, strict=True)))
    return [(*key, *counts) for key, counts in sums.items()]


add_by_first = partial(add_rows, keys=1)
add_by_two = partial(add_rows, keys=2)


def _merge_columns(one: Rows, two: Rows, join: Any) -> Rows:
    pairs = zip(one[0], two[0], strict=True)
    return [tuple(b if a is None else a if b is None else join(a, b) for a, b in pairs)]
