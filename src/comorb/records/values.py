"""Values: what the texts of a column mean, decided by its distinct values, which are few.

Ages become years, dates become days; what can't be read is counted in a note.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from importlib import resources
from typing import Any

from comorb.messages import Message

MARKS = frozenset({"", "?", ".", "-", "NULL", "NA", "N/A", "#N/A", "<NA>", "NAN", "\\N", "NAT"})
WORDS = frozenset({"NONE", "NIL", "UNK", "UNKNOWN", "MISSING"})
TIME = r"[ T:][0-9]{1,2}:[0-9]{2}.*$"

_WORDS = tomllib.loads(
    resources.files("comorb.records").joinpath("values.toml").read_text(encoding="utf-8")
)


def _meaning_of_words(table: str) -> dict[str, str]:
    return {word: meaning for meaning, words in _WORDS[table].items() for word in words.split()}


_YES_NO = _meaning_of_words("answers")
_SENTINELS = [set(group.split()) for group in _WORDS["sentinels"]["unknown"]]
_SEXES = _meaning_of_words("sexes")
_ISO_5218 = {"1": "male", "2": "female", "9": "other"}
_ISO_COLUMN = re.compile(r"iso|5218|bene_sex_ident", re.IGNORECASE)

_UNITS = {word: float(number) for word, number in _meaning_of_words("in_a_year").items()}
_AGES = [
    (re.compile(pattern, re.VERBOSE), form)
    for form, patterns in _WORDS["ages"].items()
    for pattern in patterns
]
_AGE_NOTES = {
    "range": "note.ages_range",
    "open": "note.ages_open",
    "unit": "note.ages_unit",
    "coded": "note.ages_coded",
    "impossible": "note.ages_impossible",
}
MAX_AGE = 120  # years: the oldest person of whom a document is known was 122

_NUMBER = re.compile(r"[-+]?[0-9]+([.,][0-9]+)*")
_THOUSANDS = re.compile(r"[-+]?[0-9]{1,3}(,[0-9]{3})+")

_YEAR_FIRST = (
    re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})(?:[ T].*)?"),
    re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})(?:\.0)?(?:[ T].*)?"),
)
_COMPACT = re.compile(r"[0-9]{7,8}(\.0)?")
_SLASHED = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4})(?:[ T].*)?")
_NAMED = re.compile(r"([0-9]{1,2})[-/. ]*([A-Za-z]{3})[a-z]*[-/., ]*([0-9]{4})(?:[ T:].*)?")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


@dataclass(frozen=True)
class Meanings:
    """What the values of a column mean: ``kind`` is what they become, float, date, int or str.

    ``of`` has the meaning of each distinct text, None where it is missing or can't be read; without
    it, a text is cast as it is. ``notes`` are for the ledger.
    """

    kind: type
    of: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()


def is_missing(text: str) -> bool:
    """Return whether a code, age, date or sex is missing; among other texts, only `MARKS` are."""
    plain = text.strip().upper()
    return plain in MARKS or plain in WORDS


def yes_no(text: str) -> bool | None:
    """Return what a yes or a no means, None for other texts."""
    answer = _YES_NO.get(text.strip().lower())
    return None if answer is None else answer == "yes"


def find_sentinels(texts: Collection[str]) -> set[str]:
    """Return the numbers among answers that say 'unknown', if they stand apart from the others.

    The other values must be less than half as large; beside 0, a -1 may be a value.

    >>> sorted(find_sentinels(["1", "2", "98", "99"])), find_sentinels(["1", "6", "7", "9"])
    (['98', '99'], set())
    """
    numbers = {text: text.strip().removesuffix(".0") for text in texts if not is_missing(text)}
    if not all(re.fullmatch(r"-?[0-9]{1,5}", number) for number in numbers.values()):
        return set()
    others = {int(number) for number in numbers.values() if number not in set().union(*_SENTINELS)}
    found: set[str] = set()
    for group in _SENTINELS if others else ():
        held = {int(number) for number in numbers.values() if number in group}
        low = min(map(int, group))
        if min(others) > 0 if low < 0 else 2 * max(others) < low:
            found |= {text for text, number in numbers.items() if number in group}
        else:
            others |= held
    return found


def sexes_of(texts: Collection[str], column: str = "") -> dict[str, str]:
    """Return 'female', 'male' or 'other' for those texts of a column that are known.

    With 'H' (hombre) and without 'F', 'M' is a woman (mujer). Numbers are read in a column that is
    named after ISO 5218.

    >>> sexes_of(["F", "männlich", "2"])
    {'F': 'female', 'männlich': 'male'}
    """
    letters = {_simple(text) for text in texts} & {"f", "h", "m"}
    known = _SEXES | ({"m": "female"} if letters == {"h", "m"} else {})
    if _ISO_COLUMN.search(column):
        known |= _ISO_5218
    pairs = ((text, known.get(_simple(text).removesuffix(".0"))) for text in texts)
    return {text: sex for text, sex in pairs if sex}


def same_sexes(words: Collection[str], wanted: Collection[str]) -> list[str]:
    """Return the words of a column for the wanted sexes: these very words, or others for them.

    >>> same_sexes(["Mujer", "Hombre"], ["F"])
    ['Mujer']
    """
    sexes = sexes_of(words)
    known = {*map(_simple, wanted), *sexes_of(wanted).values()}
    very = {_simple(word) for word in words} & known
    return [
        word for word in words if _simple(word) in very or (not very and sexes.get(word) in known)
    ]


def read_sexes(counts: Mapping[str, int], column: str) -> Meanings:
    """Keep a column's own words for sexes, with their counts, but for the numbers of ISO 5218."""
    by_number = _ISO_COLUMN.search(column) is not None
    present = {
        text: count
        for text, count in counts.items()
        if not is_missing(text) and not (by_number and text.strip() in ("0", "0.0"))
    }
    sexes = sexes_of(present, column)
    words = {text: sexes.get(text, text) if text[:1].isdigit() else text for text in present}
    strange = sum(count for text, count in present.items() if text not in sexes)
    note = Message("note.unknown_sex", n=strange, column=column)
    return Meanings(str, words, (note,) if strange else ())


def read_ages(counts: Mapping[str, int], column: str) -> Meanings:
    """Read ages as years: the middle of a range, from zero in 'under 18', or its closed end.

    The name of the column may have the unit, and the first digit of all ages may be it. No age is
    below 0 or above 120.
    """
    present = {text: count for text, count in counts.items() if not is_missing(text)}
    read = _coded_ages(present) or _age
    words = re.split(r"[^a-z]+", _simple(re.sub(r"([a-z])([A-Z])", r"\1_\2", column)))
    unit = next((word for word in words if len(word) > 2 and word in _UNITS), "y")
    ages = {text: read(_simple(text), unit) for text in present}
    forms: Counter[str] = Counter()
    for text, (_, form) in ages.items():
        forms[form] += present[text]
    noted = [(key, forms[form]) for form, key in _AGE_NOTES.items() if forms[form]]
    notes = [Message(key, n=count, column=column) for key, count in noted]
    years = {text: years for text, (years, _) in ages.items()}
    return _decide(float, years, present, column, Message("noun.age"), notes, forms["impossible"])


def read_age_units(counts: Mapping[str, int]) -> dict[str, str] | None:
    """Return the unit of each text of a column of units, as a word; None if they aren't known.

    >>> read_age_units({"4": 90, "3": 5})
    {'4': 'years', '3': 'months'}
    """
    present = {text: count for text, count in counts.items() if not is_missing(text)}
    simple = {text: _simple(text).removesuffix(".0") for text in present}
    if present and all(word in _UNITS for word in simple.values()):
        return simple
    usual = simple[max(present, key=present.__getitem__)] if present else ""
    for known in _WORDS["age_units"]:
        if usual == known["usual"] and {*simple.values()} <= known["units"].keys():
            return {text: known["units"][word] for text, word in simple.items()}
    return None


def read_numbers(counts: Mapping[str, int], column: str) -> Meanings:
    """Read numbers with a decimal point or comma; '1,234' may be either, so it stays text."""
    present = {text: count for text, count in counts.items() if not is_missing(text)}
    commas = [text.strip() for text in present if "," in text and "." not in text]
    if commas and all(_THOUSANDS.fullmatch(text) for text in commas):
        return Meanings(str, None, (Message("note.commas", column=column),))
    numbers = {text: _plain_number(text) for text in present}
    return _decide(float, numbers, present, column, Message("noun.number"))


def read_dates(counts: Mapping[str, int], column: str) -> Meanings:
    """Read dates in any usual form.

    Days above 12 in the column decide whether 03/04/2009 is in March or in April; without any, it
    stays text.
    """
    present = {text: count for text, count in counts.items() if not is_missing(text)}
    days_first = _has_days_first(present)
    written = {text: _add_slashes(text.strip()) if days_first else text.strip() for text in present}
    slashed = [parts for text in written.values() if (parts := _SLASHED.fullmatch(text))]
    open_order = [parts for parts in slashed if parts[2] != "."]
    day_first = any(
        _day(parts[4], parts[3], parts[1]) for parts in open_order if int(parts[1]) > 12
    )
    day_last = any(_day(parts[4], parts[1], parts[3]) for parts in open_order if int(parts[3]) > 12)
    if open_order and day_first == day_last:
        return Meanings(str, None, (Message("note.day_month", column=column),))
    days = {text: _date(one, day_last) for text, one in written.items()}
    form = Message("text.month_first") if day_last else Message("text.day_first")
    notes = [Message("note.days_without_marks", column=column, form=form)] if days_first else []
    return _decide(date, days, present, column, Message("noun.date"), notes)


def _has_days_first(present: Mapping[str, int]) -> bool:
    """Return whether numbers such as 15032021 end, rather than begin, with the year."""
    numbers = [text for text in map(str.strip, present) if _COMPACT.fullmatch(text)]
    begins = sum(_plausible(_date(text, False)) for text in numbers)
    swapped = [_add_slashes(text) for text in numbers]
    ends = sum(_plausible(_date(one, False)) or _plausible(_date(one, True)) for one in swapped)
    return ends > begins


def _plausible(day: date | None) -> bool:
    return day is not None and 1900 <= day.year < 2100


def _add_slashes(text: str) -> str:
    """Return 15032021 as 15/03/2021; a number may have lost its first zero."""
    digits = text.removesuffix(".0").zfill(8)
    return f"{digits[:2]}/{digits[2:4]}/{digits[4:]}" if _COMPACT.fullmatch(text) else text


def _decide(
    kind: type,
    values: Mapping[str, Any],
    present: Mapping[str, int],
    column: str,
    noun: str,
    notes: Sequence[str] = (),
    noted: int = 0,
) -> Meanings:
    """Return the meanings of a column; it stays text where most values can't be read.

    ``noted`` is how many of these the notes have.
    """
    lost = sum(count for text, count in present.items() if values[text] is None)
    if lost * 2 > sum(present.values()):
        return Meanings(str, None, (Message("note.stays_text", column=column, noun=noun),))
    if lost > noted:
        notes = (*notes, Message("note.values_lost", n=lost - noted, column=column, noun=noun))
    return Meanings(kind, values, tuple(notes))


def _simple(text: str) -> str:
    """Return a text in lower case, without accents and surrounding blanks."""
    letters = unicodedata.normalize("NFKD", text.strip().lower())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _coded_ages(
    present: Mapping[str, int],
) -> Callable[[str, str], tuple[float | None, str]] | None:
    """Return the function that reads ages whose first digit is the unit, if these are such."""
    bare = {text: text.strip().removesuffix(".0") for text in present}
    for code in _WORDS["coded_ages"]:
        width = len(code["usual"].partition("]")[2]) + 1
        numbers = {text: number.zfill(width) for text, number in bare.items()}
        usual = sum(n for text, n in present.items() if re.fullmatch(code["usual"], numbers[text]))
        coded = all(re.fullmatch(code["pattern"], number) for number in numbers.values())
        if coded and 2 * usual > sum(present.values()):
            return partial(_coded_age, code, width)
    return None


def _coded_age(code: Mapping[str, Any], width: int, text: str, _: str) -> tuple[float | None, str]:
    parts = re.fullmatch(code["pattern"], text.removesuffix(".0").zfill(width))
    if parts is None or parts["unit"] is None:
        return None, "impossible"
    years = int(parts["low"]) / code["in_a_year"][parts["unit"]]
    return _possible(years + code.get("added", {}).get(parts["unit"], 0), "coded")


def _possible(years: float, form: str) -> tuple[float | None, str]:
    return (years, form) if 0 <= years <= MAX_AGE else (None, "impossible")


def _age(text: str, usual_unit: str = "y") -> tuple[float | None, str]:
    """Return an age in years, and the form in which it was written."""
    if (days := _WORDS["startage"].get(text.removesuffix(".0"))) is not None:
        return days / _UNITS["days"], "coded"
    for pattern, form in _AGES:
        parts = pattern.fullmatch(text)
        in_a_year = _UNITS.get(parts["unit"] or usual_unit) if parts else None
        if parts is None or in_a_year is None:
            continue
        low, high = parts["low"], parts.groupdict().get("high")
        years = float(low.replace(",", ".") or 0)
        if high:
            years = (years + float(high)) / 2
        return _possible(years / in_a_year, "unit" if form == "plain" and in_a_year != 1 else form)
    return None, "lost"


def _plain_number(text: str) -> float | None:
    """Return the number of a text; a mark that occurs once, and last, precedes the decimals."""
    bare = re.sub(r"[\s'’]", "", text)
    if not _NUMBER.fullmatch(bare):
        return None
    mark = "," if bare.rfind(",") > bare.rfind(".") else "."
    whole, _, decimals = bare.rpartition(mark) if bare.count(mark) == 1 else (bare, "", "")
    return float(f"{re.sub('[.,]', '', whole)}.{decimals or 0}")


def _date(text: str, day_last: bool) -> date | None:
    for pattern in _YEAR_FIRST:
        if parts := pattern.fullmatch(text):
            return _day(parts[1], parts[2], parts[3])
    if parts := _SLASHED.fullmatch(text):
        swapped = day_last and parts[2] != "."
        return _day(parts[4], parts[1 if swapped else 3], parts[3 if swapped else 1])
    if (parts := _NAMED.fullmatch(text)) and parts[2].lower() in _MONTHS:
        return _day(parts[3], str(_MONTHS.index(parts[2].lower()) + 1), parts[1])
    return None


def _day(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None
