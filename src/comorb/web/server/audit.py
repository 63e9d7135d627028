"""Audit: the log of who did what, in which each act seals the one before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

COMMAND_LINE = "command line"  # who acts where nobody signed in
FIELDS = ("number", "at", "user", "action", "target")
SCHEMA = """
CREATE TABLE IF NOT EXISTS audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL, user TEXT NOT NULL, action TEXT NOT NULL, target TEXT NOT NULL,
    seal TEXT NOT NULL
);
CREATE TRIGGER IF NOT EXISTS audit_stays BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
CREATE TRIGGER IF NOT EXISTS audit_grows BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
CREATE TRIGGER IF NOT EXISTS audit_once BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
"""


def seal(before: str, act: Mapping[str, Any]) -> str:
    """Return the SHA-256 of an act and of the seal before it, which is empty for the first."""
    plain = json.dumps([before, *(act[field] for field in FIELDS)])
    return hashlib.sha256(plain.encode()).hexdigest()


def first_break(acts: Iterable[Mapping[str, Any]], last: int) -> int | None:
    """Return the number of the first act that is missing, changed or out of place, if any is.

    ``last`` is the number that the database gave out last, which shows when the end was cut off.
    """
    before, number = "", 0
    for number, act in enumerate(acts, 1):
        if act["number"] != number or act["seal"] != seal(before, act):
            return number
        before = act["seal"]
    return None if number == last else number + 1
