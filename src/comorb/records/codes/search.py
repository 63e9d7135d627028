"""Search: what people type for a diagnosis, in words or as a pattern of codes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache

from comorb.records.codes.systems import SYSTEMS
from comorb.records.codes.tables import expand_span, read_table

_WORDS_FILE = "everyday_words.csv"
_Index = dict[str, list[tuple[str, ...]]]
_FAMILIES = {"icd9cm": "icd9", "icd10cm": "icd10", "icd10": "icd10"}


def fold_text(text: str) -> str:
    """Return a text as searches compare it: in small letters, without accents.

    >>> fold_text("Neumonía")
    'neumonia'
    """
    apart = unicodedata.normalize("NFD", text.lower().replace("·", "").replace("’", "'"))
    return "".join(sign for sign in apart if not unicodedata.combining(sign))


def everyday_words(
    codes: Sequence[str], names: Sequence[str], system: str
) -> tuple[tuple[str, ...], ...]:
    """Return the everyday words for each code, folded.

    A code of the ICD is found by its prefix, a group by its codes, and any other code by a title
    with the first of the words. ``system`` may be several, as in 'icd10cm+icd9cm'.
    """
    keys = [key for word in system.split() for key in word.rpartition(":")[2].split("+")]
    known = tuple(key for key in keys if key in _FAMILIES)
    starts, wholes = _build_index(known)
    words_of_codes = []
    for code, name in zip((code.rpartition(":")[2] for code in codes), names, strict=True):
        found = list(wholes.get(code, ()))
        if any(SYSTEMS[key].normalise(code).state == "ok" for key in known):
            heads = (code[:length] for length in range(3, len(code) + 1))
            found += [words for head in heads for words in starts.get(head, ())]
        else:
            title = f" {fold_text(name)}"
            found += [one for one in _read_words() if f" {one[0]}" in title]
        words_of_codes.append(tuple(dict.fromkeys(word for words in found for word in words)))
    return tuple(words_of_codes)


@cache
def _read_words() -> tuple[tuple[str, ...], ...]:
    """Return the words of each line of the table."""
    rows = read_table(_WORDS_FILE)
    return tuple(tuple(dict.fromkeys(map(fold_text, row["words"].split(";")))) for row in rows)


@cache
def _build_index(keys: tuple[str, ...]) -> tuple[_Index, _Index]:
    """Return the words by prefixes of codes of some systems, and by whole categories and groups."""
    starts: _Index = {}
    wholes: _Index = {}
    for row, words in zip(read_table(_WORDS_FILE), _read_words(), strict=True):
        whole: set[str] = set()
        for key in keys:
            for part in row[_FAMILIES[key]].split():
                for stem in expand_span(part) or [part]:
                    starts.setdefault(stem, []).append(words)
                    above = (SYSTEMS[key].category(stem), SYSTEMS[key].roll_up(stem, "group"))
                    whole |= {*above, *SYSTEMS[key].shared(stem)} - {stem}
        for one in whole:
            wholes.setdefault(one, []).append(words)
    return starts, wholes


_BREAKS = re.compile(r"[,;\t\r\n]+")
_OPEN_END = re.compile(r"[.]?[*%]+$|[.][-–x]+$", re.IGNORECASE)  # V*, I50.-, I50.x
_RANGE = re.compile(r"\s*(?:-|–|—|\.\.|\bto\b|\ba\b)\s*", re.IGNORECASE)
_ALL_CODES = re.compile(
    r"(?:all|todos los|tots els)?\s*(?:codes?|códigos?|codigos?|codis?)?\s*"
    r"(?P<head>[a-z0-9.]+)\s*(?:codes?)?",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?P<head>[A-Z]{2,})(?P<number>[0-9]+)")  # groups, such as CCS108
_SHORT = re.compile(r"[0-9]{1,2}")


def normalise_code(code: str) -> str:
    """Return a code as it is compared: without dots and blanks, in capitals."""
    return code.replace(".", "").strip().upper()


def split_list(text: str) -> list[str]:
    """Return the parts of a list with commas, semicolons, tabs or new lines between.

    >>> split_list("402, 404;V*")
    ['402', '404', 'V*']
    """
    parts = (part.strip().strip("\"'").strip() for part in _BREAKS.split(text))
    return [part for part in parts if part]


def is_pattern(text: str) -> bool:
    """Return whether a text may stand for several codes by its form."""
    return len(split_list(text)) > 1 or _compile_pattern(text) is not None


def find_codes(text: str, codes: Sequence[str], begins: Sequence[bool]) -> list[int]:
    """Return the places of the codes that a text, which is no list, stands for.

    A code stands for itself and, where ``begins`` is true, for all that begin with it; what stands
    before a colon may be left out. A text that is no code is a pattern.

    >>> find_codes("V01-V03", ("428", "V01", "V02", "V10"), [False] * 4)
    [1, 2]
    """
    wanted, wholes = normalise_code(text), [normalise_code(code) for code in codes]
    tails = [whole.rpartition(":")[2] for whole in wholes]
    for forms in (wholes, tails):
        found = [
            place
            for place, (form, start) in enumerate(zip(forms, begins, strict=True))
            if (form.startswith(wanted) if start else form == wanted)
        ]
        if found:
            return found
    head, colon, tail = text.rpartition(":")
    meant = _compile_pattern(tail)
    if meant is None:
        return []
    kind = normalise_code(head)
    return [
        place
        for place, (whole, form) in enumerate(zip(wholes, tails, strict=True))
        if (not colon or whole.startswith(f"{kind}:")) and meant(form)
    ]


def _compile_pattern(text: str) -> Callable[[str], bool] | None:
    """Return the predicate of a pattern of codes; None for what is no pattern."""
    if _OPEN_END.search(text):
        return _compile_wildcard(f"{normalise_code(_OPEN_END.sub('', text))}*")
    if "*" in text or "%" in text:
        return _compile_wildcard(normalise_code(text))
    ends = _RANGE.split(text.strip())
    if len(ends) == 2 and all(ends) and all(re.search(r"\d", end) for end in ends):
        return _compile_range(*map(normalise_code, ends))
    words = _ALL_CODES.fullmatch(text.strip())
    head = normalise_code(words["head"]) if words else ""
    if words and head != normalise_code(text) and len(words["head"]) <= 3:
        return lambda code: code.startswith(head)
    return None


def _compile_wildcard(text: str) -> Callable[[str], bool]:
    form = re.compile("".join(".*" if sign in "*%" else re.escape(sign) for sign in text))
    return lambda code: form.fullmatch(code) is not None


def _compile_range(low: str, high: str) -> Callable[[str], bool]:
    """Return whether a code, or the code that it begins with, lies in a range, as a predicate."""
    if len(high) < len(low) and high.isdigit() and not low.isdigit():
        high = low[: len(low) - len(high)] + high  # V01-91
    numbered = _NUMBERED.fullmatch(low), _NUMBERED.fullmatch(high)
    if numbered[0] and numbered[1] and numbered[0]["head"] == numbered[1]["head"]:
        group, (first, last) = numbered[0]["head"], (int(one["number"]) for one in numbered if one)

        def inside(code: str) -> bool:
            own = _NUMBERED.fullmatch(code)
            return bool(own and own["head"] == group and first <= int(own["number"]) <= last)

        return inside
    low, high = (end.zfill(3) if _SHORT.fullmatch(end) else end for end in (low, high))
    return lambda code: code[: len(low)] >= low and code[: len(high)] <= high
