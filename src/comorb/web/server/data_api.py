"""The API of data: upload, how they are read, and the size of a cohort."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Body, Request
from pydantic import BaseModel, Field, create_model
from starlette.concurrency import run_in_threadpool

from comorb.fields import Rule, Spec, rules_of
from comorb.messages import replace_text
from comorb.records.layouts.layout import Layout
from comorb.records.sources.files import table_name
from comorb.records.spec import CohortSpec
from comorb.web.server.jobs import Jobs
from comorb.web.server.readers import CancelScope, cancel_on_disconnect
from comorb.web.server.rights import counts_exactly, question, questions_left, render_row, spend
from comorb.web.server.security import RefusedError
from comorb.web.server.session import EVERYONE, Analyst, SignedInRoute, TheScope, Viewer
from comorb.web.server.store import Row
from comorb.web.server.uploads import known_ending, receive
from comorb.web.worker.process import TaskError
from comorb.web.worker.requests import cohorts

router = APIRouter(prefix="/api/v1/data", tags=["data"], route_class=SignedInRoute)
NO_NUL = r"^[^\x00]*$"
Text = Annotated[str, Field(max_length=200, pattern=NO_NUL)]
Code = Annotated[str, Field(max_length=40, pattern=NO_NUL)]
M = TypeVar("M", bound=BaseModel)


def takes(spec: type[Spec], *parts: str) -> Callable[[type[M]], type[M]]:
    """Give a body the fields that a specification declares, or some parts of it, within bounds.

    A field that the body has itself stays as it is.
    """

    def derived(body: type[M]) -> type[M]:
        rules = [rule for rule in rules_of(spec) if rule.web and rule.name not in body.model_fields]
        chosen = [rule for rule in rules if not parts or rule.part in parts]
        return _with_fields(body, {rule.name: _field_of(rule) for rule in chosen})

    return derived


def _field_of(rule: Rule) -> tuple[Any, Any]:
    """Return the type of a field and what pydantic checks of it."""
    bounds = ({"max_length": 200} if rule.form.is_set else {}) | dict(rule.bounds)
    longest, pattern = bounds.pop("longest", 40), bounds.pop("pattern", NO_NUL)
    text = Annotated[str, Field(max_length=longest, pattern=pattern)]
    default = list(rule.default) if rule.form.is_set else rule.default
    return rule.form.schema(text), Field(default, **bounds)


def _with_fields(body: type[M], found: dict[str, Any]) -> type[M]:
    made = create_model(body.__name__, __base__=body, __module__=body.__module__, **found)
    made.__doc__ = body.__doc__
    return made


def takes_columns(body: type[M]) -> type[M]:
    """Give a body the fields of a layout."""
    several: Any = (list[Text], Field([], max_length=5000))
    found: dict[str, Any] = {
        one.name: several if isinstance(one.default, tuple) else (Text | None, None)
        for one in fields(Layout)
    }
    return _with_fields(body, found | {"codes": several})


@takes(CohortSpec)
class Rules(BaseModel):
    """Which records are kept, which codes, and which other columns are features.

    A feature is written as on the command line, such as 'age' or 'hba1c=number'.
    """


@takes_columns
class Columns(BaseModel, extra="forbid"):
    """Which column is what, as in a layout; what is left out is recognised."""


class Correction(BaseModel):
    """How data are to be read instead; None leaves it."""

    title: Text | None = None
    layout: Columns | None = None
    unit: Code | None = None
    system: Code | None = None
    outcomes: list[Text] | None = None


@router.get("")
def list_data(caller: Viewer) -> list[Row]:
    """Return the data that you may open; viewers open none."""
    own = (caller.user.name, EVERYONE) if caller.user.may("analyst") else ()
    return [caller.show_data(row) for row in caller.store.list("data") if row["owner"] in own]


@router.put("", status_code=201)
async def upload(request: Request, caller: Analyst, name: Text) -> Row:
    """Store the body as a file of records and say what was understood.

    A table that couldn't be read is ``refused``, with why and with its columns, to be named.
    """
    ending = known_ending(name)
    store, user = caller.store, caller.user.name
    body = {"kind": "upload", "title": table_name(Path(name).name)[:120]}
    row = store.add("data", user, body | {"source": f"records{ending}", "reading": {}})
    try:
        await receive(request, user, store.folder("data", row["id"]) / row["source"])
        async with cancel_on_disconnect(request, CancelScope(user)) as scope:
            row = await run_in_threadpool(_describe_or_refuse, caller.jobs, row, scope)
    except BaseException:
        store.remove("data", row["id"])
        raise
    caller.audit("upload", row["id"])
    return caller.show_data(row)


@router.get("/{key}")
def get_data(key: str, caller: Analyst, scope: TheScope) -> Row:
    """Return what was understood, or why the data can't be read as they are.

    Of data that you did not bring, in rounded numbers, and how many questions you may ask.
    """
    row, user = caller.visible("data", key), caller.user
    caller.audit("open data", key)
    known = "about" in row or row.get("refused")
    row = row if known else _describe_or_refuse(caller.jobs, row, scope)
    left = None if counts_exactly(user, row) else questions_left(caller.store, user.name, key)
    return caller.show_data(row) | {"left": left}


@router.patch("/{key}")
def correct(key: str, change: Correction, caller: Analyst, scope: TheScope) -> Row:
    """Read the data otherwise, or give them another title."""
    row = caller.owned("data", key)
    fields = change.model_dump(exclude_none=True)
    if "layout" in fields:
        fields["layout"] = {name: value for name, value in fields["layout"].items() if value}
    changed = {name: fields.pop(name) for name in ("layout", "unit", "system") if name in fields}
    if changed:
        reading = {name: value for name, value in (row["reading"] | changed).items() if value}
        row = _describe(caller.jobs, row | {"reading": reading}, scope)
        fields["reading"] = reading
    caller.store.change("data", key, fields)
    caller.audit("change data", key)
    return caller.show_data(caller.store.get("data", key) or row)


@router.delete("/{key}", status_code=204)
def delete_data(key: str, caller: Analyst) -> None:
    """Delete uploaded data; runs on them stay. They can be brought back for ten minutes."""
    if caller.owned("data", key)["kind"] != "upload":
        raise RefusedError(403, "data.only_uploads")
    caller.store.put_aside("data", key)
    caller.audit("delete data", key)


@router.post("/{key}/restore")
def restore_data(key: str, caller: Analyst) -> Row:
    """Bring back data of yours that were just deleted."""
    return caller.show_data(caller.restore("data", key))


@router.post("/{key}/size")
def size(
    key: str, rules: Annotated[Rules, Body(embed=True)], caller: Analyst, scope: TheScope
) -> Any:
    """Return how many records and codes the rules leave.

    Of data that you did not bring, about how many, with how many questions are left to you.
    """
    row, user, jobs = caller.visible("data", key), caller.user, caller.jobs
    data, plain = jobs.data_of(row), plain_rules(rules)
    if counts_exactly(user, row):
        counted = jobs.read(partial(cohorts.count_cohort, data, plain), scope)
        return render_row(counted, user) | {"left": None}
    workspace = str(caller.store.workspace)
    counted = jobs.read(
        partial(cohorts.count_protected, data, plain, workspace, jobs.min_cell), scope
    )
    return counted | {"left": spend(caller.store, user.name, key, [question(plain)])}


def plain_rules(rules: Rules) -> dict[str, Any]:
    """Return rules as a task takes them."""
    return rules.model_dump(exclude_defaults=True)


def _describe(jobs: Jobs, row: Row, scope: CancelScope) -> Row:
    """Have data read, and return their row with how they were read."""
    try:
        about = jobs.read(partial(cohorts.describe_data, jobs.data_of(row), jobs.min_cell), scope)
    except TaskError as error:
        own = "".join([row["title"], *Path(row["source"]).suffixes])
        raise TaskError(replace_text(error.message, row["source"], own)) from None
    folder = jobs.store.folder("data", row["id"])
    for old in (*folder.glob("codes-*.json"), *folder.glob("worklist-*.csv")):
        old.unlink()
    return jobs.store.change("data", row["id"], {"about": about, "refused": None}) or row


def _describe_or_refuse(jobs: Jobs, row: Row, scope: CancelScope) -> Row:
    """Have data read; keep a table that can't be read with its columns, to be named."""
    try:
        return _describe(jobs, row, scope)
    except TaskError as error:
        columns: Row = {"columns": []}
        with suppress(TaskError):
            task = partial(cohorts.describe_columns, jobs.data_of(row), jobs.min_cell)
            columns = jobs.read(task, scope)
        if not columns["columns"]:
            raise
        refused = {"refused": {"error": error.message, **columns}}
    return jobs.store.change("data", row["id"], refused) or row
