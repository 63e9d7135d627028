"""The API of slices: the records of a run split by time, place or person, and one slice alone."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import FileResponse
from pydantic import BaseModel

from comorb.web.server.data_api import Text
from comorb.web.server.jobs import Jobs
from comorb.web.server.refusals import RefusedError
from comorb.web.server.rights import view_of
from comorb.web.server.session import TheErrand, TheJobs, TheStore, Viewer, finished
from comorb.web.server.store import Row, Store
from comorb.web.worker import messages
from comorb.web.worker.messages import View

router = APIRouter(prefix="/api/v1", tags=["results"])


class Splitting(BaseModel):
    """What the records are split by, one of the run's ``splits``."""

    by: Text


class Slice(Splitting):
    """One slice, by its label."""

    label: Text


@router.get("/runs/{key}/slices")
def slices(
    key: str,
    asked: Annotated[Splitting, Query()],
    user: Viewer,
    store: TheStore,
    jobs: TheJobs,
    errand: TheErrand,
    view: View | None = None,
) -> Any:
    """Return the shares of the clusters within slices of the run's records."""
    row = _split(finished(store, key, user), asked.by)
    least = jobs.least(view_of(user, view, row))
    task = messages.SplitRun(_task(store, jobs, row), least, asked.by)
    told = jobs.read(task, errand)
    store.audit(user.name, "split run", key)
    return told


@router.get("/runs/{key}/slices/profile")
def slice_profile(
    key: str,
    asked: Annotated[Slice, Query()],
    user: Viewer,
    store: TheStore,
    jobs: TheJobs,
    errand: TheErrand,
    view: View | None = None,
) -> FileResponse:
    """Return the profile of the records of one slice, in the clusters of the run."""
    row = _split(finished(store, key, user), asked.by)
    least = jobs.least(view_of(user, view, row))
    what = json.dumps([asked.by, asked.label, least, errand.language])
    name = f"page-slice-{hashlib.sha256(what.encode()).hexdigest()[:16]}.json"
    path = store.folder("runs", key) / name
    if not path.exists():
        run = _task(store, jobs, row)
        told = (str(path), row.get("groups"), errand.language)
        jobs.read(messages.ShowSlice(run, least, asked.by, asked.label, *told), errand)
    store.audit(user.name, "open slice", key)
    return FileResponse(path, media_type="application/json")


def _split(row: Row, by: str) -> Row:
    """Return a run that can be split by something; other questions would be of the records."""
    if by not in row.get("splits", ()):
        raise RefusedError(422, "This run can't be split by that; choose one of its columns.")
    return row


def _task(store: Store, jobs: Jobs, row: Row) -> messages.MakeRun:
    data = store.get("data", row["data"])
    if data is None:
        raise RefusedError(409, "The data of this run were deleted; open them again.")
    return jobs.task(row, data)
