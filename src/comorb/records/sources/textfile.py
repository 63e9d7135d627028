"""Text files as tables: every column is text, read strictly in the dialect that was found."""

from __future__ import annotations

from pathlib import Path

from comorb.records.sources.dialect import dialect_of
from comorb.records.sources.duck import OpenedSource, SourceTable, literal, quoted
from comorb.records.sources.writing import look_through, rewrite


def open_text(source: OpenedSource, file: Path) -> SourceTable:
    """Open a text file; what DuckDB can't read as it is written is copied first."""
    label = file.name
    writing = look_through(file)
    if writing.encoding in ("latin-1", "windows-1252"):
        source.note(
            f"{label} isn't in UTF-8 and was read as Windows-1252: letters beyond A to Z are "
            "wrong if it was written in another encoding"
        )
    if writing.needs_copy:
        copy = source.copies() / f"text_{len(list(source.copies().iterdir()))}"
        rewrite(file, writing, copy)
        file, writing = copy, look_through(copy, label)
    dialect = dialect_of(label, writing)
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in dialect.columns)
    skip = f"skip = {dialect.skip}, " if dialect.skip else ""
    read = (
        f"read_csv({literal(str(file))}, columns = {{{columns}}}, "
        f"delim = {literal(dialect.delimiter)}, quote = '\"', escape = '\"', header = true, {skip}"
        f"encoding = {literal(dialect.encoding)}, compression = {literal(dialect.compression)}, "
        "auto_detect = false, strict_mode = true)"
    )
    if not dialect.formulas:
        types = dict.fromkeys(dialect.columns, "VARCHAR")
        return SourceTable(label, read, types, text=True, counted=True)
    cells = ", ".join(
        f"regexp_replace({quoted(name)}, '^=\"(.*)\"$', '\\1') AS {quoted(name)}"
        for name in dialect.columns
    )
    return source.view(label, f"SELECT {cells} FROM {read}", text=True)
