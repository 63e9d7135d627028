"""The API of data: upload, what was understood, and the size of a cohort."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from comorb.records.sources.endings import table_name
from comorb.web.server.budget import question, questions_left, spend
from comorb.web.server.jobs import Jobs
from comorb.web.server.readers import Errand, followed
from comorb.web.server.refusals import RefusedError
from comorb.web.server.rights import counts_exactly, told_data
from comorb.web.server.session import (
    EVERYONE,
    Analyst,
    TheErrand,
    TheJobs,
    TheStore,
    Viewer,
    brought_back,
    owned,
    visible,
)
from comorb.web.server.store import Row, Store
from comorb.web.server.uploads import known_ending, receive
from comorb.web.worker.messages import (
    CountCohort,
    CountProtected,
    DescribeColumns,
    Understand,
)
from comorb.web.worker.process import TaskError

router = APIRouter(prefix="/api/v1/data", tags=["data"])
NO_NUL = r"^[^\x00]*$"
Text = Annotated[str, Field(max_length=200, pattern=NO_NUL)]
Code = Annotated[str, Field(max_length=40, pattern=NO_NUL)]
MapKey = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]


class Rules(BaseModel):
    """Which records are kept, which codes, and which columns beside them are features.

    A feature is asked for as on the command line, such as 'age' or 'hba1c=number'.
    """

    having: list[Code] = Field(default=[], max_length=200)
    without: list[Code] = Field(default=[], max_length=200)
    age: tuple[float | None, float | None] | None = None
    sex: list[Code] = Field(default=[], max_length=20)
    dates: tuple[Code | None, Code | None] | None = None
    at_least: int | None = Field(default=None, ge=1, le=100)
    level: list[Code] = Field(default=["category"], min_length=1, max_length=3)
    drop_codes: list[Code] = Field(default=[], max_length=500)
    drop_rare: int = Field(default=0, ge=0)
    code_map: MapKey | None = None
    chronic: bool = False
    scores: list[Code] = Field(default=[], max_length=10)
    features: list[Text] = Field(default=[], max_length=100)


class Columns(BaseModel, extra="forbid"):
    """Which column is what, as in a layout; what is left out is recognised."""

    kind: Code | None = None
    codes: list[Text] = Field(default=[], max_length=5000)
    record: Text | None = None
    patient: Text | None = None
    part: Text | None = None
    separator: Code | None = None
    yes: Code | None = None
    version: Text | None = None
    age: Text | None = None
    sex: Text | None = None
    date: Text | None = None
    los: Text | None = None
    died: Text | None = None
    readmitted: Text | None = None
    cost: Text | None = None
    site: Text | None = None
    weight: Text | None = None
    discharged: Text | None = None
    disposition: Text | None = None
    category: list[Text] = Field(default=[], max_length=1000)
    number: list[Text] = Field(default=[], max_length=1000)
    ignored: list[Text] = Field(default=[], max_length=1000)


class Correction(BaseModel):
    """What is to be read otherwise than it was understood; None leaves it."""

    title: Text | None = None
    layout: Columns | None = None
    unit: Code | None = None
    system: Code | None = None
    outcomes: list[Text] | None = None


@router.get("")
def list_data(user: Viewer, store: TheStore, jobs: TheJobs) -> list[Row]:
    """Return the data that you may open; viewers open none."""
    own = (user.name, EVERYONE) if user.may("analyst") else ()
    rows = [row for row in store.list("data") if row["owner"] in own]
    return [told_data(row, user, jobs.min_cell) for row in rows]


@router.put("", status_code=201)
async def upload(request: Request, user: Analyst, name: Text) -> Row:
    """Store the body as a file of records and say what was understood.

    A table that couldn't be read is ``refused``, with why and with its columns, to be named.
    """
    ending = known_ending(name)
    store: Store = request.app.state.store
    body = {"kind": "upload", "title": table_name(Path(name).name)[:120]}
    row = store.add("data", user.name, body | {"source": f"records{ending}", "reading": {}})
    try:
        await receive(request, user.name, store.folder("data", row["id"]) / row["source"])
        async with followed(request, Errand(user.name)) as errand:
            jobs = request.app.state.jobs
            row = await run_in_threadpool(understood_or_refused, jobs, row, errand)
    except BaseException:
        store.remove("data", row["id"])
        raise
    store.audit(user.name, "upload", row["id"])
    return told_data(row, user, request.app.state.jobs.min_cell)


@router.get("/{key}")
def get_data(key: str, user: Analyst, store: TheStore, jobs: TheJobs, errand: TheErrand) -> Row:
    """Return what was understood, or why the data can't be read as they are.

    Of data that you did not bring, in rough numbers, and how many questions you may ask.
    """
    row = visible(store, "data", key, user)
    store.audit(user.name, "open data", key)
    known = "about" in row or row.get("refused")
    row = row if known else understood_or_refused(jobs, row, errand)
    left = None if counts_exactly(user, row) else questions_left(store, user.name, key)
    return told_data(row, user, jobs.min_cell) | {"left": left}


@router.patch("/{key}")
def correct(
    key: str,
    change: Correction,
    user: Analyst,
    store: TheStore,
    jobs: TheJobs,
    errand: TheErrand,
) -> Row:
    """Read the data otherwise, or give them another title."""
    row = owned(store, "data", key, user)
    fields = change.model_dump(exclude_none=True)
    if "layout" in fields:
        fields["layout"] = {name: value for name, value in fields["layout"].items() if value}
    asked = {name: fields.pop(name) for name in ("layout", "unit", "system") if name in fields}
    if asked:
        reading = {name: value for name, value in (row["reading"] | asked).items() if value}
        row = understood(jobs, row | {"reading": reading}, errand)
        fields["reading"] = reading
    store.change("data", key, fields)
    store.audit(user.name, "change data", key)
    return told_data(store.get("data", key) or row, user, jobs.min_cell)


@router.delete("/{key}", status_code=204)
def delete_data(key: str, user: Analyst, store: TheStore) -> None:
    """Delete uploaded data; runs on them stay. They can be brought back for ten minutes."""
    if owned(store, "data", key, user)["kind"] != "upload":
        raise RefusedError(403, "Only uploaded data can be deleted here.")
    store.put_aside("data", key)
    store.audit(user.name, "delete data", key)


@router.post("/{key}/restore")
def restore_data(key: str, user: Analyst, store: TheStore, jobs: TheJobs) -> Row:
    """Bring back data of yours that were just deleted."""
    return told_data(brought_back(store, "data", key, user), user, jobs.min_cell)


@router.post("/{key}/size")
def size(
    key: str,
    rules: Annotated[Rules, Body(embed=True)],
    user: Analyst,
    store: TheStore,
    jobs: TheJobs,
    errand: TheErrand,
) -> Any:
    """Return how many records and codes the rules leave.

    Of data that you did not bring, about how many, with how many questions are left to you.
    """
    row = visible(store, "data", key, user)
    data, plain = jobs.data_of(row), plain_rules(rules)
    if counts_exactly(user, row):
        return jobs.read(CountCohort(data, plain), errand) | {"left": None}
    task = CountProtected(data, plain, str(store.workspace), jobs.min_cell)
    told = jobs.read(task, errand)
    return told | {"left": spend(store, user.name, key, question(plain))}


def plain_rules(rules: Rules) -> dict[str, Any]:
    """Return rules as a task takes them."""
    return rules.model_dump(exclude_defaults=True)


def understood(jobs: Jobs, row: Row, errand: Errand) -> Row:
    """Have data read, and return their row with what was understood."""
    try:
        about = jobs.read(Understand(jobs.data_of(row), jobs.min_cell), errand)
    except TaskError as error:
        own = "".join([row["title"], *Path(row["source"]).suffixes])
        raise TaskError(str(error).replace(row["source"], own)) from None
    folder = jobs.store.folder("data", row["id"])
    for old in (*folder.glob("codes-*.json"), *folder.glob("worklist-*.csv")):
        old.unlink()
    return jobs.store.change("data", row["id"], {"about": about, "refused": None}) or row


def understood_or_refused(jobs: Jobs, row: Row, errand: Errand) -> Row:
    """Have data read; a table that can't be read is kept with its columns, so that it can be."""
    try:
        return understood(jobs, row, errand)
    except TaskError as error:
        try:
            columns = jobs.read(DescribeColumns(jobs.data_of(row), jobs.min_cell), errand)
        except TaskError:
            columns = {"columns": []}
        if not columns["columns"]:
            raise
        refused = {"refused": {"error": str(error), **columns}}
    return jobs.store.change("data", row["id"], refused) or row
