"""Sheets: tables of figures as CSV, Excel, LaTeX or Stata files, which R reads too."""

from __future__ import annotations

import csv
import io
import re
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from html import escape
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
    name, and each other one a file beside it, such as table-codes.csv.
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
    """Return an .xlsx file: Office Open XML with one worksheet for each sheet.

    Each has its columns as wide as they need, its first row in bold and always in sight, and in
    print a head and a foot, in which &P is the page and &N how many there are.
    """
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    docs = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    numbers = range(1, len(sheets) + 1)
    named = "".join(
        f'<sheet name="{escape(name[:31])}" sheetId="{at}" r:id="rId{at}"/>'
        for at, name in zip(numbers, sheets, strict=True)
    )
    links = "".join(
        f'<Relationship Id="rId{at}" Type="{docs}/worksheet" Target="worksheets/sheet{at}.xml"/>'
        for at in numbers
    )
    links += f'<Relationship Id="rId0" Type="{docs}/styles" Target="styles.xml"/>'
    overrides = "".join(
        f'<Override PartName="/xl/worksheets/sheet{at}.xml" ContentType="{kind}.worksheet+xml"/>'
        for at in numbers
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{kind}.styles+xml"/>'
        f"{overrides}</Types>",
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" '
        f'Type="{docs}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{docs}"><sheets>{named}</sheets>'
        "</workbook>",
        "xl/styles.xml": f'<styleSheet xmlns="{main}">{_STYLES}</styleSheet>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">{links}'
        "</Relationships>",
    }
    for at, sheet in zip(numbers, sheets.values(), strict=True):
        lines = "".join(_line(row) for row in _rows(sheet))
        first = "".join(_cell(name, _BOLD) for name in sheet)
        parts[f"xl/worksheets/sheet{at}.xml"] = (
            f'<worksheet xmlns="{main}"><sheetPr><pageSetUpPr fitToPage="1"/></sheetPr>'
            '<sheetViews><sheetView workbookViewId="0">'
            '<pane ySplit="1" topLeftCell="A2" state="frozen"/></sheetView></sheetViews>'
            f"<cols>{_widths(sheet)}</cols><sheetData><row>{first}</row>{lines}</sheetData>"
            '<pageSetup paperSize="9" orientation="landscape" fitToHeight="0"/>'
            f"<headerFooter><oddHeader>{escape(head)}</oddHeader>"
            f"<oddFooter>{escape(foot)}</oddFooter></headerFooter></worksheet>"
        )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            whole = f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>{text}'
            archive.writestr(zipfile.ZipInfo(name, DAY), whole.encode("utf-8"))
    return packed.getvalue()


_PLAIN, _BOLD, _PERCENT, _QUOTED, _WRAPPED = range(5)  # the styles of cells, as places below
_STYLES = (
    '<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>'
    '<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill></fills>'
    '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf/></cellStyleXfs>'
    '<cellXfs count="5"><xf/><xf fontId="1" applyFont="1"/>'
    '<xf numFmtId="10" applyNumberFormat="1"/><xf quotePrefix="1"/>'
    '<xf applyAlignment="1"><alignment vertical="top" wrapText="1"/></xf></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles>'
)
_WIDEST = 90  # characters of a column; longer texts go on below


def _widths(sheet: Sheet) -> str:
    """Return how wide the columns are, by what they hold."""
    widths = [
        min(
            max(len(str(cell)) if isinstance(cell, str) else 9 for cell in (name, *column)), _WIDEST
        )
        for name, column in sheet.items()
    ]
    return "".join(
        f'<col min="{at}" max="{at}" width="{width + 2}" customWidth="1"/>'
        for at, width in enumerate(widths, 1)
    )


def _line(row: Sequence[Cell]) -> str:
    """Return a row, as high as its longest text needs."""
    lines = max(-(-len(cell) // _WIDEST) if isinstance(cell, str) else 1 for cell in row)
    high = f' ht="{15 * lines}" customHeight="1"' if lines > 1 else ""
    return f"<row{high}>{''.join(map(_cell, row))}</row>"


def _cell(cell: Cell, style: int = _PLAIN) -> str:
    """Return a cell; a text is never a formula, also when it is edited or saved as another file."""
    if cell is None:
        return "<c/>"
    if isinstance(cell, str):
        plain = "".join(one for one in cell if one >= " ")
        style = style or (_QUOTED if _FORMULA.match(plain) else _PLAIN)
        style = style or (_WRAPPED if len(plain) > _WIDEST else _PLAIN)
        text = f'<is><t xml:space="preserve">{escape(plain)}</t></is>'
        return f'<c s="{style}" t="inlineStr">{text}</c>'
    return f'<c s="{_PERCENT if isinstance(cell, Share) else _PLAIN}"><v>{cell!r}</v></c>'


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
