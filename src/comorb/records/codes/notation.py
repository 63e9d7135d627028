"""How codes are written, and their canonical form.

A code is text from beginning to end: '001.0' is a code and '1E11' is not a number. The
canonical form has no dot, no padding and capital letters ('250.00 ' → '25000').
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from comorb.errors import RecordsError

SYSTEMS = ("icd9cm", "icd10cm", "icd10", "opaque")

_MISSING = frozenset(
    {"", "?", ".", "-", "NULL", "NA", "N/A", "#N/A", "<NA>", "NAN", "NONE", "NIL", "\\N"}
    | {"UNK", "UNKNOWN", "MISSING", "NAT"}
)
_PADDING = re.compile(r"""^[\s'"\u200b\ufeff]+|[\s'"\u200b\ufeff]+$""")
_MARKS = re.compile(r"[\s.+*!#†‡–_-]+$")
_FLOAT = re.compile(r"[1-9][0-9]*\.0")
_DOTTED = re.compile(r"[0-9]+[.,][0-9]+")
_ICD9 = re.compile(
    r"(?!000)[0-9]{3}(?:\.?[0-9]{1,2})?"
    r"|V(?:0[1-9]|[1-8][0-9]|9[01])(?:\.?[0-9]{1,2})?"
    r"|E(?:0[0-2][0-9]|030|[89][0-9]{2})(?:\.?[0-9])?"
)
_ICD9_SHORT = re.compile(r"(?!0+(?:\.|$))(?P<head>[0-9]{1,2})(?P<tail>\.[0-9]{1,2})?")
_ICD9_FLOAT = re.compile(r"(?P<code>[1-9][0-9]{3,4})\.0")
_ICD10 = {
    "icd10cm": re.compile(r"[A-Z](?:[0-9][0-9A-Z]|A[0-9])(?:\.?[0-9A-Z]{1,4})?"),
    "icd10": re.compile(r"[A-Z][0-9]{2}(?:\.?[0-9]{1,3})?"),
}
_FILLER = re.compile(r"(?P<code>[A-Z][0-9][0-9A-Z])\.?X+")
_DAGGER = re.compile(r"(?P<code>[A-Z][0-9]{2}\.?[0-9X])[DA]")


class Normalised(NamedTuple):
    """A code in its canonical form, and what had to be done to it.

    ``code`` is empty when ``state`` is 'missing' or 'malformed'; 'repaired' means that lost
    leading zeros were put back or that the '.0' of a number was taken off.
    """

    code: str
    state: Literal["ok", "repaired", "missing", "malformed"]


def normalise(raw: str, system: str, floats: bool = False) -> Normalised:
    """Bring a code into its canonical form.

    Parameters
    ----------
    raw
        The code as it was written.
    system
        One of `SYSTEMS`.
    floats
        The column was written as numbers: '250.0' means 250, not 250.0.

    Returns
    -------
    Normalised
        The code and its state.

    Examples
    --------
    >>> normalise(" 250.00", "icd9cm")
    Normalised(code='25000', state='ok')
    >>> normalise("38", "icd9cm")
    Normalised(code='038', state='repaired')
    >>> normalise("G01*", "icd10").code
    'G01'
    """
    check_system(system)
    text = _PADDING.sub("", raw)
    if text.upper() in _MISSING:
        return Normalised("", "missing")
    repaired = floats and _FLOAT.fullmatch(text) is not None
    if repaired:
        text = text[:-2]
    if system != "opaque":
        text = _MARKS.sub("", text.upper().replace(",", "."))
        if not text:
            return Normalised("", "missing")
        fit = _fit_icd9(text) if system == "icd9cm" else _fit_icd10(text, system)
        if fit is None:
            return Normalised("", "malformed")
        repaired |= fit.state == "repaired"
        text = fit.code
    return Normalised(text, "repaired" if repaired else "ok")


def written_as_numbers(raw_codes: Iterable[str]) -> bool:
    """Tell whether every number among the codes ends in '.0', as a float column writes it."""
    numbers = [text for text in map(str.strip, raw_codes) if _DOTTED.fullmatch(text)]
    return len(numbers) > 1 and all(_FLOAT.fullmatch(text) for text in numbers)


def check_system(system: str) -> None:
    """Refuse a coding system that isn't known."""
    if system not in SYSTEMS:
        raise RecordsError(f"Expected a coding system out of {', '.join(SYSTEMS)}; got {system!r}.")


def _fit_icd9(text: str) -> Normalised | None:
    if _ICD9.fullmatch(text):
        return Normalised(text.replace(".", ""), "ok")
    if short := _ICD9_SHORT.fullmatch(text):
        code = short["head"].zfill(3) + (short["tail"] or "").replace(".", "")
        return Normalised(code, "repaired")
    if number := _ICD9_FLOAT.fullmatch(text):
        return Normalised(number["code"], "repaired")
    return None


def _fit_icd10(text: str, system: str) -> Normalised | None:
    if system == "icd10" and (dagger := _DAGGER.fullmatch(text)):
        text = dagger["code"]
    if filler := _FILLER.fullmatch(text):
        text = filler["code"]
    if _ICD10[system].fullmatch(text):
        return Normalised(text.replace(".", ""), "ok")
    return None
