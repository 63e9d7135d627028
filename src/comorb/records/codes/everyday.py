"""Everyday words: what people call a diagnosis, in English, Spanish and Catalan, for searches."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache

from comorb.records.codes.systems import SYSTEMS
from comorb.records.codes.tables import own_rows, span

_FILE = "everyday_words.csv"
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

    A code is meant by how it begins, by the group that it is, or by a title that says the first of
    the words. ``system`` is that of the codes, or several as in 'icd10cm+icd9cm'.
    """
    keys = [key for word in system.split() for key in word.rpartition(":")[2].split("+")]
    return tuple(
        tuple(
            word
            for words, stems in _table(tuple(keys))
            if _is_meant(code, folded(name), words[0], stems)
            for word in words
        )
        for code, name in zip(codes, names, strict=True)
    )


def _is_meant(code: str, title: str, first: str, stems: frozenset[str]) -> bool:
    own = code.rpartition(":")[2]
    known = own in stems or f" {first}" in f" {title}"
    return known or (own[:2] < own[:1] + "A" and any(own[:n] in stems for n in range(3, len(own))))


@cache
def _table(keys: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], frozenset[str]], ...]:
    """Return the words of each line, with the codes, categories and groups of some systems."""
    lines = []
    for row in own_rows(_FILE):
        words = tuple(dict.fromkeys(folded(word) for word in row["words"].split(";")))
        stems: set[str] = set()
        for key in keys:
            if key in _FAMILIES:
                for part in row[_FAMILIES[key]].split():
                    for stem in span(part) or [part]:
                        stems |= _with_groups(stem, key)
        lines.append((words, frozenset(stems)))
    return tuple(lines)


def _with_groups(stem: str, key: str) -> set[str]:
    """Return a code, its category, and the groups that it is of."""
    system = SYSTEMS[key]
    groups = {system.roll_up(stem, "group"), *system.shared(stem)}
    return {stem, *groups} | ({system.category(stem)} if len(stem) > 3 else set())
