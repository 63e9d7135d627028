"""DuckDB: the tables of an opened source, queries on them, and answers of partitions merged."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
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
Rows = list[tuple[Any, ...]]
Merge = Callable[[Any, Any], Any]

_DUCKDB_CONFIG = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
_BATCH_CELLS = 1 << 24
_BATCH_ROWS = 1 << 20
_NUMBER_TYPES = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|FLOAT|DECIMAL.*")
_CSV_LINE = re.compile(r"CSV Error on Line: (\d+)")
_CSV_WIDTH = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
_JSON_LINE = re.compile(r"(?:line|record/value) (\d+)")


@dataclass(frozen=True)
class SourceTable:
    """A table: its label, what stands after FROM, and the types of its columns by name.

    ``text`` is for text, which is slow to read twice and whose first row is a header; ``counted``
    is for rows that were checked against the limit already.
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

    def text_sql(self, name: str) -> str:
        """Return the SQL that reads a column as text."""
        return text_sql(name, self.columns[name])


@dataclass
class OpenedSource:
    """The tables of one source, each opened at its first use.

    Attributes
    ----------
    openers : dict
        The function that opens a table, by its name.
    ask : callable, optional
        The function that answers a query.
    folder : path, optional
        Where files that DuckDB can't read as they are may be copied to.
    default : tuple of str, optional
        The table that is read when none is named, and the note on that.
    notes : list of str
        Doubts about its tables, for the ledger.
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

    def name_of(self, wanted: str) -> str | None:
        """Return the name of a table that is written in any case and with any ending."""
        if wanted in self.openers:
            return wanted
        spellings = (wanted.lower(), table_name(wanted).lower())
        same = [name for name in self.openers if name.lower() in spellings]
        return same[0] if len(same) == 1 else None

    def note(self, *notes: str) -> None:
        """Keep notes for the ledger, each once."""
        self.notes.extend(note for note in notes if note and note not in self.notes)

    def stored_as_numbers(self, table: SourceTable, columns: Sequence[str]) -> list[str]:
        """Return those columns of a table that the source stores as numbers."""
        types = {name: table.columns.get(name, "") for name in columns}
        return [name for name in columns if name in self.numbers or is_number_type(types[name])]

    def new_copy(self, kind: str) -> Path:
        """Return the path of a new file that DuckDB may read."""
        if self.folder is None:
            raise RecordsError("source.no_copy", label=self.label)
        self.folder.mkdir(exist_ok=True)
        return self.folder / f"{kind}_{len(list(self.folder.iterdir()))}"

    def table(self, name: str) -> SourceTable:
        """Return a table by its name, within the limits."""
        if name not in self.opened:
            table = self.openers[name]()
            check_columns(table.label, len(table.columns))
            limit = current_limits().rows
            if limit and not table.counted:
                some = f"SELECT 1 FROM {table.sql} LIMIT {limit + 1}"
                ((rows,),) = self.rows(table, f"SELECT count(*) FROM ({some})")
                check_rows(table.label, rows)
            self.opened[name] = table
        return self.opened[name]

    def derive(self, table: SourceTable, sql: str) -> SourceTable:
        """Return a query on a table as a view under the label of that table."""
        return self.view(table.label, sql, table.text)

    def view(self, label: str, sql: str, text: bool = False) -> SourceTable:
        """Return a query as a view, which can be read as a table."""
        count = "SELECT count(*) FROM duckdb_views() WHERE temporary"
        name = f"view_{self.connection.sql(count).fetchall()[0][0]}"
        run_safely(label, lambda: self.connection.execute(f"CREATE TEMP VIEW {name} AS {sql}"))
        view = run_safely(label, lambda: self.connection.sql(f"SELECT * FROM {name}"))
        columns = dict(zip(view.columns, map(str, view.types), strict=True))
        return SourceTable(label, name, columns, text)

    def rows(self, table: SourceTable, sql: str) -> Rows:
        """Run a statement on a table and return its rows."""
        return run_safely(table.label, lambda: self.connection.execute(sql).fetchall())

    def answer_whole(self, question: str, find: Callable[[], T], merge: Merge | None) -> T:
        """Return what ``find`` finds in all rows; ``merge`` unites the answers of two partitions.

        A source that is one partition returns the answer of all. It refuses a question without a
        ``merge``.
        """
        return find()

    def query_whole(self, table: SourceTable, sql: str, merge: Merge | None) -> Rows:
        """Return the rows of a query on a whole table."""
        return self.answer_whole(sql, lambda: self.rows(table, sql), merge)

    def count_rows(self, table: SourceTable, rows: str = "") -> int:
        """Return the number of rows of a whole table, or of those after another FROM."""
        sql = f"SELECT count(*) FROM {rows or table.sql}"
        ((count,),) = self.query_whole(table, sql, add_rows)
        return int(count)

    def count_values(self, table: SourceTable, *values: str, where: str = "true") -> Rows:
        """Return the values, as SQL, that occur in a whole table, with their number of rows."""
        sql = f"SELECT {', '.join(values)}, count(*) FROM {table.sql} WHERE {where} GROUP BY ALL"
        return self.query_whole(table, sql, partial(add_rows, keys=len(values)))

    def has_rows(self, table: SourceTable, rows: str) -> bool:
        """Return whether there are rows after a FROM, in a whole table."""
        return bool(self.query_whole(table, f"SELECT 1 FROM {rows}", take_either))

    def register(self, name: str, table: pa.Table) -> None:
        """Let queries read an Arrow table, which is made of answers of the whole source.

        A table made of the rows of one partition is registered with its connection: a question
        about the whole source is the same for all partitions.
        """
        self.connection.register(name, table)

    def numbered_sql(self, table: SourceTable, column: str) -> str:
        """Return the SQL of a table with the numbers of its rows in a column."""
        return f"SELECT row_number() OVER () AS {quote(column)}, * FROM {table.sql}"

    def batches(
        self, table: SourceTable, sql: str, most: int = _BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query in batches, in order; the next is read meanwhile."""
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
    """Return the SQL of an integer as text, without the '.0' that blank cells may add to it."""
    text = f"CAST({name} AS VARCHAR)"
    return f"CASE WHEN ends_with({text}, '.0') THEN left({text}, -2) ELSE {text} END"


def literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def literals(texts: Iterable[str]) -> str:
    """Return texts as SQL literals between commas, for IN."""
    return ", ".join(map(literal, texts))


def is_number_type(kind: str) -> bool:
    """Return whether a type of DuckDB is one of numbers."""
    return _NUMBER_TYPES.fullmatch(kind) is not None


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
    connection.execute(f"SET allowed_paths = [{literals(map(str, paths))}]")
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


def take_first(one: Any, _two: Any) -> Any:
    """Return the answer of the first partition."""
    return one


def take_either(one: Rows, two: Rows) -> Rows:
    """Return the rows that either partition has found."""
    return one or two


def unite_rows(one: Rows, two: Rows) -> Rows:
    """Return the rows of both, each once."""
    return list(dict.fromkeys((*one, *two)))


def add_rows(one: Rows, two: Rows, keys: int = 0) -> Rows:
    """Return rows with the same ``keys`` first columns as one, their other columns added up."""
    sums: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in (*one, *two):
        key, counts = row[:keys], row[keys:]
        before = sums.get(key)
        sums[key] = counts if before is None else tuple(map(sum, zip(before, counts, strict=True)))
    return [(*key, *counts) for key, counts in sums.items()]


def _merge_columns(join: Callable[[Any, Any], Any], one: Rows, two: Rows) -> Rows:
    """Return one row, each value joined with that of the other partition unless one is None."""
    pairs = zip(one[0], two[0], strict=True)
    return [tuple(b if a is None else a if b is None else join(a, b) for a, b in pairs)]


def _add_counts(one: dict[str, int], two: dict[str, int]) -> dict[str, int]:
    return dict(Counter(one) + Counter(two))


# They are pickled with the answers of partitions, so that none is a lambda.
add_by_first = partial(add_rows, keys=1)
all_true = partial(_merge_columns, operator.and_)
take_largest = partial(_merge_columns, max)
add_histograms = partial(_merge_columns, _add_counts)
