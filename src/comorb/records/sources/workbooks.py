"""Spreadsheets (.xlsx, .xlsb, .xls, .ods): each sheet is a table, its cells as a person sees them.

A sheet is read into memory, in a process of its own.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial, reduce
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers.expat import ExpatError, ParserCreate

import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.records.sources.arrow import register_table
from comorb.records.sources.duck import OpenedSource, SourceTable
from comorb.records.sources.files import check_expanded
from comorb.records.sources.native import (
    Answer,
    format_cell,
    format_number,
    read_text_columns,
    run_isolated,
    write_text_columns,
)
from comorb.records.sources.text_files import read_column_names

ZeroFormats = dict[tuple[int, int], tuple[int, int]]
Attributes = dict[str, str]

_BUILT_IN = {"2": "0.00"}
_KEEPS_ZEROS = re.compile(r"(0+)(?:\.(0+))?")
_PLACE = re.compile(r"([A-Z]{1,3})(\d{1,7})")


def find_zero_formats(file: Path, sheet: str) -> ZeroFormats:
    """Return the digits before and after the point of the cells that are shown with zeros.

    Keys are row and column, both from 0. Files other than .xlsx give nothing.
    """
    try:
        with zipfile.ZipFile(file) as book:
            if not (styles := _read_styles(book)):
                return {}
            shown: ZeroFormats = {}

            def visit(name: str, attributes: Attributes) -> None:
                style = styles.get(attributes.get("s", "")) if name == "c" else None
                place = _PLACE.fullmatch(attributes.get("r", ""))
                if style and place and attributes.get("t", "n") == "n":
                    column = 0
                    for letter in place[1]:
                        column = 26 * column + ord(letter) - 64
                    shown[int(place[2]) - 1, column - 1] = style

            _visit_elements(book, _find_part(book, sheet), visit)
            return shown
    except (zipfile.BadZipFile, zlib.error, ExpatError, KeyError, ValueError, OSError, EOFError):
        return {}


def _visit_elements(
    book: zipfile.ZipFile, part: str, visit: Callable[[str, Attributes], None]
) -> None:
    """Call a function for each element of a part, with its name without prefix."""

    def start(name: str, attributes: Attributes) -> None:
        visit(name.rpartition(":")[2], attributes)

    def refuse(*_: object) -> NoReturn:
        raise ValueError("entities have no place in a workbook")

    parser = ParserCreate()
    parser.StartElementHandler = start
    parser.EntityDeclHandler = refuse
    with book.open(part) as stream:
        parser.ParseFile(stream)


def _read_styles(book: zipfile.ZipFile) -> dict[str, tuple[int, int]]:
    """Return the digits before and after the point of the styles that keep zeros."""
    own = dict(_BUILT_IN)
    lists: dict[str, list[str]] = {"cellStyleXfs": [], "cellXfs": []}
    current: list[str] = []

    def visit(name: str, attributes: Attributes) -> None:
        nonlocal current
        if name == "numFmt":
            own[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")
        elif name == "xf":
            current.append(attributes.get("numFmtId", "0"))
        else:
            current = lists.get(name, current)

    _visit_elements(book, "xl/styles.xml", visit)
    kept = {}
    for place, use in enumerate(lists["cellXfs"]):
        if (match := _KEEPS_ZEROS.fullmatch(own.get(use, ""))) and match[0] != "0":
            kept[str(place)] = (len(match[1]), len(match[2] or ""))
    return kept


def _find_part(book: zipfile.ZipFile, sheet: str) -> str:
    """Return the part of a workbook that is a sheet."""
    links: dict[str, str] = {}
    targets: dict[str, str] = {}

    def visit(name: str, attributes: Attributes) -> None:
        if name == "sheet":
            links[attributes["name"]] = attributes["r:id"]
        elif name == "Relationship":
            targets[attributes["Id"]] = attributes["Target"]

    _visit_elements(book, "xl/workbook.xml", visit)
    _visit_elements(book, "xl/_rels/workbook.xml.rels", visit)
    target = targets[links[sheet]]
    return target.lstrip("/") if target.startswith("/") else f"xl/{target}"


_BATCH_ROWS = 20_000


def add_sheets(source: OpenedSource, file: Path, stem: str | None = None) -> None:
    """Make each sheet of a workbook a table, named after the stem of its file if there is one."""
    if find_spec("python_calamine") is None:
        raise RecordsError("install.excel", file=file.name)
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as parts:
            check_expanded(file.name, sum(part.file_size for part in parts.infolist()))
    sheets = run_isolated(list_sheets, _damaged(file.name), str(file))["sheets"]
    if not sheets:
        raise RecordsError("workbook.no_sheet", file=file.name)
    for place, sheet in enumerate(sheets):
        name = sheet if stem is None else stem if not place else f"{stem}.{sheet}"
        source.openers[name] = partial(_open_sheet, source, file, sheet)
    if stem is None:
        note = Message("note.first_sheet", sheet=sheets[0], limit=len(sheets))
        source.default = (sheets[0], note if sheets[1:] else "")


def list_sheets(file: str) -> Answer:
    """Return the names of the sheets with cells, the hidden ones last."""

    def read() -> Answer:
        sheets = [
            each for each in _load(file).sheets_metadata if str(each.typ).endswith(".WorkSheet")
        ]
        sheets.sort(key=lambda each: not str(each.visible).endswith(".Visible"))
        return {"sheets": [each.name for each in sheets]}

    return _answer_or_refuse(Path(file).name, read)


def read_sheet(file: str, sheet: str, out: str) -> Answer:
    """Write the cells of a sheet as text, and return the last row with a number of each column.

    Numbers that are shown with all their zeros don't count.
    """
    name = Path(file).name

    def read() -> Answer:
        cells = _load(file).get_sheet_by_name(sheet).to_python(skip_empty_area=False)
        shown = find_zero_formats(Path(file), sheet)
        width = max(map(len, cells), default=0)
        last = [-1] * width

        def parts() -> Iterator[list[list[str | None]]]:
            for start in range(0, len(cells), _BATCH_ROWS):
                columns = list(zip(*cells[start : start + _BATCH_ROWS], strict=True))
                for c, column in enumerate(columns):
                    for row, cell in enumerate(column, start):
                        if _is_number(cell) and (row, c) not in shown:
                            last[c] = row
                yield [
                    [_format_cell(cell, shown.get((r, c))) for r, cell in enumerate(column, start)]
                    if shown
                    else list(map(format_cell, column))
                    for c, column in enumerate(columns)
                ]

        write_text_columns(out, [str(place) for place in range(width)], parts(), name)
        return {"numbers": last}

    return _answer_or_refuse(name, read)


def _load(file: str) -> Any:
    import python_calamine

    return python_calamine.CalamineWorkbook.from_path(file)


def _answer_or_refuse(name: str, action: Callable[[], Answer]) -> Answer:
    """Return the answer of the reader; what it raises, a panic of Rust too, becomes a refusal."""
    try:
        return action()
    except RecordsError as error:
        return {"refusal": error.message}
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        locked = type(error).__name__ == "PasswordError" or "password" in str(error).lower()
    message = Message("workbook.password", name=name)
    return {"refusal": message if locked else _damaged(name)}


def _damaged(name: str) -> str:
    return Message("workbook.damaged", name=name)


def _open_sheet(source: OpenedSource, file: Path, sheet: str) -> SourceTable:
    label = file.name
    if len(source.openers) > 1:
        label = Message("text.sheet", label=file.name, sheet=sheet)
    copy = source.new_copy("sheet")
    answer = run_isolated(read_sheet, _damaged(file.name), str(file), sheet, str(copy))
    cells = read_text_columns(copy)
    top = _header_row(cells)
    if top is None:
        others = [name for name in source.openers if name != sheet]
        other = Message("workbook.other_sheet", others=others[:12])
        instead = other if others else Message("workbook.export")
        raise RecordsError("workbook.empty", label=label, instead=instead)
    cells = cells.slice(top)
    used = [place for place, column in enumerate(cells.columns) if column.null_count < len(cells)]
    cells = cells.select(used)
    filled = cells.filter(reduce(pc.or_, map(pc.is_valid, cells.columns)))
    if len(filled) < 2:
        raise RecordsError("file.only_header", file=label)
    head = [[cell or "" for cell in row.values()] for row in filled.slice(0, 200).to_pylist()]
    names = read_column_names(label, head)
    if top:
        source.note(Message("note.above_header", label=label, n=top))
    source.numbers |= {
        name for name, place in zip(names, used, strict=True) if answer["numbers"][place] > top
    }
    return register_table(source, label, filled.slice(1).rename_columns(list(names)))


def _header_row(cells: pa.Table) -> int | None:
    """Return the row of the column names: the widest, if those above are at most half as wide."""
    rows = cells.slice(0, 50).to_pylist()
    widths = [sum(cell is not None for cell in row.values()) for row in rows]
    widest = max(widths, default=0)
    if not widest:
        return None
    place = widths.index(widest)
    if all(2 * width <= widest for width in widths[:place]):
        return place
    return next(place for place, width in enumerate(widths) if width)


def _is_number(cell: Any) -> bool:
    return type(cell) in (float, int)


def _format_cell(cell: Any, zeros: tuple[int, int] | None) -> str | None:
    if zeros is None or not _is_number(cell):
        return format_cell(cell)
    before, after = zeros
    whole, _, fraction = (format_number(round(cell, after)) or "").partition(".")
    sign, whole = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
    return f"{sign}{whole.zfill(before)}" + (f".{fraction.ljust(after, '0')}" if after else "")
