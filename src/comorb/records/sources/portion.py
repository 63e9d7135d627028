"""Portion: a part of a source, which answers questions about the whole as all parts together do.

A portion that isn't told the answer to a question answers for itself, goes on with that, and
keeps it. What all portions answered to the same question is merged, and told to them the next
time; a question is the same when all that was defined before it is the same, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial, reduce
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from comorb.errors import RecordsError
from comorb.records.sources.duck import Merge, OpenedSource, SourceTable, connect, lock, quoted
from comorb.records.sources.frames import register_table
from comorb.records.sources.merging import first
from comorb.records.sources.spill import temporary_folder

T = TypeVar("T")

Answers = Mapping[str, Any]
Found = Mapping[str, tuple[Any, Merge]]
_NUMBERS = "row_numbers"


@dataclass
class Portion(OpenedSource):
    """A part of a source; ``answers`` are those of the whole, ``found`` those of this part."""

    answers: Answers = field(default_factory=dict)
    found: dict[str, tuple[Any, Merge]] = field(default_factory=dict)
    defined: str = ""

    def whole(self, question: str, find: Callable[[], T], merge: Merge | None) -> T:
        """Return the answer of all parts where it is known, or that of this part."""
        if merge is None:
            raise RecordsError(
                f"{self.label}: no column was recognised as the id of a record by its name, and "
                "only the whole table could tell; name the column."
            )
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

    def numbered(self, table: SourceTable, column: str) -> str:
        """Return the SQL of a table with the numbers that its rows have in the whole source."""
        return (
            f"SELECT {_NUMBERS}.number AS {quoted(column)}, own.* "
            f"FROM {table.sql} AS own POSITIONAL JOIN {_NUMBERS}"
        )

    def _define(self, what: str) -> None:
        self.defined = sha256(f"{self.defined}\n{what}".encode()).hexdigest()


@dataclass(frozen=True)
class Piece:
    """Some rows of a table with their numbers in it, its label, and what was doubtful about it."""

    label: str
    notes: tuple[str, ...]
    rows: pa.Table
    numbers: pa.Array


@dataclass(frozen=True)
class Whole:
    """What is known of a source of many parts: its label, its tables' names, and all answers."""

    label: str
    names: tuple[str, ...]
    answers: Answers = field(default_factory=dict)

    @contextmanager
    def portion(self, find: Callable[[str], Piece]) -> Iterator[Portion]:
        """Open a part of the source; the table that is opened first has the records."""
        with ExitStack() as stack:
            spill = stack.enter_context(temporary_folder())
            connection = stack.enter_context(connect(spill, None, threads=1))
            lock(connection, [], Path(spill).resolve() / "copies")
            source = Portion(self.label, connection, answers=self.answers)

            def opened(name: str) -> SourceTable:
                piece = find(name)
                if not source.opened:
                    connection.register(_NUMBERS, pa.table({"number": piece.numbers}))
                source.note(*piece.notes)
                return register_table(source, piece.label, piece.rows)

            source.openers = {name: partial(opened, name) for name in self.names}
            yield source


def merged(found: list[Found]) -> dict[str, Any]:
    """Return the answers to the questions that all parts were asked."""
    same = set.intersection(*(set(one) for one in found)) if found else set()
    answers = {}
    for key in same:
        merge = found[0][key][1]
        answers[key] = reduce(merge, (one[key][0] for one in found))
    return answers


def of_the_head(found: Found) -> dict[str, Any]:
    """Return the answers for which the first rows of a source stand."""
    return {key: answer for key, (answer, merge) in found.items() if merge is first}
