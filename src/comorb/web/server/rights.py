"""Rights: who sees full counts and who protected ones, and what a row of the store tells either."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from comorb.insight.profile.rough import rough, rough_lines, rough_notes
from comorb.records.ledger import Line
from comorb.web.server.access import User
from comorb.web.server.refusals import RefusedError
from comorb.web.server.store import Row
from comorb.web.worker.messages import View


def sees_full(user: User) -> bool:
    """Whether a user may see full counts of runs: who may export has them anyway."""
    return user.may("exporter")


def counts_exactly(user: User, data: Row) -> bool:
    """Whether a user may count the records of data exactly: exporters, and who brought them."""
    return sees_full(user) or data["owner"] == user.name


def view_of(user: User, asked: View | None, *runs: Row) -> View:
    """Return the view of runs that a user gets: of one's own in full, where one may see it."""
    if asked == "full" and not sees_full(user):
        raise RefusedError(
            403, "Full counts need the role exporter; look at the protected view instead."
        )
    own = sees_full(user) and all(run["owner"] == user.name for run in runs)
    return asked or ("full" if own else "protected")


def told_run(row: Row, user: User, least: int) -> Row:
    """Return what the row of a run tells a user."""
    told = {name: value for name, value in row.items() if name != "protected_records"}
    if sees_full(user):
        return told
    told.pop("seconds", None)
    told.pop("records", None)
    if "protected_records" in row:
        told["records"] = row["protected_records"]
    if told.get("moved"):
        told["moved"] = rough(told["moved"], least)
    return told_state(told, user, least)


def told_state(state: Mapping[str, Any], user: User, least: int) -> dict[str, Any]:
    """Return what the state of a run tells a user: of one under way, no number of records."""
    told = dict(state)
    if not sees_full(user):
        if told["state"] == "running":
            told.pop("records", None)
        if "message" in told:
            (told["message"],) = rough_notes([told["message"]], least)
    return told


def told_data(row: Row, user: User, least: int) -> Row:
    """Return what the row of data tells a user: rough numbers to those who did not bring them."""
    shown = row["kind"] == "builtin"
    told = {name: value for name, value in row.items() if shown or name != "source"}
    told["exact"] = counts_exactly(user, row)
    if told["exact"]:
        return told
    if row.get("about"):
        told["about"] = _rough_about(row["about"], least)
    if row.get("refused"):
        (error,) = rough_notes([row["refused"]["error"]], least)
        told["refused"] = row["refused"] | {"error": error}
    return told


def _rough_about(about: Row, least: int) -> Row:
    """Return what was understood of data in rough numbers, without the rows that have problems."""
    lines = rough_lines([Line(**line) for line in about["lines"]], least)
    reasons = rough_notes([column["reason"] for column in about["columns"]], least)
    return about | {
        "records": rough(about["records"], least),
        "mentions": rough(about["mentions"], least),
        "common": [one | {"records": rough(one["records"] or 0, least)} for one in about["common"]],
        "lines": [vars(line) for line in lines],
        "notes": list(rough_notes(about["notes"], least)),
        "columns": [
            column | {"reason": reason}
            for column, reason in zip(about["columns"], reasons, strict=True)
        ],
        "problems": [],
    }
