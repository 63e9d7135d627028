"""The API of the codes of data: search, what patterns stand for, and maps to groups of your own."""

from __future__ import annotations

import json
import re
import shutil
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from comorb.insight.profile.rough import rough
from comorb.records.codes.everyday import folded
from comorb.web.server.data_api import NO_NUL, Code, MapKey, Rules, Text, plain_rules
from comorb.web.server.readers import Errand, followed
from comorb.web.server.rights import counts_exactly
from comorb.web.server.session import Analyst, TheErrand, TheJobs, TheStore, visible
from comorb.web.server.store import Row, Store
from comorb.web.server.uploads import receive
from comorb.web.worker.messages import ListCodes, MatchCodes, ReadMap

router = APIRouter(prefix="/api/v1/data", tags=["codes"])
_FOUND = 30
_CODES = 3  # what an entry of the list of codes has: another number, another file

LongText = Annotated[str, Field(max_length=20_000, pattern=NO_NUL)]


class Coding(BaseModel):
    """Which codes data have: those of some level, or of a map."""

    level: list[Code] = Field(default=["category"], min_length=1, max_length=3)
    code_map: MapKey | None = None
    chronic: bool = False


class Search(Coding):
    """Words to look for among the codes."""

    q: Text = ""


class Patterns(Coding):
    """Codes, patterns such as V* and V01-V91, and lists of them."""

    texts: list[LongText] = Field(max_length=500)


@router.get("/{key}/codes")
def search_codes(
    key: str,
    wanted: Annotated[Search, Query()],
    user: Analyst,
    store: TheStore,
    jobs: TheJobs,
    errand: TheErrand,
) -> list[dict[str, Any]]:
    """Return the codes that match every word of a query: by code, by name or by everyday words.

    Of data that you did not bring, with rough counts, and with none of groups of your own.
    """
    row = visible(store, "data", key, user)
    rules = plain_rules(Rules(**wanted.model_dump(exclude={"q"})))
    name = sha256(json.dumps([_CODES, rules], sort_keys=True).encode()).hexdigest()[:16]
    path = store.folder("data", key) / f"codes-{name}.json"
    if not path.exists():
        task = ListCodes(jobs.data_of(row), rules)
        path.write_text(json.dumps(jobs.read(task, errand)), encoding="utf-8")
    hits = found_codes(wanted.q, json.loads(path.read_text(encoding="utf-8")))
    found = [
        {
            "code": code,
            "label": names.get(errand.language, label),
            "name": title,
            "records": records,
        }
        for code, label, title, records, _, names in hits[:_FOUND]
    ]
    if not counts_exactly(user, row):
        for one in found:
            records = one.pop("records")
            if not wanted.code_map:
                one["records"] = rough(records or 0, jobs.min_cell)
    return found


@router.post("/{key}/codes")
def match_codes(
    key: str,
    asked: Patterns,
    user: Analyst,
    store: TheStore,
    jobs: TheJobs,
    errand: TheErrand,
) -> Any:
    """Say how many codes each code, pattern or part of a list stands for; 0 where none is known."""
    row = visible(store, "data", key, user)
    rules = plain_rules(Rules(**asked.model_dump(exclude={"texts"})))
    return jobs.read(MatchCodes(jobs.data_of(row), rules, asked.texts), errand)


def found_codes(query: str, entries: list[list[Any]]) -> list[list[Any]]:
    """Return the entries that a query finds: codes that begin so, what people call so, and words.

    An entry has a code, a label, its title, its records, its everyday words and labels in other
    languages.
    """
    plain, sought = query.lower().replace(".", ""), folded(query.strip())
    words = sought.split()

    def rank(entry: list[Any]) -> int:
        if entry[0].lower().startswith(plain):
            return 0
        if sought in entry[4]:
            return 1
        text = folded(" ".join([entry[1], entry[2], *entry[4], *entry[5].values()]))
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
        async with followed(request, Errand(user.name)) as errand:
            read = request.app.state.jobs.read
            told = await run_in_threadpool(read, ReadMap(str(path)), errand)
        shutil.rmtree(folder / told["key"], ignore_errors=True)
        place.rename(folder / told["key"])
    finally:
        shutil.rmtree(place, ignore_errors=True)
    store.change("data", key, {"maps": row.get("maps", {}) | {told["key"]: told}})
    store.audit(user.name, "add a map", key)
    return dict(told)
