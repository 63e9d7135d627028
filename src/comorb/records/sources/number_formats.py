"""Number formats of spreadsheets: 250.1 shown as '250.10' was meant as 250.10, and 38 as '038'.

Only formats that keep zeros matter ('0.00', '00000'); a workbook without one is not looked into.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn
from xml.parsers.expat import ExpatError, ParserCreate

Shown = dict[tuple[int, int], tuple[int, int]]
Attributes = dict[str, str]

_BUILT_IN = {"2": "0.00"}
_KEEPS_ZEROS = re.compile(r"(0+)(?:\.(0+))?")
_PLACE = re.compile(r"([A-Z]{1,3})(\d{1,7})")


def shown_zeros(file: Path, sheet: str) -> Shown:
    """Return the digits before and after the point of the cells that are shown with zeros.

    Cells go by row and column, both from 0. Nothing is known of files other than .xlsx.
    """
    try:
        with zipfile.ZipFile(file) as book:
            styles = _styles(book)
            return _cells(book, _part_of(book, sheet), styles) if styles else {}
    except (zipfile.BadZipFile, zlib.error, ExpatError, KeyError, ValueError, OSError, EOFError):
        return {}


def _walk(book: zipfile.ZipFile, part: str, visit: Callable[[str, Attributes], None]) -> None:
    """Visit the elements of a part of a workbook, without the prefix of their names."""

    def start(name: str, attributes: Attributes) -> None:
        visit(name.rpartition(":")[2], attributes)

    def refuse(*_: object) -> NoReturn:
        raise ValueError("entities have no place in a workbook")

    parser = ParserCreate()
    parser.StartElementHandler = start
    parser.EntityDeclHandler = refuse
    with book.open(part) as stream:
        parser.ParseFile(stream)


def _styles(book: zipfile.ZipFile) -> dict[str, tuple[int, int]]:
    """Return the digits that each style keeps, for the styles that keep zeros."""
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

    _walk(book, "xl/styles.xml", visit)
    kept = {}
    for place, use in enumerate(lists["cellXfs"]):
        if (match := _KEEPS_ZEROS.fullmatch(own.get(use, ""))) and match[0] != "0":
            kept[str(place)] = (len(match[1]), len(match[2] or ""))
    return kept


def _part_of(book: zipfile.ZipFile, sheet: str) -> str:
    """Return the part of a workbook that holds a sheet."""
    links: dict[str, str] = {}
    targets: dict[str, str] = {}

    def visit(name: str, attributes: Attributes) -> None:
        if name == "sheet":
            links[attributes["name"]] = attributes["r:id"]
        elif name == "Relationship":
            targets[attributes["Id"]] = attributes["Target"]

    _walk(book, "xl/workbook.xml", visit)
    _walk(book, "xl/_rels/workbook.xml.rels", visit)
    target = targets[links[sheet]]
    return target.lstrip("/") if target.startswith("/") else f"xl/{target}"


def _cells(book: zipfile.ZipFile, part: str, styles: dict[str, tuple[int, int]]) -> Shown:
    shown: Shown = {}

    def visit(name: str, attributes: Attributes) -> None:
        style = styles.get(attributes.get("s", "")) if name == "c" else None
        place = _PLACE.fullmatch(attributes.get("r", "")) if style is not None else None
        if place is not None and style is not None and attributes.get("t", "n") == "n":
            column = 0
            for letter in place[1]:
                column = 26 * column + ord(letter) - 64
            shown[int(place[2]) - 1, column - 1] = style

    _walk(book, part, visit)
    return shown
