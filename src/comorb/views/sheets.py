"""Sheets: tables of figures as CSV, Excel, LaTeX or Stata files, which R reads too."""

from __future__ import annotations

import csv
import io
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from comorb.storage import check_file, write_whole

Cell = str | float | int | None
Sheet = Mapping[str, Sequence[Cell]]  # columns of one length


class Share(float):
    """A share, which a workbook shows in percent."""


DAY = (1980, 1, 1, 0, 0, 0)  # of the files in a workbook: the same figures are the same bytes
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_TEX = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}"}
_TEX |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
_MISSING = struct.pack("<Q", 0x7FE0000000000000)  # of a number, for Stata


def save_sheets(sheets: Mapping[str, Sheet], path: str | Path, force: bool = False) -> list[Path]:
    """Write sheets, one at least, to a .csv, .xlsx, .tex or .dta file; return the files.

    A workbook and a LaTeX file hold all of them. Of CSV and Stata files the first sheet gets the
    name, and each other one a file of its own, such as table-codes.csv.
    """
    path = Path(path)
    kind = path.suffix.lower()
    check_file(path, tuple(_WRITERS), force)
    if kind in (".xlsx", ".tex"):
        parts = {path: dict(sheets)}
    else:
        first, *others = sheets
        parts = {path: {first: sheets[first]}}
        for name in others:
            parts[path.with_name(f"{path.stem}-{name}{path.suffix}")] = {name: sheets[name]}
    for file in parts:
        check_file(file, tuple(_WRITERS), force)
    for file, held in parts.items():
        with write_whole(file) as sink:
            sink.write(_WRITERS[kind](held))
    return list(parts)


def _rows(sheet: Sheet) -> list[tuple[Cell, ...]]:
    return list(zip(*sheet.values(), strict=True))


def _csv(sheets: Mapping[str, Sheet]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    for sheet in sheets.values():
        writer.writerow(list(sheet))
        writer.writerows([_plain(cell) for cell in row] for row in _rows(sheet))
    return text.getvalue().encode("utf-8")


def _plain(cell: Cell) -> Cell:
    """Return a cell of a text file; an apostrophe goes before what would be a formula."""
    if isinstance(cell, str) and _FORMULA.match(cell):
        return f"'{cell}"
    return "" if cell is None else cell


def workbook(sheets: Mapping[str, Sheet], head: str = "", foot: str = "") -> bytes:
    """Return an .xlsx file with one worksheet for each sheet: the same bytes for the same sheets.

    Each has its columns as wide as they need, its first row in bold and always in sight, and in
    print a head and a foot, in which &P is the page and &N how many there are.
    """
    from xlsxwriter import Workbook

    packed = io.BytesIO()
    with Workbook(packed, {"in_memory": True}) as book:
        book.set_properties({"created": datetime(*DAY)})
        bold, percent = book.add_format({"bold": True}), book.add_format({"num_format": 10})
        # A text is never a formula, also when it is edited or saved as another file.
        quoted = book.add_format({"quote_prefix": True})
        wrapped = book.add_format({"text_wrap": True, "valign": "top"})
        for title, sheet in sheets.items():
            page = book.add_worksheet(title[:31])
            for at, (name, column) in enumerate(sheet.items()):
                widths = [len(cell) if isinstance(cell, str) else 9 for cell in (name, *column)]
                page.set_column(at, at, min(max(widths), _WIDEST) + 2)
                page.write_string(0, at, name, bold)
                for row, cell in enumerate(column, 1):
                    if isinstance(cell, str):
                        long = wrapped if len(cell) > _WIDEST else None
                        style = quoted if _FORMULA.match(cell) else long
                        page.write_string(row, at, _without_markup(cell), style)
                    elif cell is not None:
                        style = percent if isinstance(cell, Share) else None
                        page.write_number(row, at, cell, style)
            page.freeze_panes(1, 0)
            page.set_landscape()
            page.set_paper(9)  # A4
            page.fit_to_pages(1, 0)
            page.set_header(head)
            page.set_footer(foot)
    return packed.getvalue()


_WIDEST = 90  # characters of a column; longer texts go on below


def _without_markup(text: str) -> str:
    """Return a text without control characters; XlsxWriter would copy <r>…</r> as XML."""
    plain = "".join(one for one in text if one >= " ")
    return f"{plain} " if plain.endswith("</r>") else plain


def _latex(sheets: Mapping[str, Sheet]) -> bytes:
    """Return a booktabs table for each sheet, numbers with four digits at most."""
    parts = []
    for name, sheet in sheets.items():
        texts = [any(isinstance(cell, str) for cell in column) for column in sheet.values()]
        columns = "".join("l" if text else "r" for text in texts)
        lines = [" & ".join(map(_tex, row)) + r" \\" for row in [tuple(sheet), *_rows(sheet)]]
        parts += [f"% {name}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0]]
        parts += [r"\midrule", *lines[1:], r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join(parts).encode("utf-8")


def _tex(cell: Cell) -> str:
    if cell is None:
        return "--"
    if isinstance(cell, str):
        return "".join(_TEX.get(one, one) for one in cell)
    if isinstance(cell, int) or float(cell).is_integer():
        return f"{cell:.0f}".replace("-", "$-$")
    return (f"{cell:.4f}" if abs(cell) < 10 else f"{cell:.2f}").replace("-", "$-$")


def _stata(sheets: Mapping[str, Sheet]) -> bytes:
    """Return the one sheet as a .dta file of release 114, which Stata 10 and R read."""
    (sheet,) = sheets.values()
    texts = [any(isinstance(cell, str) for cell in column) for column in sheet.values()]
    widths = [
        min(max((len(_ascii(cell)) for cell in column if isinstance(cell, str)), default=1), 244)
        for column in sheet.values()
    ]
    rows = _rows(sheet)
    head = struct.pack("<BBBBhi", 114, 2, 1, 0, len(sheet), len(rows)) + bytes(81 + 18)
    kinds = bytes(max(w, 1) if text else 255 for text, w in zip(texts, widths, strict=True))
    names = b"".join(_ascii(re.sub(r"\W", "_", name))[:32].ljust(33, b"\0") for name in sheet)
    formats = b"".join(
        (f"%{max(w, 1)}s".encode() if text else b"%10.0g").ljust(49, b"\0")
        for text, w in zip(texts, widths, strict=True)
    )
    labels = bytes(33 * len(sheet)) + b"".join(_ascii(name)[:80].ljust(81, b"\0") for name in sheet)
    data = b"".join(
        _ascii(cell if isinstance(cell, str) else "")[:w].ljust(max(w, 1), b"\0")
        if text
        else _MISSING
        if cell is None or isinstance(cell, str)
        else struct.pack("<d", cell)
        for row in rows
        for cell, text, w in zip(row, texts, widths, strict=True)
    )
    return head + kinds + names + bytes(2 * (len(sheet) + 1)) + formats + labels + bytes(5) + data


def _ascii(text: str) -> bytes:
    return text.encode("ascii", "replace")


_WRITERS: dict[str, Callable[[Mapping[str, Sheet]], bytes]] = {
    ".csv": _csv,
    ".xlsx": workbook,
    ".tex": _latex,
    ".dta": _stata,
}
