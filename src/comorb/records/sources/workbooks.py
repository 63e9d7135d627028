"""Spreadsheets (.xlsx, .xlsb, .xls, .ods): each sheet is a table, its cells as a person sees them.

A sheet is held in memory while it is read, in a process of its own.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import RecordsError, not_installed
from comorb.records.sources.apart import Answer, read_text_columns, run_apart, write_text_columns
from comorb.records.sources.cells import cell_text, number_text
from comorb.records.sources.dialect import column_names
from comorb.records.sources.duck import OpenedSource, SourceTable
from comorb.records.sources.frames import register_table
from comorb.records.sources.limits import check_expanded
from comorb.records.sources.number_formats import Shown, shown_zeros

_ROWS = 20_000


def add_sheets(source: OpenedSource, file: Path, stem: str | None = None) -> None:
    """Make each sheet of a workbook a table; beside other files they are named after theirs."""
    if find_spec("python_calamine") is None:
        what = f"{file.name} is a spreadsheet, and its reader"
        raise RecordsError(not_installed(what, "excel", ", or save the sheet as CSV."))
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as parts:
            check_expanded(file.name, sum(part.file_size for part in parts.infolist()))
    sheets = run_apart(list_sheets, _damaged(file.name), str(file))["sheets"]
    if not sheets:
        raise RecordsError(f"{file.name} holds no sheet with cells; export it again.")
    for place, sheet in enumerate(sheets):
        name = sheet if stem is None else stem if not place else f"{stem}.{sheet}"
        source.openers[name] = partial(_open_sheet, source, file, sheet)
    if stem is None:
        note = f"the sheet {sheets[0]!r} was read, the first of {len(sheets)}; the others weren't"
        source.usual = (sheets[0], note if sheets[1:] else "")


def list_sheets(file: str) -> Answer:
    """Return the names of the sheets with cells, the hidden ones last."""

    def read() -> Answer:
        every = sorted(
            _load(file).sheets_metadata, key=lambda each: not _is(each.visible, "Visible")
        )
        return {"sheets": [each.name for each in every if _is(each.typ, "WorkSheet")]}

    return _answered(Path(file).name, read)


def read_sheet(file: str, sheet: str, out: str) -> Answer:
    """Write the cells of a sheet as text, and return where each column last held a number.

    Numbers that are shown with all their zeros don't count.
    """
    name = Path(file).name

    def read() -> Answer:
        cells = _load(file).get_sheet_by_name(sheet).to_python(skip_empty_area=False)
        shown = shown_zeros(Path(file), sheet)
        width = max(map(len, cells), default=0)
        last = [-1] * width

        def parts() -> Iterator[list[list[str | None]]]:
            for start in range(0, len(cells), _ROWS):
                columns = list(zip(*cells[start : start + _ROWS], strict=True))
                for c, column in enumerate(columns):
                    numbers = [row for row, cell in enumerate(column, start) if _is_number(cell)]
                    last[c] = max(
                        (row for row in numbers if (row, c) not in shown), default=last[c]
                    )
                yield [_texts(column, start, c, shown) for c, column in enumerate(columns)]

        write_text_columns(out, [str(place) for place in range(width)], parts(), name)
        return {"numbers": last}

    return _answered(name, read)


def _load(file: str) -> Any:
    import python_calamine

    return python_calamine.CalamineWorkbook.from_path(file)


def _is(kind: object, name: str) -> bool:
    return str(kind).endswith(f".{name}")


def _answered(name: str, action: Callable[[], Answer]) -> Answer:
    """Return the answer of the reader; whatever it raises, a panic too, becomes a refusal."""
    try:
        return action()
    except RecordsError as error:
        return {"refusal": str(error)}
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        locked = type(error).__name__ == "PasswordError" or "password" in str(error).lower()
    message = f"{name} is protected by a password; save it without one."
    return {"refusal": message if locked else _damaged(name)}


def _damaged(name: str) -> str:
    return (
        f"{name} is a damaged spreadsheet or none at all; open and save it again, or save the "
        "sheet as CSV."
    )


def _open_sheet(source: OpenedSource, file: Path, sheet: str) -> SourceTable:
    label = file.name if len(source.openers) == 1 else f"{file.name}, sheet {sheet}"
    copy = source.copies() / f"sheet_{len(list(source.copies().iterdir()))}"
    answer = run_apart(read_sheet, _damaged(file.name), str(file), sheet, str(copy))
    cells = read_text_columns(copy)
    top = _header_row(cells)
    if top is None:
        others = [name for name in source.openers if name != sheet]
        instead = f"name another sheet: {', '.join(others[:12])}" if others else "export it again"
        raise RecordsError(f"{label} is empty; {instead}.")
    cells = cells.slice(top)
    used = [place for place, column in enumerate(cells.columns) if column.null_count < len(cells)]
    cells = cells.select(used)
    filled = _without_blank_rows(cells)
    if len(filled) < 2:
        raise RecordsError(f"{label} holds a header and no rows; export it again.")
    head = [[cell or "" for cell in row.values()] for row in filled.slice(0, 200).to_pylist()]
    names = column_names(label, head)
    if top:
        source.note(f"{label}: {top:,} rows above the header were left out")
    source.numbers |= {
        name for name, place in zip(names, used, strict=True) if answer["numbers"][place] > top
    }
    return register_table(source, label, filled.slice(1).rename_columns(list(names)))


def _header_row(cells: pa.Table) -> int | None:
    """Return the row of the column names: the widest, if what stands above is half as wide."""
    rows = cells.slice(0, 50).to_pylist()
    widths = [sum(cell is not None for cell in row.values()) for row in rows]
    widest = max(widths, default=0)
    if not widest:
        return None
    place = widths.index(widest)
    if all(2 * width <= widest for width in widths[:place]):
        return place
    return next(place for place, width in enumerate(widths) if width)


def _without_blank_rows(cells: pa.Table) -> pa.Table:
    filled = pc.is_valid(cells.column(0))
    for column in cells.columns[1:]:
        filled = pc.or_(filled, pc.is_valid(column))
    return cells.filter(filled)


def _is_number(cell: Any) -> bool:
    return type(cell) in (float, int)


def _texts(cells: Sequence[Any], start: int, column: int, shown: Shown) -> list[str | None]:
    """Return the cells of a column, from a row on, as a person sees them."""
    if not shown:
        return [cell_text(cell) for cell in cells]
    return [_cell(cell, shown.get((row, column))) for row, cell in enumerate(cells, start)]


def _cell(cell: Any, zeros: tuple[int, int] | None) -> str | None:
    if zeros is None or not _is_number(cell):
        return cell_text(cell)
    before, after = zeros
    whole, _, fraction = (number_text(round(cell, after)) or "").partition(".")
    sign, whole = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
    return f"{sign}{whole.zfill(before)}" + (f".{fraction.ljust(after, '0')}" if after else "")
