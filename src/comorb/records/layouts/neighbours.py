"""Neighbours: what the columns beside the codes say of them: edition, record, kind and meaning.

Each is told by some rows of a table; the cells of a column are texts, or None where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from comorb.records.codes.systems import PROCEDURES, coding_system, edition
from comorb.records.layouts.names import DESCRIPTION, DIAGNOSIS, ROLES, first_match, named, plain
from comorb.records.values import yes_no

Cells = Mapping[str, Sequence[str | None]]

_KEY = re.compile(r"(?!\d{4}-\d\d-\d\d|\d\d?/\d\d?/\d{2,4}|\d+\.\d)[\w./#:-]{1,64}")
_PLACE = re.compile(r"zip\w*|plz|post\w*|cp|cap|code_postal|codigo_postal|codi_postal|municip\w*")
_IS_DIAGNOSIS = re.compile(
    r"(is_)?(dx|diag|diagnos(is|e|i|tic|tico))(_?(flag|ind\w*|yn|code|row))?"
)
_IS_PROCEDURE = re.compile(r"(is_)?(px|proc|procedure|prozedur)(_?(flag|ind\w*|yn|code|row))?")
_UNIQUE = 0.95
_KIND = re.compile(
    r"((code|record|item|entry|row|event|icd|tipo|tipus|type)_?)?(de_)?"
    r"(type|kind|class|typ|tipo|tipus|art|soort|domain|code|codigo|codi)"
)
_DIAGNOSES = re.compile(r"(\w+_)?(d|dx|diag\w*|\w*diagnos\w*|conditions?)(_\w+)?")
_OTHERS = re.compile(
    r"(\w+_)?(p|px|pr|proc\w*|prozedur\w*|ops|interven\w*|operat\w*|verrichting\w*|acte|drugs?|rx|"
    r"medic\w*|cpt\w*|hcpcs|labs?|drg)(_\w+)?"
)


def version_column(cells: Cells, free: Sequence[str], codes: Sequence[str]) -> str | None:
    """Return the column that says of each code which edition it is of.

    It is called so, or holds two editions and nothing else, of which the codes beside it are.
    """
    said = {name: [edition(text) for text in cells[name] if text] for name in free}
    editions = [name for name, keys in said.items() if sum(map(bool, keys)) > 0.5 * len(keys)]
    if called := first_match(editions, ROLES["version"]):
        return called
    both = [name for name in editions if None not in said[name] and len(set(said[name])) == 2]
    return next((name for name in both if _are_of_editions(cells, name, codes)), None)


def _are_of_editions(cells: Cells, name: str, codes: Sequence[str]) -> bool:
    pairs = [
        (edition(text) or "", code)
        for column in codes
        for text, code in zip(cells[name], cells[column], strict=False)
        if text and code
    ]
    fitting = sum(
        any(coding_system(one).normalise(code).code for one in (key, PROCEDURES.get(key, key)))
        for key, code in pairs
    )
    return fitting > 0.8 * len(pairs)


def repeating_id(cells: Cells, free: Sequence[str]) -> str | None:
    """Return the column whose values repeat as the ids of records do that have several rows.

    The rows of a record stand together; where they don't, no more than a few share an id, which
    isn't as short as a number of days. Of several such columns, the finest is taken.
    """
    finest: tuple[bool, int, str] | None = None
    for name in _like_ids(cells, free):
        values, rows = cells[name], len(cells[name])
        different = len(set(values))
        if not 0.02 * rows < different < _UNIQUE * rows:
            continue
        together = 1 + sum(one != two for one, two in pairwise(values)) <= 1.02 * different
        if not together and (different < 0.2 * rows or _is_short(values)):
            continue
        if finest is None or (together, different) > finest[:2]:
            finest = (together, different, name)
    return finest[2] if finest else None


def unique_ids(cells: Cells, free: Sequence[str]) -> list[str]:
    """Return the columns that look like ids and hardly repeat in these rows: others may do so."""
    return [
        name
        for name in _like_ids(cells, free)
        if len(set(cells[name])) >= _UNIQUE * len(cells[name]) and not _is_short(cells[name])
    ]


def _like_ids(cells: Cells, free: Sequence[str]) -> list[str]:
    return [
        name
        for name in free
        if all(text and _KEY.fullmatch(text) for text in cells[name])
        and not _PLACE.fullmatch(plain(name))
    ]


def _is_short(values: Sequence[str | None]) -> bool:
    return min((len(text or "") for text in values), default=0) < 4


def kind_column(cells: Cells, free: Sequence[str]) -> tuple[str, Callable[[str], bool]] | None:
    """Return the column that says of each code whether it is a diagnosis, and what tells that."""
    for name in free:
        values = [text for text in cells[name] if text]
        called = plain(name)
        if values and all(yes_no(text) is not None for text in values):
            if _IS_DIAGNOSIS.fullmatch(called):
                return name, lambda text: yes_no(text) is True
            if _IS_PROCEDURE.fullmatch(called):
                return name, lambda text: yes_no(text) is False
        elif values and _KIND.fullmatch(called) and all(map(_is_kind, values)):
            return name, lambda text: _DIAGNOSES.fullmatch(plain(text)) is not None
    return None


def _is_kind(text: str) -> bool:
    return bool(_DIAGNOSES.fullmatch(plain(text)) or _OTHERS.fullmatch(plain(text)))


def description_column(cells: Cells, free: Sequence[str], code: str) -> str | None:
    """Return the column that says in words what the code beside it means.

    It is called a description, and a code has the same one almost everywhere.
    """
    called = named(free, DESCRIPTION)
    surest = named(called, DIAGNOSIS)
    for name in (*surest, *(one for one in called if one not in surest)):
        pairs = [pair for pair in zip(cells[code], cells[name], strict=False) if all(pair)]
        worded = sum(bool(re.search(r"[^\W\d_]{3}", text or "")) for _, text in pairs)
        codes = len({one for one, _ in pairs})
        if pairs and worded > 0.8 * len(pairs) and len(set(pairs)) <= 1.2 * codes:
            return name
    return None
