"""The API of definitions: cohorts and sets of codes under a name, to be used again elsewhere."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from comorb.records.definitions import RULES, Definition
from comorb.web.server.access import User
from comorb.web.server.data_api import NO_NUL, Code, Rules, plain_rules
from comorb.web.server.refusals import RefusedError
from comorb.web.server.session import Analyst, TheStore, may_see, owned, visible
from comorb.web.server.store import Row

router = APIRouter(prefix="/api/v1/definitions", tags=["definitions"])
_MOST = 500  # that one user may keep

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=NO_NUL)]


class Saved(BaseModel, extra="forbid"):
    """A cohort by its rules, or a set of codes, as its file has it."""

    format: Literal["comorb-cohort"] = "comorb-cohort"
    version: Literal[1] = 1
    name: Name
    rules: Rules | None = None
    codes: list[Code] = Field(default=[], max_length=500)
    shared: bool = False


class Change(BaseModel):
    """What of a definition is to be changed; None leaves it."""

    name: Name | None = None
    shared: bool | None = None


@router.get("")
def list_definitions(user: Analyst, store: TheStore) -> list[Row]:
    """Return your definitions and those that others share."""
    return [_told(row, user) for row in store.list("definitions") if may_see(row, user)]


@router.post("", status_code=201)
def save(asked: Saved, user: Analyst, store: TheStore) -> Row:
    """Keep a cohort or a set of codes, such as one that was exported elsewhere."""
    rules = plain_rules(asked.rules) if asked.rules else {}
    if bool(rules) == bool(asked.codes):
        raise RefusedError(422, "Expected the rules of a cohort or some codes, and not both.")
    if set(rules) - set(RULES):
        raise RefusedError(
            422, "A cohort with groups of your own can't be kept; choose it without the map."
        )
    if sum(row["owner"] == user.name for row in store.list("definitions")) >= _MOST:
        raise RefusedError(429, f"You keep {_MOST} of these, which is the most; delete some.")
    body = {"name": asked.name.strip() or "…", "shared": asked.shared}
    row = store.add("definitions", user.name, body | {"rules": rules, "codes": asked.codes})
    store.audit(user.name, "keep a definition", row["id"])
    return _told(row, user)


@router.patch("/{key}")
def change(key: str, asked: Change, user: Analyst, store: TheStore) -> Row:
    """Give a definition another name, or share it with everyone who may sign in."""
    owned(store, "definitions", key, user)
    row = store.change("definitions", key, asked.model_dump(exclude_none=True))
    store.audit(user.name, "change a definition", key)
    return _told(row or {}, user)


@router.delete("/{key}", status_code=204)
def delete(key: str, user: Analyst, store: TheStore) -> None:
    """Delete a definition; runs that it was used for stay."""
    owned(store, "definitions", key, user)
    store.remove("definitions", key)
    store.audit(user.name, "delete a definition", key)


@router.get("/{key}/file")
def export(key: str, user: Analyst, store: TheStore) -> JSONResponse:
    """Send a definition as a small file, which other servers and the command line take."""
    row = visible(store, "definitions", key, user)
    store.audit(user.name, "export a definition", key)
    plain: dict[str, Any] = Definition(row["name"], row["rules"], tuple(row["codes"])).to_dict()
    name = "codes.json" if row["codes"] else "cohort.json"
    return JSONResponse(plain, headers={"content-disposition": f'attachment; filename="{name}"'})


def _told(row: Row, user: User) -> Row:
    return row | {"mine": row["owner"] == user.name}
