"""The API of codes: search, patterns, maps to groups of your own, and saved definitions."""

from __future__ import annotations

import json
import re
import shutil
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from comorb.profiles.rounded import round_count
from comorb.records.codes.search import fold_text
from comorb.records.definitions import RULES, Definition
from comorb.records.spec import CohortSpec
from comorb.web.server.access import User
from comorb.web.server.data_api import NO_NUL, Code, Rules, Text, plain_rules, takes
from comorb.web.server.readers import CancelScope, cancel_on_disconnect
from comorb.web.server.rights import counts_exactly
from comorb.web.server.security import RefusedError
from comorb.web.server.session import (
    Analyst,
    SignedInRoute,
    TheJobs,
    TheScope,
    TheStore,
    may_see,
    owned,
    visible,
)
from comorb.web.server.store import Row, Store
from comorb.web.server.uploads import receive
from comorb.web.worker.requests import ListCodes, MatchCodes, ReadMap

router = APIRouter(prefix="/api/v1/data", tags=["codes"], route_class=SignedInRoute)
_FOUND = 30
_CODES = 3  # what an entry of the list of codes has: another number, another file

LongText = Annotated[str, Field(max_length=20_000, pattern=NO_NUL)]


@takes(CohortSpec, "coding")
class Search(BaseModel):
    """Words to look for among the codes that data have: those of some level, or of a map."""

    q: Text = ""


@takes(CohortSpec, "coding")
class Patterns(BaseModel):
    """Codes, patterns such as V* and V01-V91, and lists of them."""

    texts: list[LongText] = Field(max_length=500)


@router.get("/{key}/codes")
def search_codes(
    key: str,
    wanted: Annotated[Search, Query()],
    user: Analyst,
    store: TheStore,
    jobs: TheJobs,
    scope: TheScope,
) -> list[dict[str, Any]]:
    """Return the codes that match every word of a query: by code, by name or by everyday words.

    Of data that you did not bring, those of enough records, with rounded counts, and with none of
    groups of your own.
    """
    row = visible(store, "data", key, user)
    rules = wanted.model_dump(exclude={"q"}, exclude_defaults=True)
    name = sha256(json.dumps([_CODES, rules], sort_keys=True).encode()).hexdigest()[:16]
    path = store.folder("data", key) / f"codes-{name}.json"
    if not path.exists():
        task = ListCodes(jobs.data_of(row), rules)
        path.write_text(json.dumps(jobs.read(task, scope)), encoding="utf-8")
    entries = json.loads(path.read_text(encoding="utf-8"))
    exact = counts_exactly(user, row)
    if not exact:
        entries = [entry for entry in entries if entry[3] >= jobs.min_cell]
    hits = found_codes(wanted.q, entries)
    found = [
        {
            "code": code,
            "label": names.get(scope.language, label),
            "name": title,
            "records": records,
        }
        for code, label, title, records, _, names in hits[:_FOUND]
    ]
    if not exact:
        for one in found:
            records = one.pop("records")
            if "code_map" not in rules:
                one["records"] = round_count(records or 0, jobs.min_cell)
    return found


@router.post("/{key}/codes")
def match_codes(
    key: str,
    asked: Patterns,
    user: Analyst,
    store: TheStore,
    jobs: TheJobs,
    scope: TheScope,
) -> Any:
    """Say how many codes each code, pattern or part of a list stands for; 0 where none is known.

    Of data that you did not bring, codes of few records are as if not known.
    """
    row = visible(store, "data", key, user)
    rules = asked.model_dump(exclude={"texts"}, exclude_defaults=True)
    least = 0 if counts_exactly(user, row) else jobs.min_cell
    return jobs.read(MatchCodes(jobs.data_of(row), rules, asked.texts, least), scope)


def found_codes(query: str, entries: list[list[Any]]) -> list[list[Any]]:
    """Return the entries that a query finds: codes that begin so, what people call so, and words.

    An entry has a code, a label, its title, its records, its everyday words and labels in other
    languages.
    """
    plain, sought = query.lower().replace(".", ""), fold_text(query.strip())
    words = sought.split()

    def rank(entry: list[Any]) -> int:
        if entry[0].lower().startswith(plain):
            return 0
        if sought in entry[4]:
            return 1
        text = fold_text(" ".join([entry[1], entry[2], *entry[4], *entry[5].values()]))
        return 2 if all(word in text for word in words) else 3

    ranked = [(rank(entry), entry) for entry in entries]
    return [entry for place, entry in sorted(ranked, key=lambda one: one[0]) if place < 3]


@router.put("/{key}/maps", status_code=201)
async def upload_map(key: str, request: Request, user: Analyst, name: Text = "map.csv") -> Row:
    """Store the body as a map from codes to groups, and say what it holds."""
    store: Store = request.app.state.store
    row = visible(store, "data", key, user)
    folder = store.folder("data", key) / "maps"
    place = folder / token_hex(6)
    place.mkdir(parents=True)
    try:
        path = place / (re.sub(r"[^\w.() -]", "_", Path(name).name).lstrip(".")[-60:] or "map.csv")
        await receive(request, user.name, path)
        async with cancel_on_disconnect(request, CancelScope(user.name)) as scope:
            read = request.app.state.jobs.read
            told = await run_in_threadpool(read, ReadMap(str(path)), scope)
        shutil.rmtree(folder / told["key"], ignore_errors=True)
        place.rename(folder / told["key"])
    finally:
        shutil.rmtree(place, ignore_errors=True)
    store.change("data", key, {"maps": row.get("maps", {}) | {told["key"]: told}})
    store.audit(user.name, "add a map", key)
    return dict(told)


definitions_router = APIRouter(
    prefix="/api/v1/definitions", tags=["definitions"], route_class=SignedInRoute
)
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


@definitions_router.get("")
def list_definitions(user: Analyst, store: TheStore) -> list[Row]:
    """Return your definitions and those that others share."""
    return [_show(row, user) for row in store.list("definitions") if may_see(row, user)]


@definitions_router.post("", status_code=201)
def save(asked: Saved, user: Analyst, store: TheStore) -> Row:
    """Keep a cohort or a set of codes, such as one that was exported elsewhere."""
    rules = plain_rules(asked.rules) if asked.rules else {}
    if bool(rules) == bool(asked.codes):
        raise RefusedError(422, "definition.both")
    if set(rules) - set(RULES):
        raise RefusedError(422, "definition.own_groups")
    if sum(row["owner"] == user.name for row in store.list("definitions")) >= _MOST:
        raise RefusedError(429, "definition.too_many", n=_MOST)
    body = {"name": asked.name.strip() or "…", "shared": asked.shared}
    row = store.add("definitions", user.name, body | {"rules": rules, "codes": asked.codes})
    store.audit(user.name, "keep a definition", row["id"])
    return _show(row, user)


@definitions_router.patch("/{key}")
def change(key: str, asked: Change, user: Analyst, store: TheStore) -> Row:
    """Give a definition another name, or share it with everyone who may sign in."""
    owned(store, "definitions", key, user)
    row = store.change("definitions", key, asked.model_dump(exclude_none=True))
    store.audit(user.name, "change a definition", key)
    return _show(row or {}, user)


@definitions_router.delete("/{key}", status_code=204)
def delete(key: str, user: Analyst, store: TheStore) -> None:
    """Delete a definition; runs that it was used for stay."""
    owned(store, "definitions", key, user)
    store.remove("definitions", key)
    store.audit(user.name, "delete a definition", key)


@definitions_router.get("/{key}/file")
def export(key: str, user: Analyst, store: TheStore) -> JSONResponse:
    """Send a definition as a small file, which other servers and the command line take."""
    row = visible(store, "definitions", key, user)
    store.audit(user.name, "export a definition", key)
    plain: dict[str, Any] = Definition(row["name"], row["rules"], tuple(row["codes"])).to_dict()
    name = "codes.json" if row["codes"] else "cohort.json"
    return JSONResponse(plain, headers={"content-disposition": f'attachment; filename="{name}"'})


def _show(row: Row, user: User) -> Row:
    return row | {"mine": row["owner"] == user.name}
