"""Definitions: the rules of a cohort, or a set of codes, under a name in a small JSON file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comorb.errors import RecordsError
from comorb.fields import rules_of
from comorb.records.spec import CohortSpec

FORMAT, VERSION = "comorb-cohort", 1
RULES = tuple(rule.name for rule in rules_of(CohortSpec) if rule.saved)


@dataclass(frozen=True)
class Definition:
    """A cohort by its rules, as `CohortSpec` has them, or a set of codes."""

    name: str
    rules: dict[str, Any] = field(default_factory=dict)
    codes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return what the file holds."""
        what = {"codes": list(self.codes)} if self.codes else {"rules": self.rules}
        return {"format": FORMAT, "version": VERSION, "name": self.name, **what}


def read_definition(path: str | Path) -> Definition:
    """Read a cohort or a set of codes from its file; one of codes may also be a plain list."""
    name = Path(path).name
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise RecordsError("definition.unreadable", name=name) from None
    if not text.lstrip().startswith("{"):
        lines = tuple(line.strip() for line in text.splitlines() if line.strip())
        if not lines:
            raise RecordsError("definition.no_codes", name=name)
        return Definition(Path(path).stem, codes=lines)
    try:
        plain = json.loads(text)
        found = _parse(plain)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise RecordsError("definition.other", name=name) from None
    if plain["version"] != VERSION:
        raise RecordsError("definition.version", name=name, version=plain["version"], known=VERSION)
    return found


def _parse(plain: dict[str, Any]) -> Definition:
    """Return what a document defines; ValueError, KeyError or TypeError for another."""
    rules, codes = plain.get("rules", {}), tuple(plain.get("codes", ()))
    if plain["format"] != FORMAT or not (rules or codes) or not set(rules) <= set(RULES):
        raise ValueError("format")
    lists = [codes, *(value for value in rules.values() if isinstance(value, list))]
    if not all(isinstance(one, str | int | float | None) for each in lists for one in each):
        raise ValueError("rules")
    return Definition(str(plain["name"]), rules, codes)


def expanded(texts: list[str]) -> list[str]:
    """Return codes as they are given, and those of a file for each '@FILE'."""
    codes: list[str] = []
    for text in texts:
        if not text.startswith("@"):
            codes.append(text)
            continue
        found = read_definition(text[1:])
        if not found.codes:
            raise RecordsError("definition.cohort", file=Path(text[1:]).name)
        codes += found.codes
    return codes
