"""A coding system: how its codes are written, what they mean and how they roll up.

A code is text from beginning to end: '001.0' is a code and '1E11' is not a number. The
canonical form has no dot, no padding and capital letters ('250.00 ' → '25000').
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

from comorb.errors import RecordsError
from comorb.records.values import is_missing

LEVELS = ("category", "full", "group", "chapter", "common")

T = TypeVar("T")

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
class Grammar:
    """What is known about the codes of a system, beyond how they are written.

    Attributes
    ----------
    fit : callable
        From a text in capitals and without marks to its canonical form, None if it is no code.
    category : callable
        From a code to its category.
    chapters, groups, titles : callable
        The title of each chapter; the group of each code, and of each prefix whose codes agree;
        the titles of whatever else has one.
    heading : callable
        From a code without a title to the title of its category.
    listed : callable, optional
        The codes that a publication lists, of any year; headings are not among them.
    """

    fit: Callable[[str], Normalised | None]
    category: Callable[[str], str]
    chapters: Callable[[], Mapping[str, str]]
    groups: Callable[[], Mapping[str, str | None]]
    titles: Callable[[], Mapping[str, str]]
    heading: Callable[[str], str | None]
    listed: Callable[[], Collection[str]] = tuple


@dataclass(frozen=True)
class CodingSystem:
    """A coding system; one without a grammar takes codes as they are written.

    Attributes
    ----------
    key, title : str
        What it is called in files and options, and what a reader calls it.
    grammar : Grammar, optional
        What is known about its codes.
    family : str
        What systems share whose codes look alike; empty when it is never recognised by codes.
    claims : callable, optional
        Tells whether a canonical code may be of this family; by default all are.
    is_likely : callable, optional
        Tells by the codes of a column, with their counts, whether they are of this system rather
        than of the one before it in the family.
    url : str
        What its URL in FHIR contains.
    edition : re.Pattern, optional
        The letters and digits of a version column that mean it.
    not_diseases : re.Pattern, optional
        How codes of symptoms, circumstances and external causes begin.
    kind : str
        What its codes are of: 'diagnosis', 'procedure', 'drug', or empty.
    common : callable, optional
        From a code to the groups that it shares with other systems; none when there are none.
    chronic : callable, optional
        Tells whether a code is of a chronic condition; None when that isn't determined.
    mend : callable, optional
        From the codes of a column as written to those that lost zeros, as they were meant.
    """

    key: str
    title: str
    grammar: Grammar | None = None
    family: str = ""
    claims: Callable[[str], bool] = bool
    is_likely: Callable[[Mapping[str, int]], bool] = bool
    url: str = ""
    edition: re.Pattern[str] | None = None
    not_diseases: re.Pattern[str] | None = None
    kind: str = ""
    common: Callable[[str], tuple[str, ...]] | None = None
    chronic: Callable[[str], bool | None] | None = None
    mend: Callable[[Iterable[str]], Mapping[str, str]] | None = None

    def normalise(self, raw: str, floats: bool = False) -> Normalised:
        """Bring a code into its canonical form.

        Parameters
        ----------
        raw
            The code as it was written.
        floats
            The column was written as numbers: '250.0' means 250, not 250.0.
        """
        text = _PADDING.sub("", raw)
        if is_missing(text):
            return Normalised("", "missing")
        if floats and _FLOAT.fullmatch(text):
            code, state = self._spelled(text[:-2])
            return Normalised(code, "repaired" if code else state)
        return self._spelled(text)

    def _spelled(self, text: str) -> Normalised:
        if self.grammar is None:
            return Normalised(text, "ok")
        text = _MARKS.sub("", text.upper().replace(",", "."))
        if not text:
            return Normalised("", "missing")
        return self.grammar.fit(text) or Normalised("", "malformed")

    def group_of(self, code: str) -> str | None:
        """Return the group of a code.

        A code above the finest level has the group on which all its subdivisions agree, one
        below it the group of its nearest known parent; None when there is no such group.
        """
        groups = self.grammar.groups() if self.grammar else {}
        return nearest(groups, code)

    def roll_up(self, code: str, level: str) -> str:
        """Roll a canonical code up to a level.

        Parameters
        ----------
        code
            A code from `normalise`; what is none has been rolled up already and stays.
        level
            'category' (3 characters of the ICD, 4 for ICD-9 E codes), 'full', 'group' (such as
            CCS or CCSR) or 'chapter'.

        Returns
        -------
        str
            The category or code, a group such as 'CCS108' or 'CIR019', or a chapter such as
            '390-459' or 'I00-I99': no two levels share a text with two meanings.
        """
        if level not in LEVELS:
            raise RecordsError(f"Expected a level out of {', '.join(LEVELS)}; got {level!r}.")
        if self.grammar is None or level == "full" or self.grammar.fit(code) is None:
            return code
        category = self.grammar.category(code)
        if level == "group":
            return self.group_of(code) or category
        if level != "chapter":
            return category
        chapters = list(self.grammar.chapters())
        return chapters[bisect_right(chapters, category + "~") - 1]

    def shared(self, code: str) -> tuple[str, ...]:
        """Return the groups that a canonical code shares with other systems."""
        return self.common(code) if self.common else ()

    def standing(self, code: str) -> int:
        """Return 2 for a canonical code that is listed, 1 for a heading of such, else 0."""
        if self.grammar is None:
            return 0
        if code in self.grammar.listed():
            return 2
        return int(code in self.grammar.groups())

    def name(self, code: str) -> str:
        """Return the title of a canonical code, category, group or chapter.

        It is that of the category when only that is known, else the code itself.
        """
        if self.grammar is None:
            return code
        for titles in (self.grammar.chapters(), self.grammar.titles()):
            if code in titles:
                return titles[code]
        return self.grammar.heading(code) or code


def nearest(table: Mapping[str, T], code: str) -> T | None:
    """Return what a table has for a code or for its longest prefix of at least two characters."""
    for length in range(len(code), 1, -1):
        if code[:length] in table:
            return table[code[:length]]
    return None


def written_as_numbers(raw_codes: Iterable[str]) -> bool:
    """Tell whether every number among the codes ends in '.0', as a float column writes it."""
    numbers = [text for text in map(str.strip, raw_codes) if _DOTTED.fullmatch(text)]
    return len(numbers) > 1 and all(_FLOAT.fullmatch(text) for text in numbers)
