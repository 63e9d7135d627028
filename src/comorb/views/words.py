"""Words: the texts of one language, its numbers and dates, and diagnoses in it."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache
from importlib import resources
from math import isfinite
from typing import TYPE_CHECKING, Any

from comorb.errors import InputError
from comorb.messages import fill, join, localise, render
from comorb.records.codes.systems import systems_by_kind

if TYPE_CHECKING:
    from comorb.profiles.profile import Profile

LANGUAGES = ("es", "ca")  # of the table; English is the names of the codes


def diagnosis(code: str, label: str, system: str, language: str) -> str:
    """Return what a code is called in a language; one that isn't in the table keeps its label.

    >>> diagnosis("428", "Heart failure", "icd9cm", "es")
    'Insuficiencia cardíaca'
    """
    own, _, plain = code.rpartition(":")
    for key in [own] if own else systems_by_kind(system).get("", "").split("+"):
        name = _table(language).get((key.removesuffix("cm"), plain))
        if name:
            return name
    return label


def in_languages(code: str, system: str) -> dict[str, str]:
    """Return the names of a code in each language that the table has it in."""
    named = {language: diagnosis(code, "", system, language) for language in LANGUAGES}
    return {language: name for language, name in named.items() if name}


def translated(profile: Profile, language: str) -> Profile:
    """Return a profile with its diagnoses, and names made of them, in a language.

    A name stays as it is where a person gave it, or where one of its diagnoses isn't in the table.
    """
    if not _table(language):
        return profile
    own, system = profile.n_codes, profile.source.system
    named = [diagnosis(code, "", system, language) for code in profile.codes[:own]]
    named += [""] * (len(profile.codes) - own)
    both = list(zip(profile.labels, named, strict=True))
    known = {label.lower(): name for label, name in both if name}
    clusters = tuple(
        replace(cluster, name=_translate_name(cluster.name, known) or cluster.name)
        for cluster in profile.clusters
    )
    labels = tuple(name or label for label, name in both)
    return replace(profile, labels=labels, clusters=clusters)


def rendered(profile: Profile, language: str) -> Profile:
    """Return a profile with the messages of its source, burden and slices in a language."""

    def texts(notes: Sequence[str]) -> tuple[str, ...]:
        return tuple(render(note, language) for note in notes)

    source, burden = profile.source, profile.burden
    lines = tuple(replace(line, rule=render(line.rule, language)) for line in source.lines)
    reason = render(source.reason, language)
    return replace(
        profile,
        source=replace(source, lines=lines, reason=reason, notes=texts(source.notes)),
        burden=burden and replace(burden, notes=texts(burden.notes)),
        slices=tuple(replace(one, notes=texts(one.notes)) for one in profile.slices),
    )


def _translate_name(name: str, known: dict[str, str]) -> str:
    """Return a name that is made of known labels in their language, else nothing."""
    parts = name.split(", ")
    for taken in range(1, len(parts)):
        label = known.get(", ".join(parts[:taken]).lower())
        rest = label and _translate_name(", ".join(parts[taken:]), known)
        if rest:
            acronym = rest[1:2].isupper()
            return f"{label}, {rest if acronym else rest[:1].lower() + rest[1:]}"
    return known.get(name.lower(), "")


@lru_cache
def _table(language: str) -> dict[tuple[str, str], str]:
    rows = table_rows()
    return {(row["system"], row["code"]): row[language] for row in rows if language in row}


def table_rows() -> Sequence[dict[str, str]]:
    """Return the rows of the table: system, code, and its name in each language."""
    table = resources.files("comorb.views").joinpath("diagnoses.csv")
    return list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))


@lru_cache(maxsize=1)
def languages() -> dict[str, str]:
    """Return the code of each language with its name; English comes first."""
    folder = resources.files("comorb.views") / "texts"
    names = [file.name for file in folder.iterdir() if file.name.endswith(".json")]
    codes = {name.removesuffix(".json") for name in names} - {"en"}
    return {code: _file(code)["language"] for code in ("en", *sorted(codes))}


def check_language(language: str) -> None:
    """Refuse a language that there are no texts of."""
    if language not in languages():
        known = ", ".join(languages())
        raise InputError("language.unknown", known=known, language=language)


def page_texts(language: str) -> dict[str, str]:
    """Return the texts of the page by their keys."""
    texts: dict[str, str] = _file(language)["page"]
    return texts


def explorer_texts(language: str) -> dict[str, str]:
    """Return the texts of the explorer by their keys, with those of the page."""
    return {**page_texts(language), **_file(language)["explorer"]}


@lru_cache
def every_text(language: str) -> dict[str, str]:
    """Return all texts by their keys, with those of the board pack and of charts as files."""
    return {**explorer_texts(language), **_file(language)["print"]}


@lru_cache
def _file(language: str) -> dict[str, Any]:
    file = resources.files("comorb.views") / "texts" / f"{language}.json"
    loaded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return loaded


@dataclass(frozen=True)
class Words:
    """A language: its texts by their keys, and numbers.

    >>> Words("es").number(1234.5)
    '1.234,5'
    """

    language: str = "en"

    def __call__(self, key: str, **values: str) -> str:
        """Return the text of a key, with {name} replaced by a value.

        ``{name|one|more}`` is a word for that number: the first for 1.
        """
        return fill(every_text(self.language)[key], values, self.language)

    def get(self, key: str, otherwise: str) -> str:
        """Return the text of a key, or another where there is none."""
        return every_text(self.language).get(key, otherwise)

    def count(self, value: float | None) -> str:
        """Return a whole number, or a dash for one that is suppressed."""
        return self.number(value, 0)

    def number(self, value: float | None, digits: int = 1) -> str:
        """Return a number with so many decimals."""
        if value is None or not isfinite(value):
            return self("hidden")
        return localise(_rounded(Decimal(repr(float(value))), digits), self.language)

    def listed(self, names: Sequence[str]) -> str:
        """Return some names as a sentence lists them."""
        return join(names, self.language, "and")

    def percent(self, share: float | None, digits: int = 0) -> str:
        """Return a share in percent; a small one has a decimal."""
        if share is None or not isfinite(share):
            return self("hidden")
        if 0 < share < 0.0005:
            return f"<{self.percent(0.001)}"
        fine = 1 if 0 < share < 0.0095 else digits
        hundredths = Decimal(repr(float(share))).scaleb(2)
        return localise(f"{_rounded(hundredths, fine)}%", self.language)

    def date(self, day: str) -> str:
        """Return a day that is given as 2026-01-31 in words."""
        given = date.fromisoformat(day)
        month = self("format.months").split(",")[given.month - 1]
        return self("format.date", day=str(given.day), month=month, year=str(given.year))


ENGLISH = Words()


def _rounded(value: Decimal, digits: int) -> str:
    """Return a number with so many decimals, a half rounded away from 0 as browsers do."""
    with localcontext(prec=400):
        return f"{value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP) + 0:,f}"
