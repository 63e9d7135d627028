"""Columns: what those of a table hold, told by their names and by some of their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from comorb.errors import RecordsError
from comorb.records.codes.systems import edition
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.names import (
    CODE,
    DESCRIPTION,
    NOT_CODE,
    OUTCOME,
    PLAIN_CODE,
    PROCEDURE,
    ROLES,
    first_match,
    plain,
)
from comorb.records.values import is_missing, yes_no

Sample = dict[str, list[str]]

_CODE_VALUE = re.compile(r"[^\s,;|/\"]{1,18}")
_DATE_VALUE = re.compile(r"\d{4}-\d\d-\d\d.*|\d\d?/\d\d?/\d{2,4}")
_ICD_VALUE = re.compile(r"[A-TV-Z]\d[0-9A-Z](\.?[0-9A-Z]{1,4})?|[EV]?\d{2,3}\.\d{1,2}")
_WITH_LETTER = re.compile(r"[A-Za-z].*")
_BETWEEN = re.compile(r"\s*[;,|/\s]\s*")
_CODES_OF_DISEASES = re.compile(
    _ICD_VALUE.pattern + r"|[EV]?\d{3,5}|[EV]\d{2,3}\.?\d{0,2}", re.IGNORECASE
)
_PROCEDURES = {
    "icd9proc": re.compile(r"\d{2}\.\d{1,2}"),
    "icd10pcs": re.compile(r"[0-9B-HJ-NP-X][0-9A-HJ-NP-Z]{6}"),
}
_KEY_VALUE = re.compile(r"[\w./#:-]{1,64}")
_SAYS_DIAGNOSIS = {
    "d",
    "dx",
    "diag",
    "diagnosis",
    "diagnose",
    "diagnostic",
    "diagnostico",
    "condition",
}
_SAYS_OTHERWISE = {
    "p",
    "px",
    "pr",
    "proc",
    "procedure",
    "prozedur",
    "ops",
    "drug",
    "rx",
    "cpt",
    "hcpcs",
    "lab",
    "drg",
}
_KIND = re.compile(
    r"(is_)?(dx|diag\w*)(_?(flag|ind|indicator|yn))?|(code|record|item|entry)_?(type|kind|class)"
)


@dataclass(frozen=True)
class Columns:
    """The columns of a table that is still to be understood.

    Attributes
    ----------
    label : str
        What to call the table in a message.
    names : sequence of str
        The names of its columns.
    given : Layout
        What the caller knows about it.
    load : callable
        Returns the values of some rows of each column, as text, null ones left out.
    """

    label: str
    names: Sequence[str]
    given: Layout
    load: Callable[[], Sample]

    def check(self) -> None:
        """Refuse a layout that names a column that isn't there."""
        for name in (*(self.given.codes or ()), *self.given.roles.values()):
            if name not in self.names:
                near = get_close_matches(name, self.names, 3, 0.5) or self.names
                raise RecordsError(
                    f"{self.label} has no column {name!r}; the nearest are {_listed(near)}."
                )

    @cached_property
    def sample(self) -> Sample:
        """Some values of each column, missing ones left out."""
        return {
            name: [value for value in values if not is_missing(value)]
            for name, values in self.load().items()
        }

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The columns that hold codes."""
        self.check()
        if self.given.codes:
            return self.given.codes
        free = [name for name in self.names if name not in self.given.roles.values()]
        named = [c for c in free if CODE.search(plain(c)) and not NOT_CODE.search(plain(c))]
        called_codes = [c for c in free if PLAIN_CODE.fullmatch(plain(c))]
        icd = [c for c in free if _share(self.sample[c], _ICD_VALUE) > 0.9]
        icd = [c for c in icd if _share(self.sample[c], _WITH_LETTER) > 0.02]
        for candidates in (named, called_codes, icd):
            held = [name for name in candidates if _holds_codes(self.sample[name])]
            if any(self.sample[name] for name in held):
                return tuple(self._surest(held))
        return ()

    def _surest(self, names: list[str]) -> list[str]:
        """Return the columns whose values look like codes of diseases, where some do, or all."""
        shares = {
            name: _share(_parts(self.sample[name]), _CODES_OF_DISEASES)
            for name in names
            if self.sample[name]
        }
        if not any(share > 0.6 for share in shares.values()):
            return names
        return [name for name in names if shares.get(name, 1.0) > 0.3]

    @cached_property
    def flags(self) -> tuple[str, ...]:
        """The columns that say yes or no of a code each."""
        self.check()
        if self.given.codes:
            return self.given.codes
        flags = [name for name in self.names if _are_flags(self.sample[name])]
        one_two = [name for name in self.names if set(self.sample[name]) == {"1", "2"}]
        flags = one_two if len(one_two) > len(flags) else flags
        coded = [name for name in flags if re.fullmatch(r"[A-Z]?\d\d[\w.]*", name.upper())]
        return tuple(c for c in (coded or flags) if not OUTCOME.search(plain(c)))

    @property
    def joined(self) -> bool:
        """Whether one column holds several codes in a text."""
        if len(self.codes) != 1:
            return False
        values = self.sample[self.codes[0]]
        several = [value for value in values if _BETWEEN.search(value.strip())]
        return len(several) > 0.05 * len(values)

    @property
    def separator(self) -> str:
        """What stands between the codes of a text."""
        values = self.sample[self.codes[0]]
        return next((mark for mark in ";|,/" if any(mark in value for value in values)), " ")

    def layout(self, kind: str, codes: tuple[str, ...]) -> Layout:
        """Return the layout of this kind: what was given, and the other roles recognised."""
        layout = replace(self.given, kind=kind, codes=codes)
        roles: dict[str, Any] = dict(layout.roles)
        for role, patterns in ROLES.items():
            if role not in roles:
                taken = {*codes, *roles.values()}
                free = [name for name in self.names if name not in taken]
                roles[role] = first_match(free, patterns)
        if not self.given.version:
            taken = {*codes, *(name for role, name in roles.items() if role != "version")}
            roles["version"] = self._version([name for name in self.names if name not in taken])
        return replace(layout, **roles)

    def _version(self, names: Sequence[str]) -> str | None:
        """Return the column that says of each code which edition it is from.

        It is called so, or holds two editions and nothing else.
        """
        said = [name for name in names if _are_editions(self.sample[name])]
        called = first_match(said, ROLES["version"])
        return called or next((n for n in said if len(_editions(self.sample[n])) == 2), None)

    @cached_property
    def key(self) -> str | None:
        """The first column whose values repeat as the ids of records do that have several rows."""
        taken = {*self.codes, *self.given.roles.values()}
        for name in self.names:
            values = self.sample[name]
            different = len(set(values)) / max(1, len(values))
            if (
                name not in taken
                and 0.02 < different < 0.95
                and len(values) == self.rows
                and _share(values, _KEY_VALUE) == 1
                and _share(values, _DATE_VALUE) < 0.5
                and not any(re.search(r"\d\.\d", value) for value in values)
            ):
                return name
        return None

    def repeats(self, name: str | None) -> bool:
        """Tell whether a column holds the same value in several rows."""
        values = self.sample[name] if name else []
        return len(set(values)) < 0.95 * len(values)

    @property
    def rows(self) -> int:
        """How many rows the sample has, as far as its fullest column tells."""
        return max((len(values) for values in self.sample.values()), default=0)

    @cached_property
    def procedures(self) -> str | None:
        """The coding system of procedures that the codes are of, if they are none of diseases.

        Told by the name of the table or of the columns, or by the codes themselves.
        """
        values = [part for name in self.codes for part in _parts(self.sample[name])]
        dotted = [value for value in values if "." in value]
        for key, pattern in _PROCEDURES.items():
            some = dotted if key == "icd9proc" else values
            begin = sum(value[:1].isdigit() for value in some) > 0.3 * len(some)
            if len(some) > 0.3 * len(values) and begin and _share(some, pattern) > 0.9:
                return key
        names = [plain(self.label.partition(".")[0]), *map(plain, self.codes)]
        if not any(PROCEDURE.search(name) for name in names):
            return None
        return "icd10pcs" if _share(values, _PROCEDURES["icd10pcs"]) > 0.5 else "icd9proc"

    @cached_property
    def other_kinds(self) -> tuple[str, tuple[str, ...]] | None:
        """The column that says of each code whether it is a diagnosis, and what it then says."""
        for name in self.names:
            values = set(self.sample[name])
            if name in self.codes or len(values) < 2 or not _KIND.fullmatch(plain(name)):
                continue
            words = {value: plain(value) for value in values}
            if all(yes_no(value) is not None for value in values):
                if plain(name).endswith("type"):
                    continue
                return name, tuple(value for value in values if yes_no(value))
            if set(words.values()) <= _SAYS_DIAGNOSIS | _SAYS_OTHERWISE:
                said = tuple(v for v, word in words.items() if word in _SAYS_DIAGNOSIS)
                return (name, said) if said else None
        return None

    @cached_property
    def description(self) -> str | None:
        """The column that says in words what the code beside it means."""
        taken = {*self.codes, *self.given.roles.values()}
        for name in self.names:
            values = self.sample[name]
            worded = sum(bool(re.search(r"[^\W\d_]{3}", value)) for value in values)
            if name not in taken and DESCRIPTION.search(plain(name)) and worded > 0.8 * len(values):
                return name if values else None
        return None

    def refusal(self) -> RecordsError:
        """Return the error of a table that no reader understands."""
        if self.codes:
            kind = self.given.kind
            return RecordsError(f"{self.label} doesn't have the columns of the layout {kind!r}.")
        return RecordsError(
            f"{self.label}: no column was recognised as holding diagnosis codes. Its columns are "
            f"{_listed(self.names)}; name those with the codes."
        )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:12])
    return shown if len(names) <= 12 else f"{shown} and {len(names) - 12:,} more"


def _parts(values: Sequence[str]) -> list[str]:
    """Return the codes of texts that may hold several."""
    return [part for value in values for part in _BETWEEN.split(value) if part]


def _editions(values: Sequence[str]) -> set[str | None]:
    return {edition(value) for value in values}


def _are_editions(values: Sequence[str]) -> bool:
    return bool(values) and None not in _editions(values)


def _are_flags(values: Sequence[str]) -> bool:
    return bool(values) and all(yes_no(value) is not None for value in values)


def _holds_codes(values: list[str]) -> bool:
    if _are_flags(values):
        return False
    parts = _parts(values)
    whole = _share(values, _CODE_VALUE) > 0.5 and _share(values, _DATE_VALUE) < 0.5
    with_digits = [part for part in parts if re.search(r"\d", part)]
    return not values or whole or len(with_digits) > 0.8 * len(parts)


def _share(values: list[str], pattern: re.Pattern[str]) -> float:
    return sum(bool(pattern.fullmatch(value)) for value in values) / max(1, len(values))
