"""Recognition: which coding system the values of a column are of, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from comorb.records.codes.system import CodingSystem, written_as_numbers
from comorb.records.codes.systems import SYSTEMS, coding_system, families

_RECOGNISED_SHARE = 0.8
_LISTED_SHARE = 0.5
_BETTER = 0.2
_WORSE = 0.05


@dataclass(frozen=True)
class Recognition:
    """The coding system that fits a column.

    Attributes
    ----------
    system
        The key of a coding system.
    matched
        Values that fit the system.
    total
        Values that are not missing.
    ambiguous
        Values that fit both ICD-9 and ICD-10, as some E and V codes do.
    rivals
        Other systems that the values fit about as well: names have to decide.
    """

    system: str
    matched: int
    total: int
    ambiguous: int
    rivals: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fit:
    """How well values fit a coding system, as shares of those that aren't missing.

    Attributes
    ----------
    written
        Values that are written as its codes are.
    listed
        Values that a publication lists as its codes or as headings of such.
    """

    written: float
    listed: float


def recognise(values: Iterable[str] | Mapping[str, int]) -> Recognition:
    """Recognise the coding system of a column.

    Parameters
    ----------
    values
        The distinct codes of the column, or each with its count.

    Returns
    -------
    Recognition
        'opaque' when fewer than four in five values look like one system or like ICD-9 and
        ICD-10 mixed.

    Examples
    --------
    >>> recognise(["428.0", "250.00", "V45.81"])
    Recognition(system='icd9cm', matched=3, total=3, ambiguous=1, rivals=())
    >>> recognise(["38.93", "96.04", "3.31"]).system
    'icd9proc'
    """
    present, floats = _present(values)
    diagnoses = _diagnoses(present, floats)
    good = {
        key: share
        for key, system in SYSTEMS.items()
        if system.kind in ("procedure", "drug") and (share := _good_fit(system, present, floats))
    }
    if not good:
        return diagnoses
    best = max(good, key=lambda key: (good[key].listed, good[key].written))
    total = diagnoses.total
    chosen = Recognition(best, round(good[best].written * total), total, 0)
    short = coding_system(best).kind == "drug" and all(len(raw.strip()) <= 3 for raw in present)
    if diagnoses.system == "opaque":
        return diagnoses if short else chosen
    own = _fit(coding_system(diagnoses.system), present, floats)
    gain = good[best].listed - own.listed
    if gain > _BETTER and not short:
        return chosen
    if good[best].written < own.written - _WORSE or gain < -_BETTER:
        return diagnoses
    return replace(diagnoses, rivals=(best,))


def fits(values: Iterable[str] | Mapping[str, int]) -> dict[str, Fit]:
    """Say how well values fit each coding system that knows its codes.

    Parameters
    ----------
    values
        Some values of a column, or each with its count.

    Returns
    -------
    dict of str to Fit
        By the key of the system. Values may fit several: '3893' is written as an ICD-9 diagnosis
        and as an ICD-9 procedure, and listed as the latter alone.

    Examples
    --------
    >>> fits(["3893", "8856"])["icd9cm"], fits(["3893", "8856"])["icd9proc"]
    (Fit(written=1.0, listed=0.0), Fit(written=1.0, listed=1.0))
    """
    present, floats = _present(values)
    return {
        key: _fit(system, present, floats)
        for key, system in SYSTEMS.items()
        if system.fit is not None
    }


def _fit(system: CodingSystem, present: Mapping[str, int], floats: bool) -> Fit:
    total = max(1, sum(present.values()))
    codes = _codes(system, present, floats)
    written = sum(present[raw] for raw in codes)
    listed = sum(present[raw] for raw, code in codes.items() if _is_listed(system, code))
    return Fit(written / total, listed / total)


def _good_fit(system: CodingSystem, present: Mapping[str, int], floats: bool) -> Fit | None:
    """Return how well values fit a system of procedures or drugs, None when it isn't well."""
    written = sum(present[raw] for raw in _codes(system, present, floats))
    if not written or written < _RECOGNISED_SHARE * sum(present.values()):
        return None
    fit = _fit(system, present, floats)
    return fit if fit.listed >= _LISTED_SHARE else None


def _present(values: Iterable[str] | Mapping[str, int]) -> tuple[dict[str, int], bool]:
    counts = values if isinstance(values, Mapping) else dict.fromkeys(values, 1)
    floats, opaque = written_as_numbers(counts), coding_system("opaque")
    missing = {raw for raw in counts if opaque.normalise(raw, floats).state == "missing"}
    return {raw: count for raw, count in counts.items() if raw not in missing}, floats


def _codes(system: CodingSystem, raws: Iterable[str], floats: bool) -> dict[str, str]:
    mended = system.mend(raws) if system.mend else {}
    codes = {raw: system.normalise(mended.get(raw, raw), floats).code for raw in raws}
    return {raw: code for raw, code in codes.items() if code and system.claims(code)}


def _is_listed(system: CodingSystem, code: str) -> bool:
    """Tell whether a code is known; one of ICD-10 may be cut or subdivided by a country."""
    if system.family == "icd10":
        return any(system.standing(code[:length]) for length in range(len(code), 3, -1)) or (
            len(code) == 3 and bool(system.standing(code))
        )
    if system.kind == "drug":
        return system.group_of(code) is not None
    return bool(system.standing(code))


def _diagnoses(present: Mapping[str, int], floats: bool) -> Recognition:
    """Recognise a system of diagnoses, which may be two that are mixed."""
    total = sum(present.values())
    claims = {
        name: {raw for raw in present if first.claims(first.normalise(raw, floats).code)}
        for name, (first, *_) in families().items()
    }

    def count(raws: Iterable[str]) -> int:
        return sum(present[raw] for raw in raws)

    if not total or count(set().union(*claims.values())) < _RECOGNISED_SHARE * total:
        return Recognition("opaque", total, total, 0)
    best = max(claims, key=lambda name: count(claims[name]))
    own = {raw: present[raw] for raw in claims[best]}
    system = next(one for one in reversed(families()[best]) if one.is_likely(own))
    matched = count(raw for raw in present if system.normalise(raw, floats).code)
    several = [raw for raw in present if sum(raw in some for some in claims.values()) > 1]
    return Recognition(system.key, matched, total, count(several))
