"""The coding system: the form, groups, chapters and titles of its codes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeVar

from comorb.errors import RecordsError
from comorb.records.values import is_missing

LEVELS = ("category", "full", "group", "chapter", "common")

T = TypeVar("T")

_PADDING = re.compile(r"""^[\s'"\u200b\ufeff]+|[\s'"\u200b\ufeff]+$""")
_MARKS = re.compile(r"[\s.+*!#†‡–_-]+$")
_ZEROS = re.compile(r"0{4,}")  # no system has such a code: it fills a field of fixed width
_FLOAT = re.compile(r"[1-9][0-9]*\.0")
_DOTTED = re.compile(r"[0-9]+[.,][0-9]+")


class NormalisedCode(NamedTuple):
    """A code in its canonical form, and what had to be done to it.

    ``code`` is empty when ``state`` is 'missing' or 'malformed'; 'repaired' means that lost
    leading zeros were put back or that the '.0' of a number was taken off.
    """

    code: str
    state: Literal["ok", "repaired", "missing", "malformed"]


@dataclass(frozen=True, eq=False)
class CodingSystem:
    """A coding system: its key in files and options, its title, and what is known of its codes.

    ``fit`` gives the canonical form of a text in capitals and without marks, None if it is no code;
    a system without it takes codes as they are written. ``groups`` has the group of each code and
    of each prefix whose codes agree; ``describe`` gives the title of a code, or of its category;
    ``listed`` are the codes that a publication lists, of any year, without headings.

    ``kind`` is 'diagnosis', 'procedure', 'drug' or empty. Systems of a ``family`` have codes that
    look alike; without one, only procedures and drugs are recognised. ``claims`` says whether a
    canonical code may be of the family; ``is_likely`` whether the codes of a column, with their
    counts, are of this system rather than of the one before it. ``url`` is part of its URL in FHIR,
    ``edition`` is what a version column has, in letters and digits; codes of symptoms,
    circumstances and external causes begin as ``not_diseases``.

    ``common`` gives the groups that a code shares with other systems, ``chronic`` whether it is of
    a chronic condition, None when that isn't determined; ``restore_zeros`` gives the raw codes of a
    column that lost zeros, with them.
    """

    key: str
    title: str
    fit: Callable[[str], NormalisedCode | None] | None = None
    category: Callable[[str], str] = str
    chapters: Callable[[], Mapping[str, str]] = dict
    groups: Callable[[], Mapping[str, str | None]] = dict
    describe: Callable[[str], str | None] = str
    listed: Callable[[], Collection[str]] = tuple
    family: str = ""
    claims: Callable[[str], bool] = bool
    is_likely: Callable[[Mapping[str, int]], bool] = bool
    url: str = ""
    edition: re.Pattern[str] | None = None
    not_diseases: re.Pattern[str] | None = None
    kind: str = ""
    common: Callable[[str], tuple[str, ...]] | None = None
    chronic: Callable[[str], bool | None] | None = None
    restore_zeros: Callable[[Iterable[str]], Mapping[str, str]] | None = None

    def normalise(self, raw: str, floats: bool = False) -> NormalisedCode:
        """Return a code in its canonical form; with ``floats``, '250.0' is the number 250."""
        return self._normalised(raw, floats)  # one entry of the cache, however it was called

    def normalise_all(self, raws: Collection[str], floats: bool) -> dict[str, NormalisedCode]:
        """Return the canonical form of each code of a column, with the zeros that it lost."""
        mended = self.restore_zeros(raws) if self.restore_zeros else {}
        normal = {raw: self.normalise(mended.get(raw, raw), floats) for raw in raws}
        return normal | {raw: NormalisedCode(normal[raw].code, "repaired") for raw in mended}

    @lru_cache(maxsize=1 << 16)  # noqa: B019 - systems are there for good, and see a code three times
    def _normalised(self, raw: str, floats: bool) -> NormalisedCode:
        text = _PADDING.sub("", raw)
        if is_missing(text) or _ZEROS.fullmatch(text):
            return NormalisedCode("", "missing")
        is_float = floats and _FLOAT.fullmatch(text) is not None
        text = text.removesuffix(".0") if is_float else text
        found: NormalisedCode | None = NormalisedCode(text, "ok")
        if self.fit is not None:
            text = _MARKS.sub("", text.upper().replace(",", "."))
            found = self.fit(text) if text else NormalisedCode("", "missing")
        if found and found.code and is_float:
            return NormalisedCode(found.code, "repaired")
        return found or NormalisedCode("", "malformed")

    def group_of(self, code: str) -> str | None:
        """Return the group on which all subdivisions agree, or that of the nearest known parent."""
        return nearest_entry(self.groups(), code)

    def roll_up(self, code: str, level: str) -> str:
        """Roll a canonical code up to a level.

        A 'category' has 3 characters of the ICD, or 4 for ICD-9 E codes; a 'group' is such as
        'CCS108' or 'CIR019'; a 'chapter' is as '390-459' or 'I00-I99'; 'full' is the code. No two
        levels share a text with two meanings. What is no code is rolled up already, and stays.
        """
        if level not in LEVELS:
            raise RecordsError("codes.level", levels=LEVELS, level=level)
        if self.fit is None or level == "full" or self.fit(code) is None:
            return code
        category = self.category(code)
        if level == "group":
            return self.group_of(code) or category
        if level != "chapter":
            return category
        chapters = list(self.chapters())
        return chapters[bisect_right(chapters, category + "~") - 1]

    def shared(self, code: str) -> tuple[str, ...]:
        """Return the groups that a canonical code shares with other systems."""
        return self.common(code) if self.common else ()

    def standing(self, code: str) -> int:
        """Return 2 for a canonical code that is listed, 1 for a heading of such, else 0."""
        return 2 if code in self.listed() else int(code in self.groups())

    def standing_of(self, raw: str) -> int:
        """Return the `standing` of a code as written."""
        return self.standing(self.normalise(raw).code)

    def name(self, code: str) -> str:
        """Return the title of a code, group or chapter, or of its category, or else the code."""
        return self.chapters().get(code) or self.describe(code) or code


def nearest_entry(table: Mapping[str, T], code: str) -> T | None:
    """Return what a table has for a code or for its longest prefix of at least two characters."""
    for length in range(len(code), 1, -1):
        if code[:length] in table:
            return table[code[:length]]
    return None


def written_as_numbers(raw_codes: Iterable[str]) -> bool:
    """Return whether every number among the codes ends in '.0', as a float column writes it."""
    numbers = [text for text in map(str.strip, raw_codes) if _DOTTED.fullmatch(text)]
    return len(numbers) > 1 and all(_FLOAT.fullmatch(text) for text in numbers)


OPAQUE = CodingSystem("opaque", "")
