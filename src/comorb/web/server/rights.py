"""Rights: who sees full counts, who protected ones, and the budget of questions."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from comorb.fields import as_sets, question_of
from comorb.messages import render_all
from comorb.profiles.rounded import round_count, round_lines, round_notes
from comorb.records.ledger import Line
from comorb.records.spec import CohortSpec
from comorb.web.server.access import User
from comorb.web.server.security import RefusedError
from comorb.web.server.store import Row, Store
from comorb.web.worker.requests import View

QUESTIONS, DAYS = 30, 7
# The first run on some records shows thousands of counts whose noise has the variance 5.3. With 6
# sets of records, three with a few patients and three without, their number has the error 1.9.
NEW_RECORDS = 5
_TIMES = "SELECT at FROM questions WHERE user = ? AND data = ? AND at > ? ORDER BY at"
_NEW = """SELECT count(*) AS new FROM json_each(?) WHERE value NOT IN
    (SELECT digest FROM questions WHERE user = ? AND data = ?)"""
_ADD = """INSERT OR IGNORE INTO questions SELECT ?, ?, value, ? FROM json_each(?)
    WHERE (SELECT count(*) FROM questions WHERE user = ? AND data = ? AND at > ?)
    + (SELECT count(*) FROM json_each(?) WHERE value NOT IN
       (SELECT digest FROM questions WHERE user = ? AND data = ?)) <= ? RETURNING at"""


def question(rules: Mapping[str, Any], within: Mapping[str, Any] | None = None) -> str:
    """Return a digest of what defines the records, of all or within a cluster of a run."""
    return _digest(question_of(CohortSpec, rules), within)


def questions_of_run(
    rules: Mapping[str, Any], within: Mapping[str, Any] | None, does: Mapping[str, Any]
) -> list[str]:
    """Return the digests of a run's questions: of its records, and of what it ``does`` with them.

    The records are several questions, which the first run on them takes.
    """
    records = question(rules, within)
    return [*(f"{records} {n}" for n in range(1, NEW_RECORDS)), _digest(rules, within, does)]


def questions_left(store: Store, user: str, data: str) -> int:
    """Return how many more different questions a user may ask of data now."""
    return max(QUESTIONS - len(store.query(_TIMES, user, data, _since())), 0)


def spend(store: Store, user: str, data: str, digests: Sequence[str]) -> int:
    """Count questions, those that are new, and return how many are left; too many are refused."""
    plain = json.dumps(sorted(set(digests)))
    values = (user, data, time.time(), plain, user, data, _since(), plain, user, data, QUESTIONS)
    new = store.query(_NEW, plain, user, data)[0]["new"]
    if store.query(_ADD, *values):
        store.audit(user, "count", data)
    elif new:
        times = [row["at"] for row in store.query(_TIMES, user, data, _since())]
        left = max(QUESTIONS - len(times), 0)
        free = [at for at in times[: new - left] if new <= QUESTIONS] or [time.time()]
        again = time.strftime("%Y-%m-%d %H:%M", time.gmtime(free[-1] + DAYS * 86400))
        raise RefusedError(
            429, "rights.budget", new=new, left=left, n=QUESTIONS, days=DAYS, when=again
        )
    return questions_left(store, user, data)


def _digest(rules: Mapping[str, Any], *more: Mapping[str, Any] | None) -> str:
    plain = json.dumps([as_sets(CohortSpec, rules), *more], sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()


def _since() -> float:
    return time.time() - DAYS * 86400


def counts_exactly(user: User, data: Row) -> bool:
    """Whether a user may count the records of data exactly: exporters, and who brought them."""
    return user.may("exporter") or data["owner"] == user.name


def view_of(user: User, view: View | None, *runs: Row) -> View:
    """Return the view of runs that a user gets: of one's own in full, where one may see it."""
    if view == "full" and not user.may("exporter"):
        raise RefusedError(403, "rights.full_counts")
    own = user.may("exporter") and all(run["owner"] == user.name for run in runs)
    return view or ("full" if own else "protected")


def show_run(row: Row, user: User, least: int) -> Row:
    """Return what a user may see of the row of a run."""
    shown = {name: value for name, value in row.items() if not name.startswith("protected_")}
    if user.may("exporter"):
        return render_row(shown, user)
    shown.pop("seconds", None)
    for name in ("records", "features"):
        shown.pop(name, None)
        if f"protected_{name}" in row:
            shown[name] = row[f"protected_{name}"]
    if shown.get("moved"):
        shown["moved"] = round_count(shown["moved"], least)
    return show_state(shown, user, least)


def show_state(state: Mapping[str, Any], user: User, least: int) -> dict[str, Any]:
    """Return what a user may see of the state of a run: while it runs, no number of records."""
    shown = dict(state)
    if not user.may("exporter"):
        if shown["state"] == "running":
            shown.pop("records", None)
        if "message" in shown:
            (shown["message"],) = round_notes([shown["message"]], least)
    return render_row(shown, user)


def show_data(row: Row, user: User, least: int) -> Row:
    """Return what a user may see of data: rounded numbers, if somebody else brought them."""
    shown = row["kind"] == "builtin"
    shown = {name: value for name, value in row.items() if shown or name != "source"}
    shown["exact"] = counts_exactly(user, row)
    if shown["exact"]:
        return render_row(shown, user)
    if row.get("about"):
        shown["about"] = _round_about(row["about"], least)
    if row.get("refused"):
        (error,) = round_notes([row["refused"]["error"]], least)
        shown["refused"] = row["refused"] | {"error": error}
    return render_row(shown, user)


def render_row(row: Mapping[str, Any], user: User) -> Row:
    """Return a row with its messages in the language of a user."""
    rendered: Row = render_all(row, user.language)
    return rendered


def _round_about(about: Row, least: int) -> Row:
    """Return the schema of data in rounded numbers, without the rows that have problems."""
    lines = round_lines([Line(**line) for line in about["lines"]], least)
    common = [one for one in about["common"] if (one["records"] or 0) >= least]
    reasons = round_notes([column["reason"] for column in about["columns"]], least)
    return about | {
        "records": round_count(about["records"], least),
        "mentions": round_count(about["mentions"], least),
        "features": about.get("listed"),
        "common": [one | {"records": round_count(one["records"], least)} for one in common],
        "lines": [vars(line) for line in lines],
        "notes": list(round_notes(about["notes"], least)),
        "columns": [
            column | {"reason": reason}
            for column, reason in zip(about["columns"], reasons, strict=True)
        ],
        "problems": [],
    }
