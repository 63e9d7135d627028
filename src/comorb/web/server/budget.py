"""Budget: how many different questions may be asked of data by those who did not bring them.

Noise averages out over many questions whose answers differ by the same few patients, so their
number is limited. A question is what defines a cohort; to ask one again is free.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any

from comorb.web.server.refusals import RefusedError
from comorb.web.server.store import Store

QUESTIONS, DAYS = 30, 7
_COHORT = (
    *("having", "without", "age", "sex", "dates", "at_least", "level", "code_map", "chronic"),
)
_SETS = ("having", "without", "sex")
_ASKED = "FROM questions WHERE user = ? AND data = ? AND at > ?"
_ADD = (
    "INSERT OR IGNORE INTO questions SELECT ?, ?, ?, ? "
    f"WHERE (SELECT count(*) {_ASKED}) < ? RETURNING at"
)
_KNOWN = "SELECT 1 FROM questions WHERE user = ? AND data = ? AND digest = ?"
_COUNT = f"SELECT count(*) AS asked, min(at) AS first {_ASKED}"


def question(rules: Mapping[str, Any], within: Mapping[str, Any] | None = None) -> str:
    """Return a digest of what defines the records, of all or within a cluster of a run."""
    asked = {name: rules[name] for name in _COHORT if name in rules}
    asked |= {name: sorted(set(asked[name])) for name in _SETS if name in asked}
    plain = json.dumps([asked, within], sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()


def questions_left(store: Store, user: str, data: str) -> int:
    """Return how many more different questions a user may ask of data now."""
    (found,) = store.query(_COUNT, user, data, _since())
    return max(QUESTIONS - int(found["asked"]), 0)


def spend(store: Store, user: str, data: str, digest: str) -> int:
    """Count a question, and return how many are left; one too many is refused."""
    asked = (user, data, digest, time.time(), user, data, _since(), QUESTIONS)
    if store.query(_ADD, *asked):
        store.audit(user, "count", data)
    elif not store.query(_KNOWN, user, data, digest):
        (found,) = store.query(_COUNT, user, data, _since())
        again = time.strftime("%Y-%m-%d %H:%M", time.gmtime(found["first"] + DAYS * 86400))
        raise RefusedError(
            429,
            f"You have asked {QUESTIONS} different questions of these data within {DAYS} days, "
            "which is the most where you did not bring them; the next can be asked at "
            f"{again} UTC.",
        )
    return questions_left(store, user, data)


def _since() -> float:
    return time.time() - DAYS * 86400
