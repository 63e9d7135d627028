"""The API of runs: create, watch, cancel, change, duplicate and delete."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field, model_validator

from comorb.fields import question_of
from comorb.messages import Message
from comorb.runs.spec import RunSpec
from comorb.web.server.data_api import NO_NUL, Code, Rules, Text, plain_rules, takes
from comorb.web.server.rights import counts_exactly, questions_of_run, show_state, spend
from comorb.web.server.security import RefusedError
from comorb.web.server.session import Analyst, Caller, SignedInRoute, Viewer
from comorb.web.server.store import ASIDE, Row, new_key
from comorb.web.worker.downloads import PATIENTS, offered

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=SignedInRoute)
_SECONDS = 0.25


Corner = tuple[Annotated[float, Field(ge=-1, le=1000)], Annotated[float, Field(ge=-1, le=1000)]]


class Within(BaseModel):
    """A part of a run: a cluster by its number, or a region of its map, by corners in cells."""

    run: Code
    cluster: int | None = Field(default=None, ge=1)
    region: list[Corner] | None = Field(default=None, min_length=3, max_length=500)

    @model_validator(mode="after")
    def _one(self) -> Within:
        if (self.cluster is None) == (self.region is None):
            raise ValueError(Message("request.cluster_or_region"))
        return self


@takes(RunSpec)
class Wanted(BaseModel):
    """A run to make: of data, or after another run whose clusters keep numbers and names."""

    data: Code
    rules: Rules = Rules()
    within: Within | None = None
    split: tuple[int, Annotated[int, Field(ge=2, le=20)]] | None = None


class Change(BaseModel):
    """What of a run is to be changed; None leaves it."""

    title: Annotated[str, Field(min_length=1, max_length=200, pattern=NO_NUL)] | None = None
    shared: bool | None = None
    starred: Annotated[list[Text], Field(max_length=200)] | None = None


@router.get("/runs")
def list_runs(caller: Viewer) -> list[Row]:
    """Return your runs and those that others share."""
    rows = caller.store.list("runs")
    own = [row for row in rows if row["owner"] == caller.user.name or row.get("shared")]
    return [caller.show_run(row) for row in own]


@router.post("/runs", status_code=201)
def create_run(wanted: Wanted, caller: Analyst) -> Row:
    """Put a new run in the queue; no other run is changed."""
    user, store, jobs = caller.user, caller.store, caller.jobs
    data = caller.visible("data", wanted.data)
    jobs.check_queue(user.name)
    plain = wanted.model_dump()
    k, parent, within = plain["k"], plain["parent"], plain["within"]
    if isinstance(k, int) and not 1 <= k <= 50:
        raise RefusedError(422, "run.k", k=k)
    if (plain["merge"] or wanted.split) and not parent:
        raise RefusedError(422, "run.no_parent")
    for key in {parent, within and within["run"]} - {None}:
        run = caller.visible("runs", str(key))
        if run["state"] != "done":
            raise RefusedError(409, "run.parent_not_done")
        if run["data"] != wanted.data:
            raise RefusedError(422, "run.other_data")
    rules = plain_rules(wanted.rules)
    within = wanted.within.model_dump(exclude_none=True) if wanted.within else None
    exact = counts_exactly(user, data)
    if not exact:
        if "drop_rare" in rules:
            raise RefusedError(403, "rights.rare_codes")
        options = wanted.model_dump(exclude={"data", "rules", "within"}, exclude_defaults=True)
        does = question_of(RunSpec, options)
        spend(store, user.name, wanted.data, questions_of_run(rules, within, does))
    body = plain | {
        "within": within,
        "rules": rules,
        "title": plain["title"].strip() or data["title"],
        "state": "queued",
        "shared": False,
        "named_from": 0 if exact else jobs.min_cell,
    }
    row = store.add("runs", user.name, body)
    caller.audit("run", row["id"])
    jobs.put(row["id"])
    return caller.show_run(row)


@router.get("/runs/{key}")
def get_run(key: str, caller: Viewer) -> Row:
    """Return what is known about a run, with the runs it is inside of."""
    row = caller.visible("runs", key)
    return caller.show_run(row) | {
        "path": _path(caller, row),
        "mine": row["owner"] == caller.user.name,
        "downloads": {"aggregates": offered(), "patients": PATIENTS},
    }


@router.patch("/runs/{key}")
def change_run(key: str, change: Change, caller: Analyst) -> Row:
    """Give a run another title, share it with everyone who may sign in, or star its outcomes."""
    caller.owned("runs", key)
    fields = change.model_dump(exclude_none=True)
    if "title" in fields:
        caller.audit("rename run", key)
    if "shared" in fields:
        caller.audit("share" if fields["shared"] else "unshare", key)
    if "starred" in fields:
        caller.audit("star outcomes", key)
    return caller.show_run(caller.store.change("runs", key, fields) or {})


@router.post("/runs/{key}/duplicate", status_code=201)
def duplicate(key: str, caller: Analyst) -> Row:
    """Copy a finished run, with its files, to one of your own; exporters also those of others."""
    row, user, store = caller.finished(key), caller.user, caller.store
    if row["owner"] != user.name and not user.may("exporter"):
        raise RefusedError(403, "rights.copy")
    body = {name: value for name, value in row.items() if name not in ("id", "owner", "created")}
    body |= {"shared": False, "title": f"{row['title']} (2)"}
    new = new_key()
    store.add("runs", user.name, body | {ASIDE: time.time()}, new)  # removed after a kill
    shutil.copytree(store.folder("runs", key), store.folder("runs", new), dirs_exist_ok=True)
    copy = store.put_back("runs", new, user.name)
    caller.audit("duplicate run", key)
    return caller.show_run(copy or {})


@router.delete("/runs/{key}", status_code=204)
def delete_run(key: str, caller: Analyst) -> None:
    """Delete a run; its files are kept for ten minutes, so that it can be brought back."""
    caller.owned("runs", key)
    caller.jobs.cancel(key)
    caller.store.put_aside("runs", key)
    caller.audit("delete run", key)


@router.post("/runs/{key}/restore")
def restore_run(key: str, caller: Analyst) -> Row:
    """Bring back a run of yours that was just deleted."""
    return caller.show_run(caller.restore("runs", key))


@router.post("/runs/{key}/cancel", status_code=202)
def cancel(key: str, caller: Analyst) -> dict[str, Any]:
    """Stop a run that is waiting or running."""
    caller.owned("runs", key)
    caller.jobs.cancel(key)
    caller.audit("cancel run", key)
    return show_state(caller.jobs.progress(key), caller.user, caller.jobs.min_cell)


@router.get("/runs/{key}/events")
def watch(request: Request, key: str, caller: Viewer) -> StreamingResponse:
    """Send the state of a run as server-sent events until it is done, or not yours to see."""
    caller.visible("runs", key)
    return StreamingResponse(_events(request, key), media_type="text/event-stream")


def _path(caller: Caller, row: Row) -> list[dict[str, Any]]:
    """Return the clusters that a run is inside of, outermost first, of runs that the user sees."""
    path: list[dict[str, Any]] = []
    while row.get("within"):
        above = caller.store.get("runs", row["within"]["run"])
        if above is None:
            break
        if caller.may_see(above):
            own = {"cluster": row["within"].get("cluster")}
            path.insert(0, {"run": above["id"], "title": above["title"]} | own)
        row = above
    return path


async def _events(request: Request, key: str) -> AsyncIterator[str]:
    while True:
        try:
            caller = Caller.of(request)
            caller.visible("runs", key)
        except RefusedError:
            return
        state = show_state(caller.jobs.progress(key), caller.user, caller.jobs.min_cell)
        yield f"data: {json.dumps(state)}\n\n"
        if state["state"] not in ("queued", "running") and (
            state["measured"] or state["state"] != "done"
        ):
            return
        await asyncio.sleep(_SECONDS)
