"""The API of what a run found: read, name, explain, slice, move, assign, compare and download."""

from __future__ import annotations

import filecmp
import json
import secrets
import shutil
from datetime import UTC, datetime
from functools import partial
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
from comorb.web.server.rights import counts_exactly, question, render_row, spend, view_of
from comorb.web.server.security import RefusedError
from comorb.web.server.session import (
    EVERYONE,
    Analyst,
    Caller,
    Exporter,
    SignedInRoute,
    TheScope,
    Viewer,
)
from comorb.web.server.store import Row
from comorb.web.server.uploads import known_ending, receive
from comorb.web.worker import downloads
from comorb.web.worker.requests import RunRequest, View, cohorts, tasks

router = APIRouter(prefix="/api/v1", tags=["results"], route_class=SignedInRoute)
pathways_router = APIRouter(prefix="/api/v1", tags=["pathways"], route_class=SignedInRoute)

Line = Annotated[str, Field(max_length=200, pattern=NO_NUL)]


class RecordCodes(BaseModel):
    """The codes of one record, or words for them, and values such as age=82."""

    codes: list[Text] = Field(min_length=1, max_length=200)


class Record(BaseModel):
    """A record of a run by its id, which goes into no log and no address."""

    record: Annotated[str, Field(min_length=1, max_length=200, pattern=NO_NUL)]


class Move(Record):
    """A record and the number of the cluster that a person puts it in."""

    cluster: int = Field(ge=1)


class Note(BaseModel):
    """What people wrote of a cluster: who looks after its patients, and the way of care."""

    note: Annotated[str, Field(max_length=2000, pattern=NO_NUL)] = ""
    owner: Line = ""
    pathway: Line = ""


class Chosen(BaseModel):
    """Data whose records are put into the clusters of a run."""

    data: Code


@router.get("/runs/{key}/profile")
def profile(key: str, caller: Viewer, scope: TheScope, view: View | None = None) -> Response:
    """Return the profile of a run, in full to exporters on runs of their own, else protected.

    Exporters may ask for either view. Diagnoses have their names in the language of the page, or
    in the one that the header Accept-Language names.
    """
    row = caller.finished(key)
    path = caller.jobs.document(key, view_of(caller.user, view, row), scope)
    caller.audit("open run", key)
    return Response(path.read_bytes(), media_type="application/json")


@router.get("/runs/{key}/relevance")
def relevance(
    key: str,
    caller: Viewer,
    scope: TheScope,
    lam: Annotated[float, Query(alias="lambda", ge=0, le=1)] = 0.6,
    n: Annotated[int, Query(ge=1, le=100)] = 10,
    view: View | None = None,
) -> Any:
    """Return the n most relevant diagnoses of each cluster for a λ."""
    least, folder = caller.least(view, caller.finished(key)), caller.jobs.folder_of(key)
    task = partial(tasks.rank_diagnoses, folder, least, lam, n, scope.language)
    return caller.jobs.ask(task, scope)


@router.get("/runs/{key}/map")
def patient_map(
    key: str, caller: Viewer, scope: TheScope, by: Text = "cluster", view: View | None = None
) -> Any:
    """Return how many records lie in each cell of the map of a run, and what most of them are.

    ``by`` is ``cluster``, a code, or an outcome, such as ``sex=female``.
    """
    row = caller.finished(key)
    request = _request(caller, row, RefusedError(404, "run.data_deleted_map"))
    least = caller.least(view, row)
    path = caller.store.folder("runs", key) / f"map-{_digest(f'{least} {by}')}.json"
    if not path.exists():
        counted = caller.jobs.read(partial(cohorts.count_map, request, by, least), scope)
        draft = path.with_suffix(f".{secrets.token_hex(4)}")
        draft.write_text(json.dumps(counted), encoding="utf-8")
        draft.replace(path)
    return Response(path.read_bytes(), media_type="application/json")


@router.get("/runs/{key}/tree")
def tree(key: str, caller: Viewer, view: View | None = None) -> Any:
    """Return how groups split, from one on, where the number of clusters was chosen; else null.

    Groups of few records have no name in the protected view.
    """
    row = caller.finished(key)
    path = caller.store.folder("runs", key) / "tree.json"
    if not path.exists():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    least = caller.least(view, row)
    if least:
        fewest = max(2 * least / row["records"], 0.005)
        for group in (group for level in found["levels"] for group in level):
            few = group["share"] < fewest
            group |= {"name": None, "share": None} if few else {"share": round(group["share"], 2)}
    return found


@router.put("/runs/{key}/names")
def name_clusters(
    key: str, names: dict[int, Text], caller: Analyst, scope: TheScope
) -> dict[int, str]:
    """Give clusters other names, by their numbers."""
    stripped = {number: name.strip() for number, name in names.items()}
    _change(caller, key, scope, tasks.name_clusters, stripped)
    caller.audit("name clusters", key)
    return stripped


@router.post("/runs/{key}/explain")
def explain(
    key: str, given: RecordCodes, caller: Viewer, scope: TheScope, view: View | None = None
) -> Any:
    """Say where a record with these codes belongs, and which codes speak for and against.

    Words stand for the code that they name; of those that name several, these are the ``choices``.
    """
    least, folder = caller.least(view, caller.finished(key)), caller.jobs.folder_of(key)
    task = partial(tasks.explain_texts, folder, least, given.codes, scope.language)
    return caller.jobs.ask(task, scope)


@router.post("/runs/{key}/record")
def explain_record(key: str, given: Record, caller: Exporter, scope: TheScope) -> Any:
    """Say where a record of the run belongs, by its id, and which of its codes speak for it."""
    row = caller.finished(key)
    request = caller.jobs.request(row, caller.visible("data", row["data"]))
    caller.audit("look at a record", key)
    task = partial(tasks.explain_record, request, given.record, scope.language)
    return caller.jobs.read(task, scope)


@router.post("/runs/{key}/move", status_code=201)
def move(key: str, given: Move, caller: Exporter) -> Row:
    """Move a record to another cluster by hand, in a new run that is marked so."""
    row, user = caller.finished(key), caller.user.name
    caller.visible("data", row["data"])
    caller.jobs.check_queue(user)
    kept = ("data", "k", "rules", "title", "within")
    body = {name: row[name] for name in kept} | {"parent": key, "merge": None, "shared": False}
    made = caller.store.add("runs", user, body | {"state": "queued", "cluster": given.cluster})
    caller.audit("move a record", made["id"])
    caller.jobs.put(made["id"], given.record)
    return caller.show_run(made)


@router.post("/runs/{key}/assign")
async def assign(request: Request, key: str, caller: Exporter, name: Text) -> FileResponse:
    """Assign the records in the body to the clusters of a run; the answer is a CSV file."""
    caller.finished(key)
    ending, user = known_ending(name), caller.user.name
    run = caller.store.folder("runs", key)
    folder = run / f"assign-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    records, path = folder / f"records{ending}", folder / "out.csv"
    try:
        await receive(request, user, records)
        task = partial(tasks.assign_file, str(run), str(records), str(path))
        async with cancel_on_disconnect(request, CancelScope(user)) as scope:
            await run_in_threadpool(caller.jobs.read, task, scope)
    except BaseException:
        shutil.rmtree(folder)
        raise
    caller.audit("assign", key)
    done = BackgroundTask(shutil.rmtree, folder)
    return FileResponse(path, filename="assignments.csv", background=done)


@router.get("/compare/{one}/{two}")
def compare(one: str, two: str, caller: Viewer, scope: TheScope, view: View | None = None) -> Any:
    """Put two runs side by side."""
    jobs, rows = caller.jobs, [caller.finished(key) for key in (one, two)]
    view = view_of(caller.user, view, *rows)
    follow = rows[0]["data"] == rows[1]["data"] or _same_file(jobs, rows)
    folders, workspace = (jobs.folder_of(one), jobs.folder_of(two)), str(caller.store.workspace)
    task = partial(tasks.compare, folders, jobs.least(view), follow, workspace, scope.language)
    compared = jobs.ask(task, scope)
    for key in (one, two):
        caller.audit("compare run", key)
    return compared | {"runs": [caller.show_run(row) for row in rows], "view": view}


def _same_file(jobs: Jobs, rows: list[Row]) -> bool:
    """Whether two data sets are one file, read in one way."""
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
    key: str, name: str, caller: Viewer, scope: TheScope, view: View = "protected"
) -> FileResponse:
    """Send a run as a file, protected unless an exporter asks for full counts.

    The cluster of each record goes only to exporters. What people read is in the language of the
    page, or in the one that the header Accept-Language names.
    """
    row = caller.finished(key)
    if name not in (*downloads.PATIENTS, *downloads.offered()):
        raise RefusedError(404, "run.no_download")
    if name in downloads.PATIENTS and not caller.user.may("exporter"):
        raise RefusedError(403, "rights.role", role="exporter")
    least = caller.least(view)
    caller.audit(f"export {name}" if least else f"export full {name}", key)
    folder = caller.store.folder("runs", key)
    path = folder / f"download-{secrets.token_hex(4)}{Path(name).suffix}"
    task = partial(
        downloads.write,
        str(folder),
        least,
        str(path),
        name,
        row["title"],
        language=scope.language,
        site=caller.jobs.site,
        date=datetime.fromtimestamp(row["created"], UTC).date().isoformat(),
        starred=tuple(row.get("starred") or ()),
    )
    try:
        caller.jobs.ask(task, scope)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return FileResponse(path, filename=name, background=BackgroundTask(path.unlink))


@router.get("/runs/{key}/slices")
def slices(key: str, by: Text, caller: Viewer, scope: TheScope, view: View | None = None) -> Any:
    """Return the shares of the clusters within slices of the records, by one of its ``splits``."""
    row = _splittable(caller, key, by)
    least = caller.least(view, row)
    task = partial(tasks.split_run, _request(caller, row), least, by)
    found = caller.jobs.read(task, scope)
    caller.audit("split run", key)
    return render_row(found, caller.user)


@router.get("/runs/{key}/slices/profile")
def slice_profile(
    key: str, by: Text, label: Text, caller: Viewer, scope: TheScope, view: View | None = None
) -> FileResponse:
    """Return the profile of the records of one slice, by its label, in the clusters of the run."""
    row = _splittable(caller, key, by)
    least, language = caller.least(view, row), scope.language
    name = _digest(json.dumps([by, label, least, language]))
    path = caller.store.folder("runs", key) / f"page-slice-{name}.json"
    if not path.exists():
        slice_of = (_request(caller, row), least, by, label)
        caller.jobs.read(partial(tasks.write_slice, *slice_of, str(path), language), scope)
    caller.audit("open slice", key)
    return FileResponse(path, media_type="application/json")


def _splittable(caller: Caller, key: str, by: str) -> Row:
    """Return a run that can be split by a column; other columns would be new questions."""
    row = caller.finished(key)
    if by not in row.get("splits", ()):
        raise RefusedError(422, "run.no_split_column")
    return row


def _request(caller: Caller, row: Row, gone: RefusedError | None = None) -> RunRequest:
    """Return what reads the records of a run, whose data everyone may use who sees the run."""
    data = caller.store.get("data", row["data"])
    if data is None:
        raise gone or RefusedError(409, "run.data_deleted")
    return caller.jobs.request(row, data)


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _change(caller: Caller, key: str, scope: CancelScope, function: Any, values: Any) -> None:
    """Change what is kept of the clusters of a run of the user's."""
    caller.owned("runs", key)
    caller.finished(key)
    jobs = caller.jobs
    jobs.change(partial(function, jobs.folder_of(key), jobs.min_cell, values), scope)


@pathways_router.put("/runs/{key}/notes")
def note_clusters(
    key: str, notes: dict[int, Note], caller: Analyst, scope: TheScope
) -> dict[int, Note]:
    """Note who looks after clusters and how, by their numbers; empty texts are taken off."""
    plain = {number: one.model_dump() for number, one in notes.items()}
    _change(caller, key, scope, tasks.note_clusters, plain)
    caller.audit("note clusters", key)
    return notes


@pathways_router.post("/runs/{key}/arrivals")
def assign_data(
    key: str, given: Chosen, caller: Analyst, scope: TheScope, view: View | None = None
) -> Any:
    """Put the records of data into the clusters of a run, and return what has changed since.

    Exporters may then have the worklist. Others see protected counts, and it counts as a
    question of the data, and of those of the run, that they did not bring.
    """
    store, jobs, user = caller.store, caller.jobs, caller.user
    run = caller.finished(key)
    data = caller.visible("data", given.data)
    least = caller.least(view, run)
    own = store.get("data", run["data"]) or {"owner": EVERYONE}
    for name, row in ((given.data, data), (run["data"], own)):
        if not counts_exactly(user, row):
            spend(store, user.name, name, [question({}, {"run": key, "data": given.data})])
    about = (jobs.folder_of(key), least, jobs.data_of(data), str(store.workspace))
    task = partial(tasks.assign_data, *about, max(jobs.min_cell, 2))
    if not user.may("exporter"):
        found = jobs.read(task, scope)
    else:
        folder = store.folder("data", given.data)
        path = folder / f"assign-{secrets.token_hex(4)}.csv"
        try:
            found = jobs.read(partial(task, path=str(path)), scope)
            path.replace(folder / f"worklist-{key}.csv")
        finally:
            for left in folder.glob(f"*{path.stem}*"):
                left.unlink(missing_ok=True)
    caller.audit("assign data", key)
    return render_row(found, user)


@pathways_router.get("/runs/{key}/worklist/{data}")
def worklist(key: str, data: str, caller: Exporter) -> FileResponse:
    """Send the cluster of each record of data that were put into the clusters of a run."""
    caller.finished(key)
    caller.visible("data", data)
    path = caller.store.folder("data", data) / f"worklist-{key}.csv"
    if not path.exists():
        raise RefusedError(404, "run.no_worklist")
    caller.audit("export worklist", key)
    return FileResponse(path, media_type="text/csv", filename="worklist.csv")
