"""Patterns: a text that stands for several codes, such as V*, V01-V91, 'all V codes' or a list."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_BREAKS = re.compile(r"[,;\t\r\n]+")
_OPEN = re.compile(r"[.]?[*%]+$|[.][-–x]+$", re.IGNORECASE)  # V*, I50.-, I50.x
_RANGE = re.compile(r"\s*(?:-|–|—|\.\.|\bto\b|\ba\b)\s*", re.IGNORECASE)
_ALL = re.compile(
    r"(?:all|todos los|tots els)?\s*(?:codes?|códigos?|codigos?|codis?)?\s*"
    r"(?P<head>[a-z0-9.]+)\s*(?:codes?)?",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?P<head>[A-Z]{2,})(?P<number>[0-9]+)")  # groups, such as CCS108
_SHORT = re.compile(r"[0-9]{1,2}")


def plain(code: str) -> str:
    """Return a code as it is compared: without dots and blanks, in capitals."""
    return code.replace(".", "").strip().upper()


def listed(text: str) -> list[str]:
    """Return the parts of a list with commas, semicolons, tabs or new lines between.

    >>> listed("402, 404;V*")
    ['402', '404', 'V*']
    """
    parts = (part.strip().strip("\"'").strip() for part in _BREAKS.split(text))
    return [part for part in parts if part]


def is_pattern(text: str) -> bool:
    """Tell whether a text may stand for several codes by how it is written."""
    return len(listed(text)) > 1 or _meant(text) is not None


def places(text: str, codes: Sequence[str], begins: Sequence[bool]) -> list[int]:
    """Return the places of the codes that one text stands for, which is no list.

    A code stands for itself and, where ``begins`` says so, for all that begin with it; what stands
    before a colon may be left out. A text that is no code is a pattern.

    >>> places("V01-V03", ("428", "V01", "V02", "V10"), [False] * 4)
    [1, 2]
    """
    wanted, wholes = plain(text), [plain(code) for code in codes]
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
    meant = _meant(tail)
    if meant is None:
        return []
    kind = plain(head)
    return [
        place
        for place, (whole, form) in enumerate(zip(wholes, tails, strict=True))
        if (not colon or whole.startswith(f"{kind}:")) and meant(form)
    ]


def _meant(text: str) -> Callable[[str], bool] | None:
    """Return what tells whether a code is meant by a pattern; None for what is none."""
    if _OPEN.search(text):
        return _wild(f"{plain(_OPEN.sub('', text))}*")
    if "*" in text or "%" in text:
        return _wild(plain(text))
    ends = _RANGE.split(text.strip())
    if len(ends) == 2 and all(ends) and all(re.search(r"\d", end) for end in ends):
        return _between(*map(plain, ends))
    said = _ALL.fullmatch(text.strip())
    if said and plain(said["head"]) != plain(text) and len(said["head"]) <= 3:
        head = plain(said["head"])
        return lambda code: code.startswith(head)
    return None


def _wild(text: str) -> Callable[[str], bool]:
    form = re.compile("".join(".*" if sign in "*%" else re.escape(sign) for sign in text))
    return lambda code: form.fullmatch(code) is not None


def _between(low: str, high: str) -> Callable[[str], bool]:
    """Return what tells whether a code, or the code that it begins with, lies in a range."""
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
