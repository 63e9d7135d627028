"""Names of columns in eight languages: the probable role of a column by its name."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Sequence
from importlib import resources
from typing import Any

_TABLES: dict[str, Any] = tomllib.loads(
    resources.files("comorb.records.layouts").joinpath("names.toml").read_text(encoding="utf-8")
)


def _fill(pattern: str) -> str:
    """Return a pattern without white space, with its parts filled in."""
    parts: dict[str, str] = _TABLES["parts"]
    return re.sub(r"\{([a-z]+)\}", lambda m: _fill(parts[m[1]]), "".join(pattern.split()))


def _compile(name: str) -> re.Pattern[str]:
    return re.compile(_fill(_TABLES["names"][name]))


# For each role or kind of code, patterns from the surest to the weakest.
ROLE_NAMES = {role: tuple(map(_fill, some)) for role, some in _TABLES["roles"].items()}
KIND_CODE_NAMES = {kind: tuple(map(_fill, some)) for kind, some in _TABLES["kind_codes"].items()}
KIND_TEXT_NAMES = {kind: _fill(pattern) for kind, pattern in _TABLES["kind_texts"].items()}
AGE_UNIT_NAME = _compile("age_unit")
WEIGHT_NAME, DESCRIPTION_NAME = _compile("weight"), _compile("description")
CODE_NAME, WEAK_CODE_NAME = _compile("code"), _compile("weak_code")
PLAIN_CODE_NAME, NOT_CODE_NAME = _compile("plain_code"), _compile("not_code")
NOT_CODE_OF_KIND_NAME, NOT_ITEM_NAME = _compile("not_code_of_kind"), _compile("not_item")
DIAGNOSIS_NAME, PROCEDURE_NAME = _compile("diagnosis"), _compile("procedure")
_LABEL, _CODED, _AMOUNT = _compile("label"), _compile("coded"), _compile("amount")
_ADDITIVE, _RUN_TOGETHER = _compile("additive"), _compile("run_together")


def normalise_name(name: str) -> str:
    """Return a name in small letters without accents, its words between underscores.

    >>> list(map(normalise_name, ("Diagnóstico Principal", "hadmId", "diagnosisstring")))
    ['diagnostico_principal', 'hadm_id', 'diagnosis_string']
    """
    bare = unicodedata.normalize("NFKD", name)
    bare = "".join(letter for letter in bare if not unicodedata.combining(letter))
    spaced = re.sub(r"([a-z])([A-Z])", r"\1_\2", bare).lower()
    return _RUN_TOGETHER.sub(r"\1_\2", re.sub(r"[^a-z0-9]+", "_", spaced).strip("_"))


def first_match(names: Sequence[str], patterns: Sequence[str]) -> str | None:
    """Return the first name that fits the surest pattern."""
    simple = {name: normalise_name(name) for name in names}
    matches = (name for one in patterns for name in names if re.fullmatch(one, simple[name]))
    return next(matches, None)


def is_label(name: str) -> bool:
    """Return whether the values of a column are labels of some kind: hospitals, payers, groups.

    >>> is_label("discharge_disposition_id"), is_label("DRG"), is_label("length_of_stay")
    (True, True, False)
    """
    return bool(_LABEL.search(normalise_name(name))) and not is_amount(name)


def is_coded(name: str) -> bool:
    """Return whether the numbers of a column stand for something else than an amount."""
    return is_label(name) or (bool(_CODED.search(normalise_name(name))) and not is_amount(name))


def is_amount(name: str) -> bool:
    """Return whether the numbers of a column are amounts: ages, days, costs, weights, counts."""
    return bool(_AMOUNT.search(normalise_name(name)))


def is_additive(name: str) -> bool:
    """Return whether amounts under a name can be added up over visits: days in bed, money, counts.

    >>> is_additive("total_charges"), is_additive("icu_days"), is_additive("age")
    (True, True, False)
    """
    return bool(_ADDITIVE.search(normalise_name(name))) or find_role(name) in ("los", "cost")


def names_matching(names: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    """Return the names in which a pattern occurs."""
    return [name for name in names if pattern.search(normalise_name(name))]


def find_role(name: str) -> str | None:
    """Return the role that a column probably has by its name.

    >>> find_role("days_of_care"), find_role("ward")
    ('los', None)
    """
    return next((role for role, sure in ROLE_NAMES.items() if first_match([name], sure)), None)


def resolve_name(name: str, names: Sequence[str]) -> str:
    """Return the name that a column goes by: that of its role, where it got that one."""
    role = find_role(name)
    return role if role and name not in names and role in names else name
