"""Layouts: which columns of a table hold codes, ids and covariates, told by names and values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal

from comorb.errors import RecordsError

Kind = Literal["wide", "long", "delimited", "binary", "omop", "fhir"]
KINDS: tuple[Kind, ...] = ("wide", "long", "delimited", "binary", "omop", "fhir")

Sample = dict[str, list[str]]


@dataclass(frozen=True)
class Layout:
    """How records are laid out in a table; whatever is None is recognised.

    Attributes
    ----------
    kind : str
        'wide' (a row a record, codes in several columns), 'long' (a row a code), 'delimited'
        (a row a record, its codes in one text), 'binary' (a 0/1 column a code), 'omop', 'fhir'.
    codes : tuple of str
        The columns that hold codes.
    record, patient : str
        The columns with the id of the visit and of the patient.
    part : str
        In a wide table, the column that numbers the rows of one record.
    separator : str
        In a delimited table, what stands between two codes.
    version : str
        The column that says which edition of the ICD a code is from.
    age, sex, date, weight : str
        Covariates that get these names, and the column with the weight of a record, which is
        never recognised but has to be named.
    """

    kind: Kind | None = None
    codes: tuple[str, ...] | None = None
    record: str | None = None
    patient: str | None = None
    part: str | None = None
    separator: str | None = None
    version: str | None = None
    age: str | None = None
    sex: str | None = None
    date: str | None = None
    weight: str | None = None

    @property
    def roles(self) -> dict[str, str]:
        """The columns that are given a role, by role; the code columns aside."""
        roles = ("record", "patient", "part", "version", "age", "sex", "date", "weight")
        return {role: column for role in roles if (column := getattr(self, role)) is not None}


_ID = r"(_?(id|ids|no|nr|nbr|num|number|key|sk|identifier))"
_VISIT = "hadm|encounter|enc|visit|visit_occurrence|claim|clm|record|rec|stay|admission|adm|episode"
_PERSON = "subject|patient|pat|person|member|bene|beneficiary|desynpuf|individual|participant"
_ROLES = {
    "record": [
        rf"({_VISIT}|discharge|case|spell|csn|fin|key_nis|key){_ID}",
        r"record|visit|encounter|claim|csn|spell|key_nis|key_nrd",
        r"id|key|uid|identifier",
    ],
    "patient": [
        rf"({_PERSON}|mrn|nhs|enrollee|client|resident|p){_ID}",
        r"patient|subject|person|mrn|enrolid|visitlink|nrd_visitlink",
    ],
    "part": [r"segment|segment_no|line|line_no|line_num|part|seq|seq_num"],
    "version": [
        r"(icd|dx|diag|code|dgns|coding)_?(version|vers|vrsn|type|system|edition)(_cd)?",
        r"version|codesystem|vocabulary|vocabulary_id",
    ],
    "age": [
        r"age|age_years|age_in_years|years_of_age|patient_age|anchor_age|age_at_\w+|agey|alter"
    ],
    "sex": [r"sex|gender|patient_sex|sex_cd|gender_cd|bene_sex_ident_cd|geschlecht"],
    "date": [
        r"\w*(admit|admission|admsn|adm)\w*_?(date|dt|time|datetime)|admittime",
        r"(visit|encounter|claim|record|start|clm_from|from|event|service|dx|diagnosis)"
        r"(_start)?_?(date|dt|time|datetime)",
        r"date|datum",
    ],
}
_CODE = re.compile(
    r"(^|_)(p|s)?(dx|dgns|diag\w*|dgn|icd(9|10)?(cm)?|i9|i10|snomed|condition|comorbidity|problem)s?"
    r"(_|\d|$)"
)
_PLAIN_CODE = re.compile(r"codes?(_?\d+)?")
_NOT_CODE = re.compile(
    r"(^|_)(proc\w*|prcdr|pr|px|cpt|hcpcs|drg|adm\w*|date|dt|time|poa|present|desc\w*|names?|title|"
    r"text|label|version|vers|vrsn|type|system|seq|num|n|number|count|status|flag|rank|position|"
    r"priority|id|group|grp|chapter|onset|start|end)(_|\d|$)"
)
_CODE_VALUE = re.compile(r"[^\s,;|/\"]{1,18}")
_DATE_VALUE = re.compile(r"\d{4}-\d\d-\d\d.*|\d\d?/\d\d?/\d{2,4}")
_ICD_VALUE = re.compile(r"[A-TV-Z]\d[0-9A-Z](\.?[0-9A-Z]{1,4})?|[EV]?\d{2,3}\.\d{1,2}")
_FLAG_VALUE = re.compile(r"[01](\.0)?|true|false", re.IGNORECASE)
_BETWEEN = re.compile(r"\s*[;,|/\s]\s*")
_OUTCOME = re.compile(
    r"(^|_)(sex|gender|male|female|died|dead|death|deceased|mort\w*|readm\w*|newborn|emergency|"
    r"urgent|elective|survived|icu|outcome)(_|$)"
)
_MISSING = {"", "na", "n/a", "null", "none", "nan", "?", "-", ".", "\\n", "<na>"}


def recognise_layout(label: str, columns: Sequence[str], sample: Sample, given: Layout) -> Layout:
    """Return the layout of a table: what was given, and the rest recognised.

    Parameters
    ----------
    label : str
        What to call the table in a message.
    columns : sequence of str
        The names of its columns.
    sample : dict
        The values of some rows of each column, as text, missing ones left out.
    given : Layout
        What the caller knows.

    Raises
    ------
    RecordsError
        When a named column isn't there, or no column holds codes.
    """
    _check_columns(label, columns, given)
    sample = {
        name: [v for v in values if v.lower() not in _MISSING] for name, values in sample.items()
    }
    codes = given.codes or _code_columns(columns, sample, given)
    flags = () if given.codes or given.kind not in (None, "binary") else _flags(columns, sample)
    if given.kind == "binary" or (not codes and len(flags) > 1):
        kind: Kind = "binary"
        codes = given.codes or flags
    else:
        kind = given.kind or _kind(codes, sample)
    if not codes:
        raise RecordsError(
            f"{label}: no column was recognised as holding diagnosis codes. Its columns are "
            f"{_listed(columns)}; name those with the codes."
        )
    layout = replace(given, kind=kind, codes=codes)
    found: dict[str, Any] = dict(layout.roles)
    for role, patterns in _ROLES.items():
        if role not in found:
            taken = {*codes, *found.values()}
            free = [column for column in columns if column not in taken]
            found[role] = _first(free, patterns)
    layout = replace(layout, **found)
    if layout.version and not given.version and not _editions(sample[layout.version]):
        layout = replace(layout, version=None)
    if kind == "delimited" and layout.separator is None:
        layout = replace(layout, separator=_separator(sample[codes[0]]))
    if kind == "long":
        layout = replace(layout, part=None)
        if given.kind is None and layout.record is None and layout.patient is None:
            return replace(layout, kind="wide")
    return layout


def edition(value: str) -> str | None:
    """Return the coding system that a value of a version column means."""
    text = re.sub(r"[^a-z0-9]", "", value.lower())
    if re.fullmatch(r"(icd)?0?9(cm)?(0)?", text):
        return "icd9cm"
    return "icd10cm" if re.fullmatch(r"(icd)?(10|100)(cm)?|0", text) else None


def _check_columns(label: str, columns: Sequence[str], given: Layout) -> None:
    for name in (*(given.codes or ()), *given.roles.values()):
        if name not in columns:
            near = get_close_matches(name, columns, 3, 0.5) or columns
            raise RecordsError(f"{label} has no column {name!r}; the nearest are {_listed(near)}.")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:12])
    return shown if len(names) <= 12 else f"{shown} and {len(names) - 12:,} more"


def _plain(name: str) -> str:
    spaced = re.sub(r"([a-z])([A-Z])", r"\1_\2", name)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def _first(columns: Sequence[str], patterns: Sequence[str]) -> str | None:
    for pattern in patterns:
        for name in columns:
            if re.fullmatch(pattern, _plain(name)):
                return name
    return None


def _code_columns(columns: Sequence[str], sample: Sample, given: Layout) -> tuple[str, ...]:
    free = [name for name in columns if name not in given.roles.values()]
    named = [c for c in free if _CODE.search(_plain(c)) and not _NOT_CODE.search(_plain(c))]
    plain = [c for c in free if _PLAIN_CODE.fullmatch(_plain(c))]
    icd = [c for c in free if _share(sample[c], _ICD_VALUE) > 0.9]
    for candidates in (named, plain, icd):
        held = tuple(name for name in candidates if _holds_codes(sample[name]))
        if any(sample[name] for name in held):
            return held
    return ()


def _holds_codes(values: list[str]) -> bool:
    if values and all(_FLAG_VALUE.fullmatch(value) for value in values):
        return False
    parts = [part for value in values for part in _BETWEEN.split(value) if part]
    whole = _share(values, _CODE_VALUE) > 0.5 and _share(values, _DATE_VALUE) < 0.5
    wordless = [part for part in parts if re.search(r"\d", part)]
    return not values or whole or len(wordless) > 0.8 * len(parts)


def _share(values: list[str], pattern: re.Pattern[str]) -> float:
    return sum(bool(pattern.fullmatch(value)) for value in values) / max(1, len(values))


def _flags(columns: Sequence[str], sample: Sample) -> tuple[str, ...]:
    flags = [c for c in columns if sample[c] and _share(sample[c], _FLAG_VALUE) == 1]
    coded = [name for name in flags if re.fullmatch(r"[A-Z]?\d\d[\w.]*", name.upper())]
    return tuple(c for c in (coded or flags) if not _OUTCOME.search(_plain(c)))


def _kind(codes: Sequence[str], sample: Sample) -> Kind:
    if len(codes) > 1:
        return "wide"
    values = sample[codes[0]] if codes else []
    joined = [value for value in values if _BETWEEN.search(value.strip())]
    return "delimited" if len(joined) > 0.05 * len(values) else "long"


def _separator(values: list[str]) -> str:
    return next((mark for mark in ";|,/" if any(mark in value for value in values)), " ")


def _editions(values: list[str]) -> bool:
    return bool(values) and all(edition(value) for value in values)
