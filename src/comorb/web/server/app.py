"""The explorer's application: settings, what it is made of, and what happens at start and end."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI, Security
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from comorb import __version__
from comorb.errors import InputError
from comorb.records.sources.limits import Limits
from comorb.web.server import (
    codes_api,
    data_api,
    definitions_api,
    pages,
    pathways_api,
    results_api,
    runs_api,
    slices_api,
)
from comorb.web.server.access import Access
from comorb.web.server.guard import Guard
from comorb.web.server.jobs import Jobs
from comorb.web.server.readers import THREADS, Readers
from comorb.web.server.refusals import RefusedError, answer, refuse
from comorb.web.server.session import EVERYONE, WAYS_IN
from comorb.web.server.store import Store
from comorb.web.server.uploads import Uploads
from comorb.web.worker.isolation import Bounds
from comorb.web.worker.process import StoppedError, TaskError

TEMPORARY = "temporary"  # of the workspace, where workers write what they need for a while
_LEFT = ("*/assign-*", "*/download-*", "*/shown-*.json", f"*/maps/{'?' * 12}")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_BUILT_IN = {
    "heart-failure": ("heart_failure", "Heart failure (simulated)"),
    "tertiary": ("tertiary", "Tertiary care (simulated)"),
}


@dataclass(frozen=True)
class Settings:
    """How a server is set up."""

    workspace: Path  # where data, runs and users are kept
    records: tuple[Path, ...] = ()  # files that everyone may open
    hosts: tuple[str, ...] = LOOPBACK  # the names that the server answers to
    min_cell: int = 11  # the smallest count that a protected view tells
    upload_limit: int = 500_000_000  # the most bytes of one upload
    read_memory: int = 0  # the most bytes of memory to read records with; 0 is without a limit
    read_seconds: float = 600  # the longest that records are read
    limits: Limits = field(default_factory=Limits)  # of what is read
    fit_memory: int = 0  # the most bytes of memory of a fit; 0 is without a limit
    site: str = ""  # of whom the records are, for what is printed
    proxies: tuple[str, ...] = ()  # addresses whose word on who asks, and by https, is taken

    def __post_init__(self) -> None:
        if self.min_cell < 1:
            raise InputError(
                f"expected 1 or more as the smallest count that is shown, got {self.min_cell}"
            )


def create_app(settings: Settings) -> FastAPI:
    """Return the application; its state holds the settings, the store, access and jobs."""
    store = Store(settings.workspace)
    temporary, limits = str(settings.workspace / TEMPORARY), settings.limits
    reading = Bounds(memory=settings.read_memory, limits=limits, folder=temporary)
    fitting = Bounds(resident=settings.fit_memory, limits=limits, folder=temporary)
    readers = Readers(reading, settings.read_seconds)
    jobs = Jobs(store, settings.min_cell, readers, fitting, settings.site)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        before = os.umask(0o077)  # what is written is for this account alone, workers' files too
        current_default_thread_limiter().total_tokens = THREADS
        _clean(store)
        _mount(store, settings.records)
        jobs.start()
        yield
        jobs.close()
        store.close()
        os.umask(before)

    app = FastAPI(
        title="comorb",
        version=__version__,
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # pages.py has it, for those who are signed in
    )
    app.state.settings, app.state.store, app.state.jobs = settings, store, jobs
    app.state.access, app.state.uploads = Access(store), Uploads()
    apis = (data_api, codes_api, definitions_api, runs_api, results_api, pathways_api, slices_api)
    for api in apis:
        app.include_router(api.router, dependencies=[Security(way) for way in WAYS_IN])
    app.include_router(pages.router)
    page = Path(str(resources.files("comorb.insight.views"))) / "page"
    app.mount("/page", StaticFiles(directory=page))
    app.mount("/static", StaticFiles(directory=Path(__file__).parents[1] / "static"))
    app.add_exception_handler(RefusedError, refuse)
    app.add_exception_handler(TaskError, partial(_told, 422))
    app.add_exception_handler(StoppedError, partial(_told, 503))
    app.add_exception_handler(OSError, _full)
    app.add_exception_handler(sqlite3.OperationalError, _full)
    app.add_exception_handler(HTTPException, _plainly)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_middleware(Guard, hosts=settings.hosts)
    return app


def _mount(store: Store, records: Sequence[Path]) -> None:
    """Make the built-in cohorts and the given files known to everyone, and forget earlier ones."""
    wanted = {key: ("builtin", name, title) for key, (name, title) in _BUILT_IN.items()}
    for path in records:
        whole = str(path.absolute())
        key = hashlib.sha256(whole.encode()).hexdigest()[:12]
        wanted[key] = ("mounted", whole, path.name.partition(".")[0])
    for row in store.list("data"):
        if row["kind"] == "mounted" and row["id"] not in wanted:
            store.remove("data", row["id"])
    for key, (kind, source, title) in wanted.items():
        if store.get("data", key) is None:
            body = {"kind": kind, "source": source, "title": title, "reading": {}}
            store.add("data", EVERYONE, body, key)


def _clean(store: Store) -> None:
    """Remove what a killed server left half-done, and what earlier versions showed of runs."""
    store.remove_aside()
    for row in store.list("data"):
        if row["kind"] == "upload" and "about" not in row and not row.get("refused"):
            store.remove("data", row["id"])
    shutil.rmtree(store.workspace / TEMPORARY, ignore_errors=True)
    for table in ("data", "runs"):
        folder = store.workspace / table
        lost = [path for path in folder.iterdir() if store.get(table, path.name) is None]
        drafts = [path for path in folder.glob("*/.*") if path.is_file()]
        left = [path for pattern in _LEFT for path in folder.glob(pattern)]
        for path in {*lost, *drafts, *left}:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


async def _told(status: int, request: Request, error: Exception) -> Response:
    return answer(request, RefusedError(status, str(error)))


async def _full(request: Request, error: Exception) -> Response:
    """Say that the disk is full where that is what went wrong."""
    code = error.errno if isinstance(error, OSError) else getattr(error, "sqlite_errorcode", None)
    if code not in (errno.ENOSPC, errno.EDQUOT, sqlite3.SQLITE_FULL):
        raise error
    said = "The disk of this server is full, so nothing was kept; ask whoever runs it to make room."
    return answer(request, RefusedError(507, said))


async def _plainly(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    said = {404: "There is no such page; it may have been deleted."}
    return answer(request, RefusedError(status, said.get(status, "This can't be done.")))


async def _invalid(request: Request, error: Exception) -> Response:
    places = error.errors() if isinstance(error, RequestValidationError) else []
    bad = "; ".join(f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in places[:3])
    return answer(request, RefusedError(422, f"The request was not understood: {bad}"))
