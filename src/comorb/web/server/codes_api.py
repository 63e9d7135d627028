"""The API of codes: search, patterns, maps to groups of your own, and saved definitions."""

from __future__ import annotations

import json
import re
import shutil
from functools import partial
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
from comorb.web.server.data_api import NO_NUL, Code, Rules, Text, plain_rules, takes
from comorb.web.server.readers import CancelScope, cancel_on_disconnect
from comorb.web.server.rights import counts_exactly
from comorb.web.server.security import RefusedError
from comorb.web.server.session import Analyst, Caller, SignedInRoute, TheScope
from comorb.web.server.store import Row
from comorb.web.server.uploads import receive
from comorb.web.worker.requests import cohorts

router = APIRouter(prefix="/api/v1/data", tags=["codes"], route_class=SignedInRoute)
_FOUND = 30  # codes that a search returns
_CODES = 3  # the version of the files that list codes

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
    key: str, wanted: Annotated[Search, Query()], caller: Analyst, scope: TheScope
) -> list[dict[str, Any]]:
    """Return the codes that match every word of a query: by code, by name or by everyday words.

    Of data that you did not bring, those of enough records, with rounded counts, and with none of
    groups of your own.
    """
    row, jobs = caller.visible("data", key), caller.jobs
    rules = wanted.model_dump(exclude={"q"}, exclude_defaults=True)
    name = sha256(json.dumps([_CODES, rules], sort_keys=True).encode()).hexdigest()[:16]
    path = caller.store.folder("data", key) / f"codes-{name}.json"
    if not path.exists():
        listed = jobs.read(partial(cohorts.list_codes, jobs.data_of(row), rules), scope)
        path.write_text(json.dumps(listed), encoding="utf-8")
    entries = json.loads(path.read_text(encoding="utf-8"))
    exact = counts_exactly(caller.user, row)
    if not exact:
        entries = [entry for entry in entries if entry[3] >= jobs.min_cell]
    found = []
    for code, label, title, records, _, names in found_codes(wanted.q, entries)[:_FOUND]:
        one = {"code": code, "label": names.get(scope.language, label), "name": title}
        if exact:
            one["records"] = records
        elif "code_map" not in rules:
            one["records"] = round_count(records or 0, jobs.min_cell)
        found.append(one)
    return found


@router.post("/{key}/codes")
def match_codes(key: str, given: Patterns, caller: Analyst, scope: TheScope) -> Any:
    """Say how many codes each code, pattern or part of a list stands for; 0 where none is known.

    Of data that you did not bring, codes of few records are as if not known.
    """
    row, jobs = caller.visible("data", key), caller.jobs
    rules = given.model_dump(exclude={"texts"}, exclude_defaults=True)
    least = 0 if counts_exactly(caller.user, row) else jobs.min_cell
    task = partial(cohorts.match_codes, jobs.data_of(row), rules, given.texts, least)
    return jobs.read(task, scope)


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
async def upload_map(key: str, request: Request, caller: Analyst, name: Text = "map.csv") -> Row:
    """Store the body as a map from codes to groups, and say what it holds."""
    store, user = caller.store, caller.user.name
    row = caller.visible("data", key)
    folder = store.folder("data", key) / "maps"
    place = folder / token_hex(6)
    place.mkdir(parents=True)
    try:
        path = place / (re.sub(r"[^\w.() -]", "_", Path(name).name).lstrip(".")[-60:] or "map.csv")
        await receive(request, user, path)
        async with cancel_on_disconnect(request, CancelScope(user)) as scope:
            task = partial(cohorts.describe_map, str(path))
            found = await run_in_threadpool(caller.jobs.read, task, scope)
        shutil.rmtree(folder / found["key"], ignore_errors=True)
        place.rename(folder / found["key"])
    finally:
        shutil.rmtree(place, ignore_errors=True)
    store.change("data", key, {"maps": row.get("maps", {}) | {found["key"]: found}})
    caller.audit("add a map", key)
    return dict(found)


definitions_router = APIRouter(
    prefix="/api/v1/definitions", tags=["definitions"], route_class=SignedInRoute
)
_MAX_KEPT = 500  # definitions of one user

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
def list_definitions(caller: Analyst) -> list[Row]:
    """Return your definitions and those that others share."""
    rows = caller.store.list("definitions")
    return [_show(row, caller) for row in rows if caller.may_see(row)]


@definitions_router.post("", status_code=201)
def save(given: Saved, caller: Analyst) -> Row:
    """Keep a cohort or a set of codes, such as one that was exported elsewhere."""
    store, user = caller.store, caller.user.name
    rules = plain_rules(given.rules) if given.rules else {}
    if bool(rules) == bool(given.codes):
        raise RefusedError(422, "definition.both")
    if set(rules) - set(RULES):
        raise RefusedError(422, "definition.own_groups")
    if sum(row["owner"] == user for row in store.list("definitions")) >= _MAX_KEPT:
        raise RefusedError(429, "definition.too_many", n=_MAX_KEPT)
    body = {"name": given.name.strip() or "…", "shared": given.shared}
    row = store.add("definitions", user, body | {"rules": rules, "codes": given.codes})
    caller.audit("keep a definition", row["id"])
    return _show(row, caller)


@definitions_router.patch("/{key}")
def change(key: str, given: Change, caller: Analyst) -> Row:
    """Give a definition another name, or share it with everyone who may sign in."""
    caller.owned("definitions", key)
    row = caller.store.change("definitions", key, given.model_dump(exclude_none=True))
    caller.audit("change a definition", key)
    return _show(row or {}, caller)


@definitions_router.delete("/{key}", status_code=204)
def delete(key: str, caller: Analyst) -> None:
    """Delete a definition; runs that it was used for stay."""
    caller.owned("definitions", key)
    caller.store.remove("definitions", key)
    caller.audit("delete a definition", key)


@definitions_router.get("/{key}/file")
def export(key: str, caller: Analyst) -> JSONResponse:
    """Send a definition as a small file, which other servers and the command line take."""
    row = caller.visible("definitions", key)
    caller.audit("export a definition", key)
    plain: dict[str, Any] = Definition(row["name"], row["rules"], tuple(row["codes"])).to_dict()
    name = "codes.json" if row["codes"] else "cohort.json"
    return JSONResponse(plain, headers={"content-disposition": f'attachment; filename="{name}"'})


def _show(row: Row, caller: Caller) -> Row:
    return row | {"mine": row["owner"] == caller.user.name}
