"""Columns: schema inference, the content of each column by its name, values and neighbours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import pairwise
from typing import Any

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.records.codes.recognition import fits, recognise
from comorb.records.codes.systems import PROCEDURES, coding_system, system_by_edition
from comorb.records.layouts.events import MAX_DISPOSITIONS, read_answers
from comorb.records.layouts.layout import EVENT_ROLES, Layout
from comorb.records.layouts.names import (
    CODE_NAME,
    DESCRIPTION_NAME,
    DIAGNOSIS_NAME,
    NOT_CODE_NAME,
    NOT_ITEM_NAME,
    PLAIN_CODE_NAME,
    PROCEDURE_NAME,
    ROLE_NAMES,
    WEAK_CODE_NAME,
    find_role,
    first_match,
    is_label,
    names_matching,
    normalise_name,
)
from comorb.records.values import find_sentinels, is_missing, yes_no

Cells = Mapping[str, Sequence[str | None]]

_ID_VALUE = re.compile(r"(?!\d{4}-\d\d-\d\d|\d\d?/\d\d?/\d{2,4}|\d+\.\d)[\w./#:-]{1,64}")
_PLACE_NAME = re.compile(r"zip\w*|plz|post\w*|cp|cap|(code|codigo|codi)_postal|municip\w*")
_FLAG_ENDING = r"(_?(flag|ind\w*|yn|code|row))?"
_IS_DIAGNOSIS = re.compile(rf"(is_)?(dx|diag|diagnos(is|e|i|tic|tico)){_FLAG_ENDING}")
_IS_PROCEDURE = re.compile(rf"(is_)?(px|proc|procedure|prozedur){_FLAG_ENDING}")
_UNIQUE_SHARE = 0.95
_KIND_NAME = re.compile(
    r"((code|record|item|entry|row|event|icd|tipo|tipus|type)_?)?(de_)?"
    r"(type|kind|class|typ|tipo|tipus|art|soort|domain|code|codigo|codi)"
)
_DIAGNOSIS_KIND = re.compile(r"(\w+_)?(d|dx|diag\w*|\w*diagnos\w*|conditions?)(_\w+)?")
_OTHER_KIND = re.compile(
    r"(\w+_)?(p|px|pr|proc\w*|prozedur\w*|ops|interven\w*|operat\w*|verrichting\w*|acte|drugs?|rx|"
    r"medic\w*|cpt\w*|hcpcs|labs?|drg)(_\w+)?"
)


def find_version_column(cells: Cells, free: Sequence[str], codes: Sequence[str]) -> str | None:
    """Return the column with the edition of each code.

    It is named so, or holds two editions and nothing else, to which the codes of its rows belong.
    """
    keys = {name: [system_by_edition(text) for text in cells[name] if text] for name in free}
    editions = [name for name, some in keys.items() if sum(map(bool, some)) > 0.5 * len(some)]
    if named := first_match(editions, ROLE_NAMES["version"]):
        return named
    for name in editions:
        if None in keys[name] or len(set(keys[name])) != 2:
            continue
        pairs = [
            (system_by_edition(text) or "", code)
            for column in codes
            for text, code in zip(cells[name], cells[column], strict=False)
            if text and code
        ]
        fitting = sum(
            any(coding_system(one).normalise(code).code for one in (key, PROCEDURES.get(key, key)))
            for key, code in pairs
        )
        if fitting > 0.8 * len(pairs):
            return name
    return None


def find_repeating_id(cells: Cells, free: Sequence[str]) -> str | None:
    """Return the column whose values repeat like the ids of records that have several rows.

    The rows of a record stand together; where they don't, only a few share an id, which is longer
    than a number of days. Of several such columns, that with the most ids is taken.
    """
    found: dict[str, tuple[bool, int]] = {}
    for name in _find_id_like(cells, free):
        values, rows = cells[name], len(cells[name])
        different = len(set(values))
        together = 1 + sum(one != two for one, two in pairwise(values)) <= 1.02 * different
        fine = together or (different >= 0.2 * rows and not _is_short(values))
        if fine and 0.02 * rows < different < _UNIQUE_SHARE * rows:
            found[name] = (together, different)
    return max(found, key=found.__getitem__, default=None)


def find_unique_ids(cells: Cells, free: Sequence[str]) -> list[str]:
    """Return the columns that look like ids and hardly repeat in these rows."""
    columns = {name: cells[name] for name in _find_id_like(cells, free)}
    return [
        name
        for name, values in columns.items()
        if len(set(values)) >= _UNIQUE_SHARE * len(values) and not _is_short(values)
    ]


def _find_id_like(cells: Cells, free: Sequence[str]) -> list[str]:
    return [
        name
        for name in free
        if all(text and _ID_VALUE.fullmatch(text) for text in cells[name])
        and not _PLACE_NAME.fullmatch(normalise_name(name))
    ]


def _is_short(values: Sequence[str | None]) -> bool:
    return min((len(text or "") for text in values), default=0) < 4


def find_kind_column(cells: Cells, free: Sequence[str]) -> tuple[str, Callable[[str], bool]] | None:
    """Return the column with the kind of each code, and a test of its values for diagnoses."""
    for name in free:
        values = [text for text in cells[name] if text]
        simple = normalise_name(name)
        if values and all(yes_no(text) is not None for text in values):
            if _IS_DIAGNOSIS.fullmatch(simple):
                return name, lambda text: yes_no(text) is True
            if _IS_PROCEDURE.fullmatch(simple):
                return name, lambda text: yes_no(text) is False
        elif values and _KIND_NAME.fullmatch(simple):
            kinds = set(map(normalise_name, values))
            if all(_DIAGNOSIS_KIND.fullmatch(one) or _OTHER_KIND.fullmatch(one) for one in kinds):
                return name, lambda text: bool(_DIAGNOSIS_KIND.fullmatch(normalise_name(text)))
    return None


def find_description_column(cells: Cells, free: Sequence[str], code: str) -> str | None:
    """Return the column that describes the code of its row in words.

    It is named a description, and a code has the same one almost everywhere.
    """
    named = names_matching(free, DESCRIPTION_NAME)
    surest = names_matching(named, DIAGNOSIS_NAME)
    for name in (*surest, *(one for one in named if one not in surest)):
        pairs = [pair for pair in zip(cells[code], cells[name], strict=False) if all(pair)]
        worded = sum(bool(re.search(r"[^\W\d_]{3}", text or "")) for _, text in pairs)
        codes = len({one for one, _ in pairs})
        if pairs and worded > 0.8 * len(pairs) and len(set(pairs)) <= 1.2 * codes:
            return name
    return None


Sample = dict[str, list[str]]

_CODE_VALUE = re.compile(r"[^\s,;|/\"]{1,18}")
_DATE_VALUE = re.compile(r"\d{4}-\d\d-\d\d.*|\d\d?/\d\d?/\d{2,4}")
_ICD10_VALUE = re.compile(r"[A-TV-Z]\d[0-9A-Z](\.?[0-9A-Z]{1,4})?")
_ICD_VALUE = re.compile(rf"{_ICD10_VALUE.pattern}|[EV]?\d{{2,3}}\.\d{{1,2}}")
_DISEASE_VALUE = re.compile(rf"{_ICD_VALUE.pattern}|[EV]?\d{{3,5}}|[EV]\d{{2,3}}", re.IGNORECASE)
# An asterisk before a code separates; one after it is a mark of the ICD-10.
_SEPARATORS = re.compile(r"\s*[;,|/\s]\s*|\*(?=\w)")
_NUMBER_VALUE = re.compile(r"-?[0-9]+([.,][0-9]+)*")
_DAY_VALUE = re.compile(
    r"\d{4}[-/.]\d\d[-/.]\d\d.*|\d\d?[-/.]\d\d?[-/.]\d{2,4}.*|(19|20)\d{6}(\.0)?|\d\d?-?[A-Za-z]{3}-?\d{4}.*"
)
_DECIMAL_COMMA = re.compile(r"[A-Za-z]?\d{2,3},\d{1,2}")
MAX_VALUES = 8  # the most values of a text with a summary, or of an item


@dataclass(frozen=True)
class Columns:
    """The columns of a table, whose layout is known as far as it was given.

    ``load`` returns the cells of some rows of each column as text, None for null.
    """

    label: str
    names: Sequence[str]
    given: Layout
    load: Callable[[], Cells]

    def check(self) -> None:
        """Refuse a layout with a column that isn't there, or that is ignored and has a role."""
        named_codes = self.given.code_columns(self.names)
        for name in (*named_codes, *self.given.named):
            if name in self.given.ignored and name in (*named_codes, *self.given.roles.values()):
                raise RecordsError("layout.ignored_and_role", label=self.label, name=name)
            if name not in self.names:
                near = list_names(get_close_matches(name, self.names, 3, 0.5) or self.names)
                raise RecordsError("layout.no_column", label=self.label, name=name, near=near)

    @cached_property
    def cells(self) -> Cells:
        """The cells of some rows of each column, None where a value is missing."""
        return {
            name: [None if cell is None or is_missing(cell) else cell for cell in cells]
            for name, cells in self.load().items()
        }

    @cached_property
    def sample(self) -> Sample:
        """Some values of each column, without missing ones."""
        return {name: [cell for cell in cells if cell] for name, cells in self.cells.items()}

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The columns that hold codes: by their names, or else by the look of their values."""
        self.check()
        if self.given.codes:
            return self.given.code_columns(self.names)
        for candidates in self._code_candidates():
            names = [name for name in candidates if _holds_codes(self.sample[name])]
            if any(self.sample[name] for name in names):
                shares = {n: self._share_of(n, _DISEASE_VALUE) for n in names if self.sample[n]}
                if any(share > 0.6 for share in shares.values()):
                    names = [name for name in names if shares.get(name, 1.0) > 0.3]
                return tuple(names)
        return ()

    def _code_candidates(self) -> Iterator[list[str]]:
        """Yield the columns that may hold codes: by a name, by a plain name, by their values."""
        free = self._free
        weak = names_matching(free, WEAK_CODE_NAME)
        named = {*names_matching(free, CODE_NAME)}
        named |= {name for name in weak if self._share_of(name, _ICD10_VALUE) > 0.6}
        named -= {*names_matching(free, NOT_CODE_NAME)}
        yield [name for name in free if name in named]
        yield [name for name in free if PLAIN_CODE_NAME.fullmatch(normalise_name(name))]
        # Without a letter, 38.93 may be any number. An id such as A12345 has another name.
        yield [
            name
            for name in free
            if self._share_of(name, _ICD_VALUE) > 0.9
            and self._share_of(name, _ICD10_VALUE) > 0.02
            and not find_role(name)
        ]

    def _share_of(self, name: str, pattern: re.Pattern[str]) -> float:
        return _matching_share(_split_codes(self.sample[name]), pattern)

    @cached_property
    def flags(self) -> tuple[str, ...]:
        """The columns that are yes or no of one item each."""
        self.check()
        if self.given.codes:
            return self.given.code_columns(self.names)
        samples = {name: self.sample[name] for name in self._free}
        flags = [name for name, values in samples.items() if _are_flags(values)]
        one_two = [n for n, some in samples.items() if _are_one_and_two(some) and not is_label(n)]
        flags = one_two if len(one_two) > len(flags) else flags
        coded = [name for name in flags if re.fullmatch(r"[A-Z]?\d\d[\w.]*", name.upper())]
        no_items = {*names_matching(flags, NOT_ITEM_NAME)}
        return tuple(name for name in coded or flags if name not in no_items)

    @property
    def are_items(self) -> bool:
        """Whether the columns that were named as codes hold the answers of items."""
        samples = [self.sample[name] for name in self.codes if self.given.codes]
        answers = [_are_flags(one) or _are_one_and_two(one) for one in samples if one]
        return bool(answers) and all(answers)

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """The columns that hold one of few values each, if all that may be items do."""
        taken = set(self.layout("binary", ()).roles.values())
        free = [name for name in self._free if name not in taken]
        for name in free:
            n_values = len({value.strip() for value in self.sample[name]})
            if not 2 <= n_values <= min(MAX_VALUES, len(self.sample[name]) / MAX_VALUES):
                return ()
        return tuple(free)

    @cached_property
    def _free(self) -> list[str]:
        """The columns that the given layout leaves open."""
        return [name for name in self._remaining((), {}) if name not in self.given.features]

    @property
    def holds_lists(self) -> bool:
        """Whether a column holds several codes in a text; of several columns, codes of the ICD."""
        samples = [[value.strip() for value in self.sample[name]] for name in self.codes]
        several = [len(_find_lists(values)) > 0.05 * len(values) for values in samples]
        if len(samples) < 2:
            return any(several)
        texts = [text for values in samples for text in _find_lists(values)]
        return any(several) and _matching_share(_split_codes(texts), _DISEASE_VALUE) > 0.9

    @property
    def separator(self) -> str:
        """The mark between the codes of a text."""
        values = [text for name in self.codes for text in _find_lists(self.sample[name])]
        return next((mark for mark in ";|,/*" if any(mark in value for value in values)), " ")

    def layout(self, kind: str, codes: tuple[str, ...]) -> Layout:
        """Return the layout of this kind: the given roles, and the others recognised."""
        roles: dict[str, Any] = dict(self.given.roles)
        for role, patterns in ROLE_NAMES.items():
            if role not in roles:
                free = self._remaining(codes, roles)
                samples = {name: self.sample[name] for name in free}
                if role in EVENT_ROLES:
                    free = [n for n in free if read_answers(samples[n], role, n).is_clear]
                elif role in _ROLE_VALUES:
                    free = [name for name in free if _ROLE_VALUES[role](samples[name])]
                roles[role] = first_match(free, patterns)
        if self.given.version is None:
            roles["version"] = None
            roles["version"] = find_version_column(self.cells, self._remaining(codes, roles), codes)
        return replace(self.given, kind=kind, codes=codes, **roles)

    def _remaining(self, codes: Sequence[str], roles: Mapping[str, str | None]) -> list[str]:
        """Return the columns that neither hold codes nor have a role."""
        taken = {*codes, *roles.values(), *self.given.named}
        return [name for name in self.names if name not in taken]

    def repeats(self, name: str | None) -> bool:
        """Return whether a column holds the same value in several rows."""
        values = self.sample[name] if name else []
        return len(set(values)) < 0.95 * len(values)

    @cached_property
    def repeating_id(self) -> str | None:
        """A column without the name of an id that repeats like the ids of records."""
        return find_repeating_id(self.cells, self.free_in_long)

    @cached_property
    def free_in_long(self) -> list[str]:
        """The columns without a role in the long layout."""
        return self._remaining(self.codes, self.layout("long", self.codes).roles)

    @cached_property
    def kind_column(self) -> tuple[str, Callable[[str], bool]] | None:
        """The column with the kind of each code, and a test of its values for diagnoses."""
        return find_kind_column(self.cells, self._remaining(self.codes, self.given.roles))

    @cached_property
    def description(self) -> str | None:
        """The column that describes the codes, if they are of no known coding system."""
        code, others = self.codes[0], self._remaining(self.codes, self.given.roles)
        name = find_description_column(self.cells, others, code)
        known = name and recognise(_split_codes(self.sample[code])).system != "opaque"
        return None if known else name

    def procedures(self, layout: Layout) -> str | None:
        """Return the coding system of the codes if they are procedures, None if they are not.

        The codes decide, or the name of the table or of its columns where the codes may be either.
        Procedures of an unknown system are kept as written.
        """
        names = [self.label, *self.codes]
        by_name = names_matching(names, PROCEDURE_NAME)
        if names_matching(names, DIAGNOSIS_NAME):
            by_name = []
        if not by_name and layout.version is None:
            return None
        values = [part for name in self.codes for part in _split_codes(self.sample[name])]
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

    def unreadable_error(self) -> RecordsError:
        """Return the error of a table that no reader can read."""
        label, kind, codes = self.label, self.given.kind, list_names(self.codes)
        if (n := len(self.codes)) > 1 and kind in ("long", "delimited"):
            key = "layout.several_code_columns"
            return RecordsError(key, label=label, n=n, codes=codes, kind=kind)
        if self.codes:
            return RecordsError("layout.other_columns", label=label, kind=kind)
        return RecordsError("source.no_codes", label=label, names=list_names(self.names))


def list_names(names: Sequence[str]) -> str:
    """Return names between quotes and commas, of many the first twelve."""
    shown = [repr(name) for name in names[:12]]
    if len(names) <= 12:
        return Message("text.list", parts=shown)
    return Message("text.more", parts=shown, n=len(names) - 12)


def _find_lists(values: Sequence[str]) -> list[str]:
    """Return the texts that hold several codes; a comma may stand for the dot of one."""
    return [v for v in values if _SEPARATORS.search(v.strip()) and not _DECIMAL_COMMA.fullmatch(v)]


def _split_codes(values: Sequence[str]) -> list[str]:
    """Return the codes of texts that may hold several; a comma may stand for the dot of one."""
    dotted = (v.replace(",", ".") if _DECIMAL_COMMA.fullmatch(v.strip()) else v for v in values)
    return [part for value in dotted for part in _SEPARATORS.split(value) if part]


def _are_flags(values: Sequence[str]) -> bool:
    """Return whether values are yes and no; a cross among others may be any letter."""
    different = {value.strip().lower() for value in _drop_sentinels(values)}
    known = all(yes_no(value) is not None for value in different)
    return bool(different) and known and ("x" not in different or len(different) == 1)


def _are_one_and_two(values: Sequence[str]) -> bool:
    """Return whether values are answers written 1 and 2."""
    return {value.strip().removesuffix(".0") for value in _drop_sentinels(values)} == {"1", "2"}


def _drop_sentinels(values: Sequence[str]) -> set[str]:
    """Return the different values without numbers for 'unknown', where two answers are left."""
    different = set(values)
    rest = different - find_sentinels(different) if len(different) < 10 else different
    return rest if len(rest) > 1 else different


# The values that a column needs, besides its name, for one of these roles.
_ROLE_VALUES: dict[str, Callable[[Sequence[str]], bool]] = {
    "los": lambda values: _matching_share(values, _NUMBER_VALUE) > 0.9,
    "cost": lambda values: _matching_share(values, _NUMBER_VALUE) > 0.9,
    "site": lambda values: len(set(values)) < 0.5 * len(values),
    "discharged": lambda values: _matching_share(values, _DAY_VALUE) > 0.9,
    "disposition": lambda values: 1 < len(set(values)) <= MAX_DISPOSITIONS,
}


def _holds_codes(values: list[str]) -> bool:
    if _are_flags(values) or _are_one_and_two(values):
        return False
    dates = _matching_share(values, _DATE_VALUE)
    if not values or (_matching_share(values, _CODE_VALUE) > 0.5 and dates < 0.5):
        return True
    parts = _split_codes(values)
    return sum(bool(re.search(r"\d", part)) for part in parts) > 0.8 * len(parts)


def _matching_share(values: Sequence[str], pattern: re.Pattern[str]) -> float:
    return sum(bool(pattern.fullmatch(value)) for value in values) / max(1, len(values))
