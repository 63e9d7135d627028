"""Columns: what those of a table hold, told by their names and by some of their values."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from importlib import resources
from typing import Any

from comorb.errors import RecordsError
from comorb.records.codes.systems import edition
from comorb.records.layouts.layout import Layout
from comorb.records.values import is_missing, yes_no

Sample = dict[str, list[str]]

_NAMES = tomllib.loads(
    resources.files("comorb.records.layouts").joinpath("columns.toml").read_text(encoding="utf-8")
)
_ROLES = {
    role: [re.compile(pattern, re.VERBOSE) for pattern in patterns]
    for role, patterns in _NAMES["roles"].items()
}
_CODE, _PLAIN_CODE, _NOT_CODE, _OUTCOME = (
    re.compile(_NAMES[kind], re.VERBOSE) for kind in ("code", "plain_code", "not_code", "outcome")
)
_CODE_VALUE = re.compile(r"[^\s,;|/\"]{1,18}")
_DATE_VALUE = re.compile(r"\d{4}-\d\d-\d\d.*|\d\d?/\d\d?/\d{2,4}")
_ICD_VALUE = re.compile(r"[A-TV-Z]\d[0-9A-Z](\.?[0-9A-Z]{1,4})?|[EV]?\d{2,3}\.\d{1,2}")
_BETWEEN = re.compile(r"\s*[;,|/\s]\s*")


@dataclass(frozen=True)
class Columns:
    """The columns of a table that is still to be understood, and what the caller knows about it.

    ``load`` returns the values of some rows of each column, as text, null ones left out.
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
        named = [c for c in free if _CODE.search(_plain(c)) and not _NOT_CODE.search(_plain(c))]
        plain = [c for c in free if _PLAIN_CODE.fullmatch(_plain(c))]
        icd = [c for c in free if _share(self.sample[c], _ICD_VALUE) > 0.9]
        for candidates in (named, plain, icd):
            held = tuple(name for name in candidates if _holds_codes(self.sample[name]))
            if any(self.sample[name] for name in held):
                return held
        return ()

    @cached_property
    def flags(self) -> tuple[str, ...]:
        """The columns that say yes or no of a code each."""
        self.check()
        if self.given.codes:
            return self.given.codes
        flags = [name for name in self.names if _are_flags(self.sample[name])]
        coded = [name for name in flags if re.fullmatch(r"[A-Z]?\d\d[\w.]*", name.upper())]
        return tuple(c for c in (coded or flags) if not _OUTCOME.search(_plain(c)))

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
        for role, patterns in _ROLES.items():
            if role not in roles:
                taken = {*codes, *roles.values()}
                free = [name for name in self.names if name not in taken]
                pairs = ((name, pattern) for pattern in patterns for name in free)
                named = (name for name, pattern in pairs if pattern.fullmatch(_plain(name)))
                roles[role] = next(named, None)
        version = roles["version"]
        if version and not self.given.version:
            values = self.sample[version]
            roles["version"] = version if values and all(map(edition, values)) else None
        return replace(layout, **roles)

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


def _plain(name: str) -> str:
    spaced = re.sub(r"([a-z])([A-Z])", r"\1_\2", name)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def _are_flags(values: Sequence[str]) -> bool:
    return bool(values) and all(yes_no(value) is not None for value in values)


def _holds_codes(values: list[str]) -> bool:
    if _are_flags(values):
        return False
    parts = [part for value in values for part in _BETWEEN.split(value) if part]
    whole = _share(values, _CODE_VALUE) > 0.5 and _share(values, _DATE_VALUE) < 0.5
    with_digits = [part for part in parts if re.search(r"\d", part)]
    return not values or whole or len(with_digits) > 0.8 * len(parts)


def _share(values: list[str], pattern: re.Pattern[str]) -> float:
    return sum(bool(pattern.fullmatch(value)) for value in values) / max(1, len(values))
