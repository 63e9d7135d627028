"""ATC: drugs by organ, therapeutic use and substance; a category has 4 characters, a group 3."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, partial

from comorb.records.codes.system import CodingSystem, NormalisedCode
from comorb.records.codes.tables import read_titles

_CODE = re.compile(r"[ABCDGHJLMNPRSV](?:[0-9]{2}(?:[A-Z](?:[A-Z](?:[0-9]{2})?)?)?)?")


def _normalise(text: str) -> NormalisedCode | None:
    """Return the canonical form of a code of any of the five levels."""
    return NormalisedCode(text, "ok") if _CODE.fullmatch(text) else None


@cache
def _group_table() -> Mapping[str, str | None]:
    return {code: code for code in read_titles("atc_groups.csv") if len(code) == 3}


def _describe_code(code: str) -> str | None:
    titles = read_titles("atc_groups.csv") | read_titles("atc_chapters.csv")
    return next((titles[code[:n]] for n in (4, 3, 1) if code[:n] in titles), None)


SYSTEM = CodingSystem(
    "atc",
    "ATC",
    _normalise,
    lambda code: code[:4],
    partial(read_titles, "atc_chapters.csv"),
    _group_table,
    _describe_code,
    url="whocc.no/atc",
    edition=re.compile(r"(who)?atc"),
    not_diseases=re.compile(r"(?!)"),
    kind="drug",
)
