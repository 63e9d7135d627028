"""Everyday words: what people call a diagnosis, in English, Spanish and Catalan, for searches."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache

from comorb.records.codes.systems import SYSTEMS
from comorb.records.codes.tables import own_rows, span

_FILE = "everyday_words.csv"
_Index = dict[str, list[tuple[str, ...]]]
_FAMILIES = {"icd9cm": "icd9", "icd10cm": "icd10", "icd10": "icd10"}


def folded(text: str) -> str:
    """Return a text as searches compare it: in small letters, without accents.

    >>> folded("Neumonía")
    'neumonia'
    """
    apart = unicodedata.normalize("NFD", text.lower().replace("·", "").replace("’", "'"))
    return "".join(sign for sign in apart if not unicodedata.combining(sign))


def everyday_words(
    codes: Sequence[str], names: Sequence[str], system: str
) -> tuple[tuple[str, ...], ...]:
    """Return what people call each code, folded: its own everyday words, or none.

    A code of the ICD is meant by how it begins, a group by the codes in it, and any other code by a
    title that says the first of the words. ``system`` is that of the codes, or several as in
    'icd10cm+icd9cm'.
    """
    keys = [key for word in system.split() for key in word.rpartition(":")[2].split("+")]
    known = tuple(key for key in keys if key in _FAMILIES)
    return tuple(
        _words(code.rpartition(":")[2], name, known)
        for code, name in zip(codes, names, strict=True)
    )


def _words(code: str, name: str, keys: tuple[str, ...]) -> tuple[str, ...]:
    starts, wholes = _index(keys)
    found = list(wholes.get(code, ()))
    if any(SYSTEMS[key].normalise(code).state == "ok" for key in keys):
        heads = (code[:length] for length in range(3, len(code) + 1))
        found += [words for head in heads for words in starts.get(head, ())]
    else:
        title = f" {folded(name)}"
        found += [one for one in _lines() if f" {one[0]}" in title]
    return tuple(dict.fromkeys(word for words in found for word in words))


@cache
def _lines() -> tuple[tuple[str, ...], ...]:
    """Return the words of each line of the table."""
    rows = own_rows(_FILE)
    return tuple(tuple(dict.fromkeys(map(folded, row["words"].split(";")))) for row in rows)


@cache
def _index(keys: tuple[str, ...]) -> tuple[_Index, _Index]:
    """Return the words by how codes of some systems begin, and by whole categories and groups."""
    starts: _Index = {}
    wholes: _Index = {}
    for row, words in zip(own_rows(_FILE), _lines(), strict=True):
        whole: set[str] = set()
        for key in keys:
            for part in row[_FAMILIES[key]].split():
                for stem in span(part) or [part]:
                    starts.setdefault(stem, []).append(words)
                    whole |= _above(stem, key)
        for one in whole:
            wholes.setdefault(one, []).append(words)
    return starts, wholes


def _above(stem: str, key: str) -> set[str]:
    """Return the category and the groups that a code is of."""
    system = SYSTEMS[key]
    return {system.category(stem), system.roll_up(stem, "group"), *system.shared(stem)} - {stem}
