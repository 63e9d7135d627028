"""A map of one's own: from codes, or how they begin, to the groups that are the features."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from comorb.errors import RecordsError
from comorb.messages import Message, pack, unpack
from comorb.records.codes.system import CodingSystem
from comorb.records.codes.systems import coding_system, system_by_edition
from comorb.records.codes.tables import expand_span
from comorb.records.values import is_missing

_DELIMITERS = ",;\t|"
_WILDCARD = re.compile(r"(?P<head>.*?)[*%]+")
_PLACEHOLDER = re.compile(r"\.?X*[-.]*$")
_COLUMN_NAMES = {
    "code": r"((icd|source|concept|diagnosis|dx|diag|snomed|read|icpc|atc|from)[ _-]?)*"
    r"((9|10|11|2)[ _-]?(cm|who)?[ _-]?)?(codes?|prefix(es)?|values?)?",
    "system": r"((icd|code|coding)[ _-]?)?(system|version|vocabulary|edition|flag)([ _-]?id)?",
    "group": r"(group|phe_?code|category|condition|class|cluster|cohort|target|to|ltc|disease|ccsr?"
    r"|domain)([ _-]?(id|code|number|nr|no|category))?",
    "name": r"((group|phe_?code|category|condition|class|ccsr?([ _-]category)?)[ _-]?)?"
    r"(name|title|label|text|description|desc|string|phenotype)",
}


@dataclass(frozen=True)
class Line:
    """A line of a map: a code or a prefix of codes, its group, and its coding system.

    An ``open`` line ends in an asterisk, and applies even where another line is nearer.
    """

    code: str
    group: str
    system: str = ""
    open: bool = False


@dataclass(frozen=True)
class CodeMap:
    """A map from codes to groups, many to many, and the file it was read from with its hash.

    A line's code stands for itself and for all that begin with it and have no nearer line.
    ``names`` are those of the groups that have one, ``notes`` are for the ledger.
    """

    file: str
    digest: str
    lines: tuple[Line, ...]
    names: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the file."""
        return Path(self.file).name

    @cached_property
    def titles(self) -> dict[str, str]:
        """The name of each group, which is the group itself where the file has none."""
        return {line.group: line.group for line in self.lines} | dict(self.names)

    def index(self, system: CodingSystem) -> MapIndex:
        """Return the lines as they apply to the codes of a system."""
        near: dict[str, list[str]] = {}
        wide: dict[str, list[str]] = {}
        for line in self.lines:
            family = coding_system(line.system).family if line.system else ""
            if line.system in ("", system.key) or (family and family == system.family):
                code = _spell_code(line.code, system)
                (wide if line.open else near).setdefault(code, []).append(line.group)
        return MapIndex(near, wide, system.fit is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain lists and dictionaries, for JSON: it is whole in there."""
        lines = [[x.code, x.group, x.system, x.open] for x in self.lines]
        plain = {"file": self.file, "digest": self.digest, "lines": lines}
        return plain | {"names": [list(pair) for pair in self.names], "notes": pack(self.notes)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> CodeMap:
        """Return the map that ``to_dict`` made plain."""
        lines = tuple(Line(*line) for line in plain["lines"])
        names = tuple((group, name) for group, name in plain["names"])
        return cls(plain["file"], plain["digest"], lines, names, tuple(unpack(plain["notes"])))


@dataclass(frozen=True)
class MapIndex:
    """The lines of a map by code: ``near`` ones, of which the longest counts, and open ones."""

    near: Mapping[str, Sequence[str]]
    wide: Mapping[str, Sequence[str]]
    known: bool

    def groups(self, code: str) -> tuple[str, ...]:
        """Return the groups of a code, in the order of their names; none when it has no line."""
        nearest = next(iter(self._matching_prefixes(code)), "")
        found = [*self.near.get(nearest, ())]
        for head in _prefixes_in(code, self.wide):
            found += self.wide[head]
        return tuple(sorted(set(found)))

    def exact(self, raw: str) -> tuple[str, ...]:
        """Return the groups of a text that is no code of the system, but is in the map."""
        return tuple(sorted(set(self.near.get(raw.strip().upper().replace(".", ""), ()))))

    def is_covered(self, code: str) -> bool:
        """Return whether a line that isn't the nearest one has other groups for a code."""
        nearest, *others = [*self._matching_prefixes(code), ""]
        groups = set(self.near.get(nearest, ()))
        return any(not set(self.near[one]) <= groups for one in others if one)

    def _matching_prefixes(self, code: str) -> list[str]:
        """Return the lines of a code from the nearest on; a bare number begins no other code."""
        if not self.known and code.isdecimal():
            return [code] if code in self.near else []
        return _prefixes_in(code, self.near)


def read_map(path: str | Path) -> CodeMap:
    """Read a map from a text file with columns for code, group and perhaps name and system.

    They are separated by comma, semicolon, tab or bar. With a header, they are in any order and
    have names such as code, group, name, system; without one they are code, group and name.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RecordsError("map.unreadable", path=path, reason=error.strerror) from None
    rows = _parse_rows(path, content)
    places = _find_columns(path, rows[0])
    header = places.pop("header")
    lines: list[Line] = []
    names: dict[str, str] = {}
    skipped = 0
    for number, row in enumerate(rows[header:], header + 1):
        cells = {role: row[place].strip() for role, place in places.items()}
        if is_missing(cells["code"]) or is_missing(cells["group"]):
            skipped += 1
            continue
        lines += _parse_lines(path, number, cells)
        name = cells.get("name", "")
        if name and names.setdefault(cells["group"], name) != name:
            raise RecordsError("map.other_name", file=path.name, line=number)
    if not lines:
        raise RecordsError("map.no_line", file=path.name)
    note = Message("note.map_lines", n=skipped, file=path.name)
    return CodeMap(
        str(path),
        sha256(content).hexdigest()[:16],
        tuple(dict.fromkeys(lines)),
        tuple(names.items()),
        (note,) if skipped else (),
    )


def open_map(given: CodeMap | str | Path | None) -> CodeMap | None:
    """Return a map, or that of a file."""
    return read_map(given) if isinstance(given, (str, Path)) else given


def _parse_rows(path: Path, content: bytes) -> list[list[str]]:
    """Return the rows of the file, all of them as long as the first."""
    if b"\0" in content:
        raise RecordsError("map.no_text", file=path.name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    lines = [line for line in text.splitlines() if line.strip()]
    marks = [mark for mark in _DELIMITERS if lines and mark in lines[0]]
    mark = max(marks, key=lambda one: lines[0].count(one), default="")
    # Some published maps have apostrophes around their texts.
    quote = "'" if all(line.startswith("'") for line in lines) else '"'
    rows = list(csv.reader(lines, delimiter=mark, quotechar=quote)) if mark else [[]]
    if len(rows[0]) < 2:
        raise RecordsError("map.two_columns", file=path.name)
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            sizes = {"expected": len(rows[0]), "came": len(row)}
            raise RecordsError("map.columns", file=path.name, line=number, **sizes, mark=mark)
    return rows


def _find_columns(path: Path, first: Sequence[str]) -> dict[str, int]:
    """Return the column of each role, and whether the first row is a header."""
    plain = [re.sub(r"[^a-z0-9_ -]", "", cell.strip().lower()) for cell in first]
    places: dict[str, int] = {}
    for role, pattern in _COLUMN_NAMES.items():
        free = [i for i in range(len(plain)) if i not in places.values() and plain[i]]
        named = [i for i in free if re.fullmatch(pattern, plain[i])]
        if len(named) == 1 or (named and role in ("system", "name")):
            places[role] = named[0]
    if {"code", "group"} <= set(places):
        return {**places, "header": 1}
    if len(first) > 3:
        raise RecordsError("map.which_columns", file=path.name, n=len(first))
    return dict(zip(("code", "group", "name"), range(len(first)), strict=False)) | {"header": 0}


def _parse_lines(path: Path, number: int, cells: Mapping[str, str]) -> list[Line]:
    """Return the lines of a row: one, or one for each code of a span such as I20-I25."""
    system = system_by_edition(cells["system"]) if cells.get("system") else ""
    if system is None:
        raise RecordsError("map.system", file=path.name, line=number)
    wide = _WILDCARD.fullmatch(cells["code"])
    code = wide["head"] if wide else cells["code"]
    ends = code.replace(".", "").replace(" ", "").replace("–", "-").upper()
    codes = expand_span(ends) if "-" in ends.rstrip("-") else [code]
    if not codes or not all(codes):
        raise RecordsError("map.no_code", file=path.name, line=number)
    return [Line(one, cells["group"], system, wide is not None) for one in codes]


def _spell_code(code: str, system: CodingSystem) -> str:
    """Return how a system writes the code of a line; zeros lost from a dotted one are restored."""
    if system.fit is None:
        return code
    normal = system.normalise(code)
    if normal.state == "ok" or (normal.code and "." in code):
        return normal.code
    return _PLACEHOLDER.sub("", code.upper()).replace(".", "").replace(" ", "")


def _prefixes_in(code: str, table: Mapping[str, object]) -> list[str]:
    """Return how a code begins, from the longest on, where a table has it."""
    return [code[:n] for n in range(len(code), 0, -1) if code[:n] in table]
