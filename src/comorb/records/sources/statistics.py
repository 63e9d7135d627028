"""Files of SAS, SPSS and Stata, read in parts; value labels stand for the numbers they explain."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.records.sources.arrow import register_table
from comorb.records.sources.duck import OpenedSource, SourceTable
from comorb.records.sources.files import check_columns, check_rows
from comorb.records.sources.native import (
    Answer,
    format_cell,
    format_number,
    read_text_columns,
    run_isolated,
    write_text_columns,
)
from comorb.records.sources.text_files import check_unique_columns

KINDS = {
    "sas7bdat": ("SAS", "read_sas7bdat"),
    "xport": ("SAS", "read_xport"),
    "sav": ("SPSS", "read_sav"),
    "por": ("SPSS", "read_por"),
    "dta": ("Stata", "read_dta"),
}
_BATCH_CELLS = 1 << 21
# A transport file is made of records of this size and doesn't say how many.
_XPORT_RECORD = 80
# More labels than this are a list of codes, not names of categories.
_MAX_LABELS = 50
_PADDED = re.compile(r"(?:N|Z|%0)(\d+)(?:\.0?f?)?")
_PERIOD = re.compile(r"%t[wmqh]")
_NO_WORD = re.compile(
    r"\s*(no|not|absent|never|false|none|nein|non|não|nao|nee|keine)\b", re.IGNORECASE
)


def open_statistics(source: OpenedSource, file: Path, kind: str) -> SourceTable:
    """Open a file of SAS, SPSS or Stata; every value is text, and days are days."""
    program, _ = KINDS[kind]
    if find_spec("pyreadstat") is None:
        raise RecordsError("install.statistics", file=file.name, program=program)
    copy = source.new_copy("statistics")
    damaged = _refusal(file.name, program, Message("statistics.cut_off"))
    if kind == "xport" and file.stat().st_size % _XPORT_RECORD:
        raise RecordsError(damaged)
    answer = run_isolated(read_statistics, damaged, str(file), kind, str(copy))
    source.note(*answer["notes"])
    source.numbers |= set(answer["numbers"])
    return register_table(source, file.name, read_text_columns(copy))


def read_statistics(file: str, kind: str, out: str) -> Answer:
    """Write the values of a file as text; return notes and the columns of numbers."""
    import pyreadstat

    program, reader = KINDS[kind]
    name = Path(file).name
    read = partial(getattr(pyreadstat, reader), file, output_format="dict")
    try:
        try:
            return _write_values(name, read, out)
        except UnicodeDecodeError:
            answer = _write_values(name, partial(read, encoding="WINDOWS-1252"), out)
            answer.get("notes", []).append(Message("note.wrong_encoding", name=name))
            return answer
    except MemoryError:
        return {"refusal": _refusal(name, program, Message("statistics.memory"))}
    except RecordsError as error:
        return {"refusal": error.message}
    except Exception:
        return {"refusal": _refusal(name, program, Message("statistics.cut_off"))}


def _refusal(name: str, program: str, what: str) -> str:
    return Message("statistics.damaged", name=name, program=program, what=what)


def _write_values(file: str, read: Callable[..., Any], out: str) -> Answer:
    _, description = read(metadataonly=True)
    names = list(description.column_names)
    if not names:
        raise RecordsError("file.no_columns", file=file)
    check_unique_columns(file, names)
    check_columns(file, len(names))
    columns = [_Column(name, description) for name in names]
    rows = max(1000, _BATCH_CELLS // len(names))
    counts: list[int] = []

    def parts() -> Iterator[list[list[str | None]]]:
        while not counts or counts[-1] == rows:
            values, _ = read(row_limit=rows, row_offset=sum(counts))
            counts.append(len(values[names[0]]))
            check_rows(file, sum(counts))
            yield [list(map(column.text, values[column.name])) for column in columns]

    write_text_columns(out, names, parts(), file)
    if not sum(counts):
        raise RecordsError("file.only_header", file=file)
    if (stated := description.number_rows) not in (None, -1, sum(counts)):
        raise RecordsError("file.row_count", file=file, stated=stated, n=sum(counts))
    return {
        "notes": [note for column in columns for note in column.notes(file)],
        "numbers": [column.name for column in columns if column.is_number],
    }


class _Column:
    """How the values of a column are written as text."""

    def __init__(self, name: str, description: Any) -> None:
        every = dict(description.variable_value_labels.get(name) or {})
        self.name = name
        self.storage = description.readstat_variable_types.get(name) or ""
        self.format = description.original_variable_types.get(name) or ""
        self.padded = _PADDED.fullmatch(self.format)
        # Labels name categories, unless they are of codes, or of 0 and 1 as no and yes.
        coded = self.storage == "string" and any(len(str(value)) > 2 for value in every)
        flags = _NO_WORD.match(every.get(0, "")) and set(every) <= {0, 1}
        self.labels = {} if coded or flags or len(every) > _MAX_LABELS else every
        self.unused = len(every) - len(self.labels)
        self.is_number = self.storage != "string" and not self.labels and not self.padded

    def notes(self, file: str) -> list[Message]:
        notes = []
        if self.unused > _MAX_LABELS:
            notes.append(Message("note.many_labels", file=file, name=self.name, limit=self.unused))
        if _PERIOD.match(self.format):
            notes.append(Message("note.since_1960", file=file, name=self.name))
        return notes

    def text(self, value: Any) -> str | None:
        if value in self.labels:
            return self.labels[value].strip() or None
        if isinstance(value, str):
            return value.strip() or None
        return format_cell(value, self._number)

    def _number(self, value: float) -> str | None:
        text = format_number(value, 7 if self.storage == "float" else 15)
        return text.zfill(int(self.padded[1])) if text and self.padded else text
