"""The API of what a run found: read, name, explain, slice, move, assign, compare and download."""

from __future__ import annotations

import filecmp
import hashlib
import json
import secrets
import shutil
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, Response
from pydantic import BaseModel, Field
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool

from comorb.web.server.data_api import NO_NUL, Code, Text
from comorb.web.server.jobs import Jobs
from comorb.web.server.readers import CancelScope, cancel_on_disconnect
from comorb.web.server.rights import counts_exactly, question, render_row, show_run, spend, view_of
from comorb.web.server.security import RefusedError
from comorb.web.server.session import (
    EVERYONE,
    Analyst,
    Exporter,
    SignedInRoute,
    TheJobs,
    TheScope,
    TheStore,
    Viewer,
    finished,
    owned,
    visible,
)
from comorb.web.server.store import Row, Store
from comorb.web.server.uploads import known_ending, receive
from comorb.web.worker import downloads, requests
from comorb.web.worker.requests import View

pathways_router = APIRouter(prefix="/api/v1", tags=["pathways"], route_class=SignedInRoute)

Line = Annotated[str, Field(max_length=200, pattern=NO_NUL)]


class Note(BaseModel):
    """What people wrote of a cluster: who looks after its patients, and the way of care."""

    note: Annotated[str, Field(max_length=2000, pattern=NO_NUL)] = ""
    owner: Line = ""
    pathway: Line = ""


class Chosen(BaseModel):
    """Data whose records are put into the clusters of a run."""

    data: Code


@pathways_router.put("/runs/{key}/notes")
def note_clusters(
    key: str,
    notes: dict[int, Note],
    user: Analyst,
    store: TheStore,
    jobs: TheJobs,
    scope: TheScope,
) -> dict[int, Note]:
    """Note who looks after clusters and how, by their numbers; empty texts are taken off."""
    owned(store, "runs", key, user)
    finished(store, key, user)
    plain = {number: one.model_dump() for number, one in notes.items()}
    jobs.change(requests.NoteClusters(jobs.folder_of(key), jobs.min_cell, plain), scope)
    store.audit(user.name, "note clusters", key)
    return notes


@pathways_router.post("/runs/{key}/arrivals")
def assign_data(
    key: str,
    asked: Chosen,
    user: Analyst,
    store: TheStore,
    jobs: TheJobs,
    scope: TheScope,
    view: View | None = None,
) -> Any:
    """Put the records of data into the clusters of a run, and say what changed since it was made.

    Exporters may then have the worklist. Others are told protected counts, and it counts as a
    question of the data, and of those of the run, that they did not bring.
    """
    run = finished(store, key, user)
    data = visible(store, "data", asked.data, user)
    least = jobs.least(view_of(user, view, run))
    own = store.get("data", run["data"]) or {"owner": EVERYONE}
    for name, row in ((asked.data, data), (run["data"], own)):
        if not counts_exactly(user, row):
            spend(store, user.name, name, [question({}, {"run": key, "data": asked.data})])
    task = requests.AssignData(
        folder=jobs.folder_of(key),
        min_cell=least,
        data=jobs.data_of(data),
        workspace=str(store.workspace),
        fewest=max(jobs.min_cell, 2),
    )
    if not user.may("exporter"):
        told = jobs.read(task, scope)
    else:
        folder = store.folder("data", asked.data)
        path = folder / f"assign-{secrets.token_hex(4)}.csv"
        try:
            told = jobs.read(requests.AssignData(**vars(task) | {"path": str(path)}), scope)
            path.replace(folder / _worklist(key))
        finally:
            for left in folder.glob(f"*{path.stem}*"):
                left.unlink(missing_ok=True)
    store.audit(user.name, "assign data", key)
    return render_row(told, user)


@pathways_router.get("/runs/{key}/worklist/{data}")
def worklist(key: str, data: str, user: Exporter, store: TheStore) -> FileResponse:
    """Send the cluster of each record of data that were put into the clusters of a run."""
    finished(store, key, user)
    visible(store, "data", data, user)
    path = store.folder("data", data) / _worklist(key)
    if not path.exists():
        raise RefusedError(404, "run.no_worklist")
    store.audit(user.name, "export worklist", key)
    return FileResponse(path, media_type="text/csv", filename="worklist.csv")


def _worklist(run: str) -> str:
    return f"worklist-{run}.csv"


router = APIRouter(prefix="/api/v1", tags=["results"], route_class=SignedInRoute)


class Asked(BaseModel):
    """The codes of one record, or words for them, and values such as age=82."""

    codes: list[Text] = Field(min_length=1, max_length=200)


class Ranking(BaseModel):
    """How many diagnoses of each cluster are told, and the λ that they are ranked by."""

    lam: float = Field(default=0.6, alias="lambda", ge=0, le=1)
    n: int = Field(default=10, ge=1, le=100)


class Record(BaseModel):
    """A record of a run by its id, which goes into no log and no address."""

    record: Annotated[str, Field(min_length=1, max_length=200, pattern=NO_NUL)]


class Move(Record):
    """A record and the number of the cluster that a person puts it in."""

    cluster: int = Field(ge=1)


@router.get("/runs/{key}/profile")
def profile(
    key: str,
    user: Viewer,
    store: TheStore,
    jobs: TheJobs,
    scope: TheScope,
    view: View | None = None,
) -> Response:
    """Return the profile of a run, in full to exporters on runs of their own, else protected.

    Exporters may ask for either view. Diagnoses have their names in the language of the page, or
    in the one that the header Accept-Language names.
    """
    row = finished(store, key, user)
    path = jobs.document(key, view_of(user, view, row), scope)
    store.audit(user.name, "open run", key)
    return Response(path.read_bytes(), media_type="application/json")


@router.get("/runs/{key}/relevance")
def relevance(
    key: str,
    wanted: Annotated[Ranking, Query()],
    user: Viewer,
    store: TheStore,
    jobs: TheJobs,
    scope: TheScope,
    view: View | None = None,
) -> Any:
    """Return the most relevant diagnoses of each cluster for a λ."""
    least = jobs.least(view_of(user, view, finished(store, key, user)))
    task = requests.RankDiagnoses(jobs.folder_of(key), least, wanted.lam, wanted.n, scope.language)
    return jobs.ask(task, scope)


@router.get("/runs/{key}/map")
def patient_map(
    key: str,
    user: Viewer,
    store: TheStore,
    jobs: TheJobs,
    scope: TheScope,
    by: Text = "cluster",
    view: View | None = None,
) -> Any:
    """Return how many records lie in each cell of the map of a run, and what most of them are.

    ``by`` is ``cluster``, a code, or an outcome, such as ``sex=female``.
    """
    row = finished(store, key, user)
    data = store.get("data", row["data"])
    if data is None:
        raise RefusedError(404, "run.data_deleted_map")
    least = jobs.least(view_of(user, view, row))
    name = sha256(f"{least} {by}".encode()).hexdigest()[:16]
    path = store.folder("runs", key) / f"map-{name}.json"
    if not path.exists():
        told = jobs.read(requests.DrawMap(jobs.task(row, data), by, least), scope)
        draft = path.with_suffix(f".{secrets.token_hex(4)}")
        draft.write_text(json.dumps(told), encoding="utf-8")
        draft.replace(path)
    return Response(path.read_bytes(), media_type="application/json")


@router.get("/runs/{key}/tree")
def tree(key: str, user: Viewer, store: TheStore, jobs: TheJobs, view: View | None = None) -> Any:
    """Return how groups split, from one on, where the number of clusters was chosen; else null.

    Groups of few records have no name in the protected view.
    """
    row = finished(store, key, user)
    path = store.folder("runs", key) / "tree.json"
    if not path.exists():
        return None
    told = json.loads(path.read_text(encoding="utf-8"))
    least = jobs.least(view_of(user, view, row))
    if least:
        fewest = max(2 * least / row["records"], 0.005)
        for group in (group for level in told["levels"] for group in level):
            few = group["share"] < fewest
            group |= {"name": None, "share": None} if few else {"share": round(group["share"], 2)}
    return told


@router.put("/runs/{key}/names")
def name_clusters(
    key: str,
    names: dict[int, Text],
    user: Analyst,
    store: TheStore,
    jobs: TheJobs,
    scope: TheScope,
) -> dict[int, str]:
    """Give clusters other names, by their numbers."""
    owned(store, "runs", key, user)
    finished(store, key, user)
    stripped = {number: name.strip() for number, name in names.items()}
    jobs.change(requests.NameClusters(jobs.folder_of(key), jobs.min_cell, stripped), scope)
    store.audit(user.name, "name clusters", key)
    return stripped


@router.post("/runs/{key}/explain")
def explain(
    key: str,
    asked: Asked,
    user: Viewer,
    store: TheStore,
    jobs: TheJobs,
    scope: TheScope,
    view: View | None = None,
) -> Any:
    """Say where a record with these codes belongs, and which codes speak for and against.

    Words stand for the code that they name; of those that name several, these are the ``choices``.
    """
    least = jobs.least(view_of(user, view, finished(store, key, user)))
    task = requests.ExplainCodes(jobs.folder_of(key), least, asked.codes, scope.language)
    return jobs.ask(task, scope)


@router.post("/runs/{key}/record")
def explain_record(
    key: str, asked: Record, user: Exporter, store: TheStore, jobs: TheJobs, scope: TheScope
) -> Any:
    """Say where a record of the run belongs, by its id, and which of its codes speak for it."""
    row = finished(store, key, user)
    data = visible(store, "data", row["data"], user)
    store.audit(user.name, "look at a record", key)
    task = requests.ExplainRecord(jobs.task(row, data), asked.record, scope.language)
    return jobs.read(task, scope)


@router.post("/runs/{key}/move", status_code=201)
def move(key: str, asked: Move, user: Exporter, store: TheStore, jobs: TheJobs) -> Row:
    """Move a record to another cluster by hand, in a new run that is marked so."""
    row = finished(store, key, user)
    visible(store, "data", row["data"], user)
    jobs.check_queue(user.name)
    kept = ("data", "k", "rules", "title", "within")
    body = {name: row[name] for name in kept} | {"parent": key, "merge": None, "shared": False}
    made = store.add("runs", user.name, body | {"state": "queued", "cluster": asked.cluster})
    store.audit(user.name, "move a record", made["id"])
    jobs.put(made["id"], asked.record)
    return show_run(made, user, jobs.min_cell)


@router.post("/runs/{key}/assign")
async def assign(request: Request, key: str, user: Exporter, name: Text) -> FileResponse:
    """Assign the records in the body to the clusters of a run; the answer is a CSV file."""
    store: Store = request.app.state.store
    jobs: Jobs = request.app.state.jobs
    row, ending = finished(store, key, user), known_ending(name)
    folder = store.folder("runs", key) / f"assign-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    try:
        records = folder / f"records{ending}"
        await receive(request, user.name, records)
        path = str(folder / "out.csv")
        task = requests.AssignFile(jobs.folder_of(key), jobs.min_cell, str(records), path)
        async with cancel_on_disconnect(request, CancelScope(user.name)) as scope:
            await run_in_threadpool(jobs.read, task, scope)
    except BaseException:
        shutil.rmtree(folder)
        raise
    store.audit(user.name, "assign", row["id"])
    done = BackgroundTask(shutil.rmtree, folder)
    return FileResponse(folder / "out.csv", filename="assignments.csv", background=done)


@router.get("/compare/{one}/{two}")
def compare(
    one: str,
    two: str,
    user: Viewer,
    store: TheStore,
    jobs: TheJobs,
    scope: TheScope,
    view: View | None = None,
) -> Any:
    """Put two runs side by side."""
    rows = [finished(store, key, user) for key in (one, two)]
    view = view_of(user, view, *rows)
    follow = rows[0]["data"] == rows[1]["data"] or _same_file(jobs, rows)
    task = requests.CompareRuns(
        one=jobs.folder_of(one),
        two=jobs.folder_of(two),
        follow=follow,
        workspace=str(store.workspace),
        min_cell=jobs.least(view),
        language=scope.language,
    )
    told = jobs.ask(task, scope)
    for key in (one, two):
        store.audit(user.name, "compare run", key)
    return told | {"runs": [show_run(row, user, jobs.min_cell) for row in rows], "view": view}


def _same_file(jobs: Jobs, rows: list[Row]) -> bool:
    """Tell whether two data sets are one file, read in one way."""
    data = [jobs.store.get("data", row["data"]) for row in rows]
    if None in data:
        return False
    one, two = (jobs.data_of(each) for each in data if each)
    paths = [Path(one.source), Path(two.source)]
    return (
        one.reading == two.reading
        and all(path.is_file() for path in paths)
        and filecmp.cmp(paths[0], paths[1], shallow=False)
    )


@router.get("/runs/{key}/download/{name}")
def download(
    key: str,
    name: str,
    user: Viewer,
    store: TheStore,
    jobs: TheJobs,
    scope: TheScope,
    view: View = "protected",
) -> FileResponse:
    """Send a run as a file, protected unless an exporter asks for full counts.

    The cluster of each record goes only to exporters. What people read is in the language of the
    page, or in the one that the header Accept-Language names.
    """
    row = finished(store, key, user)
    if name not in (*downloads.PATIENTS, *downloads.offered()):
        raise RefusedError(404, "run.no_download")
    if name in downloads.PATIENTS and not user.may("exporter"):
        raise RefusedError(403, "rights.role", role="exporter")
    least = jobs.least(view_of(user, view))
    store.audit(user.name, f"export {name}" if least else f"export full {name}", key)
    folder = store.folder("runs", key)
    path = folder / f"download-{secrets.token_hex(4)}{Path(name).suffix}"
    task = requests.WriteDownload(
        folder=str(folder),
        min_cell=least,
        path=str(path),
        name=name,
        title=row["title"],
        language=scope.language,
        site=jobs.site,
        day=datetime.fromtimestamp(row["created"], UTC).date().isoformat(),
        starred=tuple(row.get("starred") or ()),
    )
    try:
        jobs.ask(task, scope)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return FileResponse(path, filename=name, background=BackgroundTask(path.unlink))


slices_router = APIRouter(prefix="/api/v1", tags=["results"], route_class=SignedInRoute)


class Splitting(BaseModel):
    """What the records are split by, one of the run's ``splits``."""

    by: Text


class Slice(Splitting):
    """One slice, by its label."""

    label: Text


@slices_router.get("/runs/{key}/slices")
def slices(
    key: str,
    asked: Annotated[Splitting, Query()],
    user: Viewer,
    store: TheStore,
    jobs: TheJobs,
    scope: TheScope,
    view: View | None = None,
) -> Any:
    """Return the shares of the clusters within slices of the run's records."""
    row = _split(finished(store, key, user), asked.by)
    least = jobs.least(view_of(user, view, row))
    task = requests.SplitRun(_task(store, jobs, row), least, asked.by)
    told = jobs.read(task, scope)
    store.audit(user.name, "split run", key)
    return render_row(told, user)


@slices_router.get("/runs/{key}/slices/profile")
def slice_profile(
    key: str,
    asked: Annotated[Slice, Query()],
    user: Viewer,
    store: TheStore,
    jobs: TheJobs,
    scope: TheScope,
    view: View | None = None,
) -> FileResponse:
    """Return the profile of the records of one slice, in the clusters of the run."""
    row = _split(finished(store, key, user), asked.by)
    least = jobs.least(view_of(user, view, row))
    what = json.dumps([asked.by, asked.label, least, scope.language])
    name = f"page-slice-{hashlib.sha256(what.encode()).hexdigest()[:16]}.json"
    path = store.folder("runs", key) / name
    if not path.exists():
        run = _task(store, jobs, row)
        told = (str(path), row.get("groups"), scope.language)
        jobs.read(requests.ShowSlice(run, least, asked.by, asked.label, *told), scope)
    store.audit(user.name, "open slice", key)
    return FileResponse(path, media_type="application/json")


def _split(row: Row, by: str) -> Row:
    """Return a run that can be split by something; other questions would be of the records."""
    if by not in row.get("splits", ()):
        raise RefusedError(422, "run.no_split_column")
    return row


def _task(store: Store, jobs: Jobs, row: Row) -> requests.MakeRun:
    data = store.get("data", row["data"])
    if data is None:
        raise RefusedError(409, "run.data_deleted")
    return jobs.task(row, data)
