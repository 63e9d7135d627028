"""The API of runs: create, watch, cancel, read, name, compare, explain and download."""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, StreamingResponse
from pydantic import BaseModel, Field
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool

from comorb.web.access import User
from comorb.web.data_api import Code, Rules, Text, plain_rules, receive
from comorb.web.errors import RefusedError
from comorb.web.jobs import Jobs
from comorb.web.session import Analyst, Exporter, TheJobs, TheStore, Viewer, owned, visible
from comorb.web.store import Row, Store

router = APIRouter(prefix="/api/v1", tags=["runs"])
PATIENTS = ("assignments.csv", "assignments.parquet", "model.comorb")
AGGREGATES = ("profile.csv", "profile.json", "report.html", "report.pdf")
CHARTS = tuple(
    f"{name}.{end}" for name in ("frequency", "heatmap", "sizes") for end in ("svg", "png")
)
_SECONDS = 0.25


class Within(BaseModel):
    """A cluster of a run, by its number."""

    run: Code
    cluster: int = Field(ge=1)


class Wanted(BaseModel):
    """A run to make: of data, or after another run whose clusters keep numbers and names."""

    data: Code
    k: int | Literal["auto"] = Field(default="auto")
    rules: Rules = Rules()
    title: Text = ""
    parent: Code | None = None
    within: Within | None = None
    merge: tuple[int, int] | None = None


class Change(BaseModel):
    """What of a run is to be changed; None leaves it."""

    title: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    shared: bool | None = None


class Asked(BaseModel):
    """The codes of one record, as they are written in the records."""

    codes: list[Code] = Field(min_length=1, max_length=200)


class Record(BaseModel):
    """A record of a run by its id, which goes into no log and no address."""

    record: Annotated[str, Field(min_length=1, max_length=200)]


class Move(Record):
    """A record and the number of the cluster that a person puts it in."""

    cluster: int = Field(ge=1)


@router.get("/runs")
def list_runs(user: Viewer, store: TheStore) -> list[Row]:
    """Return your runs and those that others share."""
    return [row for row in store.list("runs") if row["owner"] == user.name or row.get("shared")]


@router.post("/runs", status_code=201)
def create_run(wanted: Wanted, user: Analyst, store: TheStore, jobs: TheJobs) -> Row:
    """Put a new run in the queue; no other run is changed."""
    data = visible(store, "data", wanted.data, user)
    if wanted.k != "auto" and not 1 <= wanted.k <= 50:
        raise RefusedError(422, f"Expected 1 to 50 clusters, or auto; got {wanted.k}.")
    for key in {wanted.parent, wanted.within and wanted.within.run} - {None}:
        if visible(store, "runs", str(key), user)["state"] != "done":
            raise RefusedError(409, "The run that this one builds on is not done yet.")
    if wanted.merge and not wanted.parent:
        raise RefusedError(422, "Two clusters are merged of a run; say which run as its parent.")
    body = wanted.model_dump() | {
        "rules": plain_rules(wanted.rules),
        "title": wanted.title.strip() or data["title"],
        "state": "queued",
        "shared": False,
    }
    row = store.add("runs", user.name, body)
    store.audit(user.name, "run", row["id"])
    jobs.put(row["id"])
    return row


@router.get("/runs/{key}")
def get_run(key: str, user: Viewer, store: TheStore) -> Row:
    """Return what is known about a run, with the runs it is inside of."""
    row = visible(store, "runs", key, user)
    return row | {"path": _path(store, row), "mine": row["owner"] == user.name}


@router.patch("/runs/{key}")
def change_run(key: str, change: Change, user: Analyst, store: TheStore) -> Row:
    """Give a run another title, or share it with everyone who may sign in."""
    owned(store, "runs", key, user)
    fields = change.model_dump(exclude_none=True)
    if fields.get("shared"):
        store.audit(user.name, "share", key)
    return store.change("runs", key, fields) or {}


@router.post("/runs/{key}/duplicate", status_code=201)
def duplicate(key: str, user: Analyst, store: TheStore, jobs: TheJobs) -> Row:
    """Copy a finished run, with its files, to one of your own."""
    row = _done(store, key, user)
    body = {name: value for name, value in row.items() if name not in ("id", "owner", "created")}
    copy = store.add("runs", user.name, body | {"shared": False, "title": f"{row['title']} (2)"})
    source, target = (store.folder("runs", each["id"]) for each in (row, copy))
    shutil.copytree(source, target, dirs_exist_ok=True)
    return copy


@router.delete("/runs/{key}", status_code=204)
def delete_run(key: str, user: Analyst, store: TheStore, jobs: TheJobs) -> None:
    """Delete a run with its files."""
    owned(store, "runs", key, user)
    jobs.cancel(key)
    store.remove("runs", key)
    store.audit(user.name, "delete run", key)


@router.post("/runs/{key}/cancel", status_code=202)
def cancel(key: str, user: Analyst, store: TheStore, jobs: TheJobs) -> dict[str, Any]:
    """Stop a run that is waiting or running."""
    owned(store, "runs", key, user)
    jobs.cancel(key)
    return jobs.progress(key)


@router.get("/runs/{key}/events")
def watch(key: str, user: Viewer, store: TheStore, jobs: TheJobs) -> StreamingResponse:
    """Send the state of a run as server-sent events until it is done."""
    visible(store, "runs", key, user)
    return StreamingResponse(_events(jobs, key), media_type="text/event-stream")


@router.get("/runs/{key}/profile")
def profile(key: str, user: Viewer, store: TheStore, jobs: TheJobs) -> FileResponse:
    """Return the profile of a run without small counts."""
    _done(store, key, user)
    store.audit(user.name, "open run", key)
    return FileResponse(jobs.shown(key), media_type="application/json")


@router.get("/runs/{key}/relevance")
def relevance(
    key: str,
    user: Viewer,
    store: TheStore,
    jobs: TheJobs,
    lam: Annotated[float, Query(alias="lambda", ge=0, le=1)] = 0.6,
    n: Annotated[int, Query(ge=1, le=100)] = 10,
) -> Any:
    """Return the most relevant diagnoses of each cluster for a λ."""
    _done(store, key, user)
    return jobs.ask("relevance", _task(jobs, key) | {"lambda": lam, "n": n})


@router.put("/runs/{key}/names")
def name_clusters(
    key: str, names: dict[int, Text], user: Analyst, store: TheStore, jobs: TheJobs
) -> dict[int, str]:
    """Give clusters other names, by their numbers."""
    owned(store, "runs", key, user)
    _done(store, key, user)
    stripped = {number: name.strip() for number, name in names.items()}
    jobs.ask("name_clusters", _task(jobs, key) | {"names": stripped})
    return stripped


@router.post("/runs/{key}/explain")
def explain(key: str, asked: Asked, user: Viewer, store: TheStore, jobs: TheJobs) -> Any:
    """Say where a record with these codes belongs, and which codes speak for and against."""
    _done(store, key, user)
    return jobs.ask("explain", _task(jobs, key) | {"codes": asked.codes})


@router.post("/runs/{key}/record")
def explain_record(key: str, asked: Record, user: Exporter, store: TheStore, jobs: TheJobs) -> Any:
    """Say where a record of the run belongs, by its id, and which of its codes speak for it."""
    row = _done(store, key, user)
    data = visible(store, "data", row["data"], user)
    store.audit(user.name, "look at a record", key)
    asked_for = {"codes": [], "record": asked.record}
    return jobs.ask("explain", jobs.task(row, data) | asked_for)


@router.post("/runs/{key}/move", status_code=201)
def move(key: str, asked: Move, user: Exporter, store: TheStore, jobs: TheJobs) -> Row:
    """Move a record to another cluster by hand, in a new run that is marked so."""
    row = _done(store, key, user)
    kept = ("data", "k", "rules", "title", "within")
    body = {name: row[name] for name in kept} | {"parent": key, "merge": None, "shared": False}
    made = store.add("runs", user.name, body | {"state": "queued", "cluster": asked.cluster})
    store.audit(user.name, "move a record", made["id"])
    jobs.put(made["id"], asked.record)
    return made


@router.post("/runs/{key}/assign")
async def assign(request: Request, key: str, user: Exporter, name: Text) -> FileResponse:
    """Assign the records in the body to the clusters of a run; the answer is a CSV file."""
    store: Store = request.app.state.store
    jobs: Jobs = request.app.state.jobs
    row = _done(store, key, user)
    folder = store.folder("runs", key) / f"assign-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    try:
        records = folder / f"records{''.join(Path(name).suffixes[-2:])}"
        await receive(request, records)
        task = _task(jobs, key) | {"records": str(records), "path": str(folder / "out.csv")}
        await run_in_threadpool(jobs.ask, "assign", task)
    except BaseException:
        shutil.rmtree(folder)
        raise
    store.audit(user.name, "assign", row["id"])
    done = BackgroundTask(shutil.rmtree, folder)
    return FileResponse(folder / "out.csv", filename="assignments.csv", background=done)


@router.get("/compare/{one}/{two}")
def compare(one: str, two: str, user: Viewer, store: TheStore, jobs: TheJobs) -> Any:
    """Put two runs side by side."""
    rows = [_done(store, key, user) for key in (one, two)]
    task = {
        "folders": [str(store.folder("runs", row["id"])) for row in rows],
        "same_data": rows[0]["data"] == rows[1]["data"],
        "min_cell": jobs.min_cell,
    }
    return jobs.ask("compare", task) | {"runs": rows}


@router.get("/runs/{key}/download/{name}")
def download(key: str, name: str, user: Viewer, store: TheStore, jobs: TheJobs) -> FileResponse:
    """Send a run as a file; the cluster of each record only to exporters."""
    row = _done(store, key, user)
    if name not in (*PATIENTS, *AGGREGATES, *CHARTS):
        raise RefusedError(404, "There is no such download.")
    if name in PATIENTS and not user.may("exporter"):
        raise RefusedError(403, "This needs the role exporter; ask whoever runs this server.")
    store.audit(user.name, f"export {name}", key)
    folder = store.folder("runs", key)
    if name == "model.comorb":
        return FileResponse(folder / name, filename=name)
    path = folder / f"download-{secrets.token_hex(4)}{Path(name).suffix}"
    task = _task(jobs, key) | {"path": str(path), "name": name, "title": row["title"]}
    jobs.ask("download", task)
    return FileResponse(path, filename=name, background=BackgroundTask(path.unlink))


def _done(store: Store, key: str, user: User) -> Row:
    row = visible(store, "runs", key, user)
    if row["state"] != "done":
        raise RefusedError(409, "This run is not done yet.")
    return row


def _task(jobs: Jobs, key: str) -> dict[str, Any]:
    return {"folder": str(jobs.store.folder("runs", key)), "min_cell": jobs.min_cell}


def _path(store: Store, row: Row) -> list[dict[str, Any]]:
    """Return the clusters that a run is inside of, outermost first, with the runs they are of."""
    path: list[dict[str, Any]] = []
    while row.get("within"):
        above = store.get("runs", row["within"]["run"])
        if above is None:
            break
        path.insert(0, {"run": above["id"], "title": above["title"], **row["within"]})
        row = above
    return path


async def _events(jobs: Jobs, key: str) -> AsyncIterator[str]:
    while True:
        told = jobs.progress(key)
        yield f"data: {json.dumps(told)}\n\n"
        if told["state"] not in ("queued", "running") and (
            told["measured"] or told["state"] != "done"
        ):
            return
        await asyncio.sleep(_SECONDS)
