"""Words: the texts of one language, with numbers and dates as they are written in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache
from math import isfinite

from comorb.insight.views.texts import every_text

_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?%")  # such as 1,234 or 5.5%, and no code
_PLACE = re.compile(r"\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}")  # {n}, or {n|record|records}
_SENTENCES = re.compile(r"(?<=\.) (?=[A-Z0-9])")


@dataclass(frozen=True)
class Words:
    """A language: its texts by their keys, what is said in English, and numbers.

    >>> Words("es").number(1234.5)
    '1.234,5'
    """

    language: str = "en"

    def __call__(self, key: str, **values: str) -> str:
        """Return the text of a key, with {name} replaced by a value.

        ``{name|one|more}`` is a word for that number: the first for 1.
        """

        def placed(mark: re.Match[str]) -> str:
            if mark[3] is not None:
                return mark[2] if values.get(mark[1]) == "1" else mark[3]
            return values.get(mark[1], mark[0])

        return _PLACE.sub(placed, every_text(self.language)[key])

    def get(self, key: str, otherwise: str) -> str:
        """Return the text of a key, or another where there is none."""
        return every_text(self.language).get(key, otherwise)

    def said(self, text: str) -> str:
        """Return what is said in English, such as 'having 428', in the language."""
        if self.language == "en":
            return text
        if _NUMBER.fullmatch(text):
            return self._written(text)
        plain, patterns = _phrases()
        if text in plain:
            return self(plain[text])
        sentences = _SENTENCES.split(text)
        if len(sentences) > 1:
            return " ".join(map(self.said, sentences))
        for key, pattern in patterns:
            if match := pattern.fullmatch(text):
                return self(
                    key, **{name: self.said(one) for name, one in match.groupdict().items()}
                )
        return text

    def count(self, value: float | None) -> str:
        """Return a whole number, or a dash for one that isn't told."""
        return self.number(value, 0)

    def number(self, value: float | None, digits: int = 1) -> str:
        """Return a number with so many decimals."""
        if value is None or not isfinite(value):
            return self("hidden")
        return self._written(_rounded(Decimal(repr(float(value))), digits))

    def listed(self, names: Sequence[str]) -> str:
        """Return some names as a sentence lists them."""
        *most, last = names
        return self("format.and", a=", ".join(most), b=last) if most else last

    def percent(self, share: float | None, digits: int = 0) -> str:
        """Return a share in percent; a small one has a decimal."""
        if share is None or not isfinite(share):
            return self("hidden")
        if 0 < share < 0.0005:
            return f"<{self.percent(0.001)}"
        fine = 1 if 0 < share < 0.0095 else digits
        hundredths = Decimal(repr(float(share))).scaleb(2)
        return self("format.percent", x=self._written(_rounded(hundredths, fine)))

    def date(self, day: str) -> str:
        """Return a day that is given as 2026-01-31 in words."""
        given = date.fromisoformat(day)
        month = self("format.months").split(",")[given.month - 1]
        return self("format.date", day=str(given.day), month=month, year=str(given.year))

    def _written(self, english: str) -> str:
        marks = {",": self("format.thousands"), ".": self("format.decimal")}
        plain = english.removesuffix("%")
        text = "".join(marks.get(one, one) for one in plain)
        return text if plain == english else self("format.percent", x=text)


ENGLISH = Words()


def _rounded(value: Decimal, digits: int) -> str:
    """Return a number with so many decimals, a half rounded away from 0 as browsers do."""
    with localcontext(prec=400):
        return f"{value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP) + 0:,f}"


@lru_cache(maxsize=1)
def _phrases() -> tuple[dict[str, str], list[tuple[str, re.Pattern[str]]]]:
    """Return what is said in English by its text, and by patterns, those with most words first."""
    said = {key: text for key, text in every_text("en").items() if key.startswith("said.")}
    plain = {text: key for key, text in said.items() if "{" not in text}
    others = [(key, text) for key, text in said.items() if "{" in text]
    others.sort(key=lambda one: -len(_PLACE.sub("", one[1])))
    patterns = [
        (key, re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+)", re.escape(text))))
        for key, text in others
    ]
    return plain, patterns
