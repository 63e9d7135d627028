"""Columns: what those of a table hold, told by their names and by some of their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from comorb.errors import RecordsError
from comorb.records.codes.recognition import fits, recognise
from comorb.records.codes.systems import PROCEDURES, coding_system
from comorb.records.layouts.description import Layout
from comorb.records.layouts.names import (
    CODE,
    DIAGNOSIS,
    NOT_CODE,
    NOT_ITEM,
    PLAIN_CODE,
    PROCEDURE,
    ROLES,
    WEAK_CODE,
    first_match,
    named,
    plain,
)
from comorb.records.layouts.neighbours import (
    Cells,
    description_column,
    kind_column,
    repeating_id,
    unique_ids,
    version_column,
)
from comorb.records.values import is_missing, yes_no

Sample = dict[str, list[str]]

_CODE_VALUE = re.compile(r"[^\s,;|/\"]{1,18}")
_DATE_VALUE = re.compile(r"\d{4}-\d\d-\d\d.*|\d\d?/\d\d?/\d{2,4}")
_ICD10_VALUE = re.compile(r"[A-TV-Z]\d[0-9A-Z](\.?[0-9A-Z]{1,4})?")
_ICD_VALUE = re.compile(rf"{_ICD10_VALUE.pattern}|[EV]?\d{{2,3}}\.\d{{1,2}}")
_OF_DISEASE = re.compile(rf"{_ICD_VALUE.pattern}|[EV]?\d{{3,5}}|[EV]\d{{2,3}}", re.IGNORECASE)
_BETWEEN = re.compile(r"\s*[;,|/\s]\s*")
_NUMBER_VALUE = re.compile(r"-?[0-9]+([.,][0-9]+)*")
_DAY_VALUE = re.compile(
    r"\d{4}[-/.]\d\d[-/.]\d\d.*|\d\d?[-/.]\d\d?[-/.]\d{2,4}.*|(19|20)\d{6}(\.0)?|\d\d?-?[A-Za-z]{3}-?\d{4}.*"
)
_WAYS = 60  # in which a visit ends, at most
_WITH_COMMA = re.compile(r"[A-Za-z]?\d{2,3},\d{1,2}")
FEW = 8  # values of a text that is summed up, or of an item, at most


@dataclass(frozen=True)
class Columns:
    """The columns of a table that is still to be understood, and what the caller knows about it.

    ``load`` returns the cells of some rows of each column, as text, None for null ones.
    """

    label: str
    names: Sequence[str]
    given: Layout
    load: Callable[[], Cells]

    def check(self) -> None:
        """Refuse a layout that names a column that isn't there, or says two things of one."""
        named_codes = self.given.code_columns(self.names)
        for name in (*named_codes, *self.given.named):
            if name in self.given.ignored and name in (*named_codes, *self.given.roles.values()):
                raise RecordsError(
                    f"{self.label}: column {name!r} is ignored and has a role, too; say one."
                )
            if name not in self.names:
                near = get_close_matches(name, self.names, 3, 0.5) or self.names
                raise RecordsError(
                    f"{self.label} has no column {name!r}; the nearest are {_listed(near)}."
                )

    @cached_property
    def cells(self) -> Cells:
        """The cells of some rows of each column, None where a value is missing."""
        return {
            name: [None if cell is None or is_missing(cell) else cell for cell in cells]
            for name, cells in self.load().items()
        }

    @cached_property
    def sample(self) -> Sample:
        """Some values of each column, missing ones left out."""
        return {name: [cell for cell in cells if cell] for name, cells in self.cells.items()}

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The columns that hold codes: by their names, or else by the look of their values."""
        self.check()
        if self.given.codes:
            return self.given.code_columns(self.names)
        free = self._free
        for candidates in (self._called_codes, self._plainly_called, self._looking_like_codes):
            held = [name for name in candidates(free) if _holds_codes(self.sample[name])]
            if any(self.sample[name] for name in held):
                return tuple(self._surest(held))
        return ()

    def _called_codes(self, free: Sequence[str]) -> list[str]:
        weak = [c for c in named(free, WEAK_CODE) if self._share_of(c, _ICD10_VALUE) > 0.6]
        called = {*named(free, CODE), *weak} - set(named(free, NOT_CODE))
        return [name for name in free if name in called]

    def _plainly_called(self, free: Sequence[str]) -> list[str]:
        return [name for name in free if PLAIN_CODE.fullmatch(plain(name))]

    def _looking_like_codes(self, free: Sequence[str]) -> list[str]:
        """Return the columns of ICD codes; without a letter, 38.93 may be any number.

        An id such as A12345 may look like a code, too, but is called otherwise.
        """
        return [
            name
            for name in free
            if self._share_of(name, _ICD_VALUE) > 0.9
            and self._share_of(name, _ICD10_VALUE) > 0.02
            and not any(first_match([name], patterns) for patterns in ROLES.values())
        ]

    def _surest(self, names: list[str]) -> list[str]:
        """Return the columns whose values look like codes of diseases, where some do, or all."""
        shares = {name: self._share_of(name, _OF_DISEASE) for name in names if self.sample[name]}
        if not any(share > 0.6 for share in shares.values()):
            return names
        return [name for name in names if shares.get(name, 1.0) > 0.3]

    def _share_of(self, name: str, pattern: re.Pattern[str]) -> float:
        return _share(_parts(self.sample[name]), pattern)

    @cached_property
    def flags(self) -> tuple[str, ...]:
        """The columns that say yes or no of an item each."""
        self.check()
        if self.given.codes:
            return self.given.code_columns(self.names)
        free = self._free
        flags = [name for name in free if _are_flags(self.sample[name])]
        one_two = [name for name in free if _are_one_and_two(self.sample[name])]
        flags = one_two if len(one_two) > len(flags) else flags
        coded = [name for name in flags if re.fullmatch(r"[A-Z]?\d\d[\w.]*", name.upper())]
        return tuple(name for name in coded or flags if not NOT_ITEM.search(plain(name)))

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """The columns that hold one of few values each, when all do that may be items."""
        taken = set(self.layout("binary", ()).roles.values())
        free = [name for name in self._free if name not in taken]
        some = [name for name in free if _are_choices(self.sample[name])]
        return tuple(some) if len(some) == len(free) else ()

    @cached_property
    def _free(self) -> list[str]:
        """The columns of which nothing is said."""
        return [name for name in self._beside((), {}) if name not in self.given.features]

    @property
    def joined(self) -> bool:
        """Whether one column holds several codes in a text."""
        if len(self.codes) != 1:
            return False
        values = self.sample[self.codes[0]]
        several = [
            value
            for value in values
            if _BETWEEN.search(value.strip()) and not _WITH_COMMA.fullmatch(value.strip())
        ]
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
                free = self._beside(codes, roles)
                if role in _ROLE_VALUES:
                    free = [name for name in free if _ROLE_VALUES[role](self.sample[name])]
                roles[role] = first_match(free, patterns)
        if self.given.version is None:
            roles["version"] = None
            roles["version"] = version_column(self.cells, self._beside(codes, roles), codes)
        return replace(layout, **roles)

    def _beside(self, codes: Sequence[str], roles: Mapping[str, str | None]) -> list[str]:
        """Return the columns that neither hold codes nor have a role."""
        taken = {*codes, *roles.values(), *self.given.named}
        return [name for name in self.names if name not in taken]

    def repeats(self, name: str | None) -> bool:
        """Tell whether a column holds the same value in several rows."""
        values = self.sample[name] if name else []
        return len(set(values)) < 0.95 * len(values)

    @cached_property
    def repeating_id(self) -> str | None:
        """A column that is no known id, but repeats as the ids of records do."""
        return repeating_id(self.cells, self._beside_long)

    @cached_property
    def _beside_long(self) -> list[str]:
        return self._beside(self.codes, self.layout("long", self.codes).roles)

    @cached_property
    def unique_ids(self) -> list[str]:
        """The columns that look like ids, of which these rows can't tell whether they repeat."""
        return unique_ids(self.cells, self._beside_long)

    @cached_property
    def kind_column(self) -> tuple[str, Callable[[str], bool]] | None:
        """The column that says of each code whether it is a diagnosis, and what tells that."""
        return kind_column(self.cells, self._beside(self.codes, self.given.roles))

    @cached_property
    def description(self) -> str | None:
        """The column that names the codes, where no coding system does."""
        code, beside = self.codes[0], self._beside(self.codes, self.given.roles)
        name = description_column(self.cells, beside, code)
        return name if name and recognise(_parts(self.sample[code])).system == "opaque" else None

    def procedures(self, layout: Layout) -> str | None:
        """Return the coding system of the codes if they are procedures, None if they are not.

        The codes themselves tell, or the name of the table or of their columns where the codes may
        be either. Procedures of a system that isn't known are taken as they are written.
        """
        names = [self.label, *self.codes]
        by_name = bool(named(names, PROCEDURE)) and not named(names, DIAGNOSIS)
        if not by_name and layout.version is None:
            return None
        values = [part for name in self.codes for part in _parts(self.sample[name])]
        seen = recognise(values).system
        if coding_system(seen).kind == "procedure":
            return seen
        if not by_name:
            return None
        fit = fits(values)
        best = max(PROCEDURES.values(), key=lambda key: (fit[key].listed, fit[key].written))
        if seen in fit and fit[seen].listed > fit[best].listed + 0.2:
            return None
        return best if layout.version or fit[best].written > 0.8 else "opaque"

    def refusal(self) -> RecordsError:
        """Return the error of a table that no reader understands."""
        kind, count = self.given.kind, len(self.codes)
        if count > 1 and kind in ("long", "delimited"):
            return RecordsError(
                f"{self.label} has codes in {count:,} columns ({_listed(self.codes)}), and the "
                f"layout {kind!r} in one; name that one, or leave the layout out."
            )
        if self.codes:
            return RecordsError(
                f"{self.label} doesn't have the columns of the layout {kind!r}; leave it out, and "
                "the layout is recognised."
            )
        return RecordsError(
            f"{self.label}: no column was recognised as holding diagnosis codes. Its columns are "
            f"{_listed(self.names)}; name those with the codes."
        )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:12])
    return shown if len(names) <= 12 else f"{shown} and {len(names) - 12:,} more"


def _parts(values: Sequence[str]) -> list[str]:
    """Return the codes of texts that may hold several; a comma may stand for the dot of one."""
    dotted = (v.replace(",", ".") if _WITH_COMMA.fullmatch(v.strip()) else v for v in values)
    return [part for value in dotted for part in _BETWEEN.split(value) if part]


def _are_flags(values: Sequence[str]) -> bool:
    """Tell a column of yes and no; a cross stands alone, or it may be any letter."""
    different = {value.strip().lower() for value in values}
    known = all(yes_no(value) is not None for value in different)
    return bool(different) and known and ("x" not in different or len(different) == 1)


def _are_one_and_two(values: Sequence[str]) -> bool:
    return {value.removesuffix(".0") for value in values} == {"1", "2"}


def _are_choices(values: Sequence[str]) -> bool:
    """Tell values of which there are few, each of them several times."""
    different = {value.strip() for value in values}
    return 2 <= len(different) <= FEW and len(different) * FEW <= len(values)


def _are_numbers(values: Sequence[str]) -> bool:
    return bool(values) and _share(values, _NUMBER_VALUE) > 0.9


def _are_repeated(values: Sequence[str]) -> bool:
    return len(set(values)) < 0.5 * len(values)


def _are_days(values: Sequence[str]) -> bool:
    return bool(values) and _share(values, _DAY_VALUE) > 0.9


def _are_few(values: Sequence[str]) -> bool:
    return 1 < len(set(values)) <= _WAYS


# What a column has to hold, beside its name, to have one of these roles.
_ROLE_VALUES: dict[str, Callable[[Sequence[str]], bool]] = {
    "los": _are_numbers,
    "died": _are_flags,
    "readmitted": _are_flags,
    "cost": _are_numbers,
    "site": _are_repeated,
    "discharged": _are_days,
    "disposition": _are_few,
}


def _holds_codes(values: list[str]) -> bool:
    if _are_flags(values):
        return False
    parts = _parts(values)
    whole = _share(values, _CODE_VALUE) > 0.5 and _share(values, _DATE_VALUE) < 0.5
    with_digits = [part for part in parts if re.search(r"\d", part)]
    return not values or whole or len(with_digits) > 0.8 * len(parts)


def _share(values: Sequence[str], pattern: re.Pattern[str]) -> float:
    return sum(bool(pattern.fullmatch(value)) for value in values) / max(1, len(values))
