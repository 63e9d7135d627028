"""A coding system: how its codes are written, what they mean and how they roll up.

A code is text from beginning to end: '001.0' is a code and '1E11' is not a number. The
canonical form has no dot, no padding and capital letters ('250.00 ' → '25000').
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from comorb.errors import RecordsError
from comorb.records.values import is_missing

LEVELS = ("category", "full", "group", "chapter")

_PADDING = re.compile(r"""^[\s'"\u200b\ufeff]+|[\s'"\u200b\ufeff]+$""")
_MARKS = re.compile(r"[\s.+*!#†‡–_-]+$")
_FLOAT = re.compile(r"[1-9][0-9]*\.0")
_DOTTED = re.compile(r"[0-9]+[.,][0-9]+")


class Normalised(NamedTuple):
    """A code in its canonical form, and what had to be done to it.

    ``code`` is empty when ``state`` is 'missing' or 'malformed'; 'repaired' means that lost
    leading zeros were put back or that the '.0' of a number was taken off.
    """

    code: str
    state: Literal["ok", "repaired", "missing", "malformed"]


@dataclass(frozen=True)
class CodingSystem:
    """A coding system: its key in files and options, its title, and what is known of its codes.

    ``fit`` gives the canonical form of a text in capitals and without marks, None if it is no code;
    a system without it takes codes as they are written. ``groups`` has the group of each code and
    of each prefix whose codes agree; ``describe`` gives the title of a code, or of its category.

    Systems of a ``family`` have codes that look alike; without one, a system is never recognised.
    ``claims`` tells whether a canonical code may be of the family; ``is_likely``, by the codes of a
    column and their counts, whether they are of this system rather than of the one before it.
    ``url`` is part of its URL in FHIR, ``edition`` what a version column says, in letters and
    digits; ``not_diseases`` is how codes of symptoms, circumstances and external causes begin.
    """

    key: str
    title: str
    fit: Callable[[str], Normalised | None] | None = None
    category: Callable[[str], str] = str
    chapters: Callable[[], Mapping[str, str]] = dict
    groups: Callable[[], Mapping[str, str | None]] = dict
    describe: Callable[[str], str | None] = str
    family: str = ""
    claims: Callable[[str], bool] = bool
    is_likely: Callable[[Mapping[str, int]], bool] = bool
    url: str = ""
    edition: re.Pattern[str] | None = None
    not_diseases: re.Pattern[str] | None = None

    def normalise(self, raw: str, floats: bool = False) -> Normalised:
        """Bring a code into its canonical form.

        In a column that was written as numbers, ``floats``, '250.0' means 250 and not 250.0.
        """
        text = _PADDING.sub("", raw)
        if is_missing(text):
            return Normalised("", "missing")
        if floats and _FLOAT.fullmatch(text):
            code, state = self._spelled(text[:-2])
            return Normalised(code, "repaired" if code else state)
        return self._spelled(text)

    def _spelled(self, text: str) -> Normalised:
        if self.fit is None:
            return Normalised(text, "ok")
        text = _MARKS.sub("", text.upper().replace(",", "."))
        if not text:
            return Normalised("", "missing")
        return self.fit(text) or Normalised("", "malformed")

    def group_of(self, code: str) -> str | None:
        """Return the group of a code.

        A code above the finest level has the group on which all its subdivisions agree, one
        below it the group of its nearest known parent; None when there is no such group.
        """
        groups = self.groups()
        parents = (code[:length] for length in range(len(code), 2, -1))
        return next((groups[parent] for parent in parents if parent in groups), None)

    def roll_up(self, code: str, level: str) -> str:
        """Roll a canonical code up to a level.

        A 'category' has 3 characters, or 4 for ICD-9 E codes; a 'group' is of the CCS or CCSR, such
        as 'CCS108' or 'CIR019'; a 'chapter' is as '390-459' or 'I00-I99'; 'full' is the code. No
        two levels share a text with two meanings.
        """
        if level not in LEVELS:
            raise RecordsError(f"Expected a level out of {', '.join(LEVELS)}; got {level!r}.")
        if self.fit is None or level == "full":
            return code
        category = self.category(code)
        if level == "category":
            return category
        if level == "group":
            return self.group_of(code) or category
        chapters = list(self.chapters())
        return chapters[bisect_right(chapters, category + "~") - 1]

    def name(self, code: str) -> str:
        """Return the title of a canonical code, category, group or chapter.

        It is that of the category when only that is known, else the code itself.
        """
        return self.chapters().get(code) or self.describe(code) or code


def written_as_numbers(raw_codes: Iterable[str]) -> bool:
    """Tell whether every number among the codes ends in '.0', as a float column writes it."""
    numbers = [text for text in map(str.strip, raw_codes) if _DOTTED.fullmatch(text)]
    return len(numbers) > 1 and all(_FLOAT.fullmatch(text) for text in numbers)
