"""The API of pathways: notes on clusters, and the records of other data in a run's clusters."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field

from comorb.web.server.budget import question, spend
from comorb.web.server.data_api import NO_NUL, Code
from comorb.web.server.refusals import RefusedError
from comorb.web.server.rights import counts_exactly, view_of
from comorb.web.server.session import (
    EVERYONE,
    Analyst,
    Exporter,
    TheErrand,
    TheJobs,
    TheStore,
    finished,
    owned,
    visible,
)
from comorb.web.worker import messages
from comorb.web.worker.messages import View

router = APIRouter(prefix="/api/v1", tags=["pathways"])

Line = Annotated[str, Field(max_length=200, pattern=NO_NUL)]


class Note(BaseModel):
    """What people wrote of a cluster: who looks after its patients, and the way of care."""

    note: Annotated[str, Field(max_length=2000, pattern=NO_NUL)] = ""
    owner: Line = ""
    pathway: Line = ""


class Chosen(BaseModel):
    """Data whose records are put into the clusters of a run."""

    data: Code


@router.put("/runs/{key}/notes")
def note_clusters(
    key: str,
    notes: dict[int, Note],
    user: Analyst,
    store: TheStore,
    jobs: TheJobs,
    errand: TheErrand,
) -> dict[int, Note]:
    """Note who looks after clusters and how, by their numbers; empty texts are taken off."""
    owned(store, "runs", key, user)
    finished(store, key, user)
    plain = {number: one.model_dump() for number, one in notes.items()}
    jobs.change(messages.NoteClusters(jobs.folder_of(key), jobs.min_cell, plain), errand)
    store.audit(user.name, "note clusters", key)
    return notes


@router.post("/runs/{key}/arrivals")
def assign_data(
    key: str,
    asked: Chosen,
    user: Analyst,
    store: TheStore,
    jobs: TheJobs,
    errand: TheErrand,
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
            spend(store, user.name, name, question({}, {"run": key, "data": asked.data}))
    task = messages.AssignData(
        folder=jobs.folder_of(key),
        min_cell=least,
        data=jobs.data_of(data),
        workspace=str(store.workspace),
        fewest=max(jobs.min_cell, 2),
    )
    if not user.may("exporter"):
        told = jobs.read(task, errand)
    else:
        folder = store.folder("data", asked.data)
        path = folder / f"assign-{secrets.token_hex(4)}.csv"
        try:
            told = jobs.read(messages.AssignData(**vars(task) | {"path": str(path)}), errand)
            path.replace(folder / _worklist(key))
        finally:
            for left in folder.glob(f"*{path.stem}*"):
                left.unlink(missing_ok=True)
    store.audit(user.name, "assign data", key)
    return told


@router.get("/runs/{key}/worklist/{data}")
def worklist(key: str, data: str, user: Exporter, store: TheStore) -> FileResponse:
    """Send the cluster of each record of data that were put into the clusters of a run."""
    finished(store, key, user)
    visible(store, "data", data, user)
    path = store.folder("data", data) / _worklist(key)
    if not path.exists():
        raise RefusedError(404, "There is no such worklist; assign the data to the run first.")
    store.audit(user.name, "export worklist", key)
    return FileResponse(path, media_type="text/csv", filename="worklist.csv")


def _worklist(run: str) -> str:
    return f"worklist-{run}.csv"
