"""The application and its server: settings, routes, error answers, port and one-time link."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import socket
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import uvicorn
from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI, Security
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from comorb import __version__
from comorb.errors import ComorbError, InputError, StorageError
from comorb.messages import Message, catalogue
from comorb.records.sources.files import Limits
from comorb.web.server import codes_api, data_api, pages, results_api, runs_api
from comorb.web.server.access import Access
from comorb.web.server.jobs import Jobs
from comorb.web.server.readers import THREADS, Readers
from comorb.web.server.security import RefusedError, SecurityMiddleware, answer, refuse
from comorb.web.server.session import EVERYONE, WAYS_IN
from comorb.web.server.store import BUILT_IN, DATABASE, TEMPORARY, Store, clear_leftovers
from comorb.web.server.uploads import Uploads
from comorb.web.worker.process import Bounds, StoppedError, TaskError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_log = logging.getLogger("comorb.server")


@dataclass(frozen=True)
class Settings:
    """How a server is set up."""

    workspace: Path  # where data, runs and users are kept
    records: tuple[Path, ...] = ()  # files that everyone may open
    hosts: tuple[str, ...] = LOOPBACK  # the names that the server answers to
    min_cell: int = 11  # the smallest count that a protected view shows
    upload_limit: int = 500_000_000  # the most bytes of one upload
    read_memory: int = 0  # the most bytes of memory to read records with; 0 is without a limit
    read_seconds: float = 600  # the longest that records are read
    limits: Limits = field(default_factory=Limits)  # of what is read
    fit_memory: int = 0  # the most bytes of memory of a fit; 0 is without a limit
    site: str = ""  # whose records these are, for reports
    proxies: tuple[str, ...] = ()  # whose headers on a client's address and scheme are trusted

    def __post_init__(self) -> None:
        if self.min_cell < 1:
            raise InputError("serve.min_cell", min_cell=self.min_cell)


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
        if line := clear_leftovers(store):
            _log.warning(line)
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
    routers = (
        data_api.router,
        codes_api.router,
        codes_api.definitions_router,
        runs_api.router,
        results_api.router,
        results_api.pathways_router,
    )
    for router in routers:
        app.include_router(router, dependencies=[Security(way) for way in WAYS_IN])
    app.include_router(pages.router)
    page = Path(str(resources.files("comorb.views"))) / "page"
    app.mount("/page", StaticFiles(directory=page))
    app.mount("/static", StaticFiles(directory=Path(__file__).parents[1] / "static"))
    app.add_exception_handler(RefusedError, refuse)
    app.add_exception_handler(TaskError, partial(_answer_error, 422))
    app.add_exception_handler(StoppedError, partial(_answer_error, 503))
    app.add_exception_handler(OSError, _answer_full_disk)
    app.add_exception_handler(sqlite3.OperationalError, _answer_full_disk)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_middleware(SecurityMiddleware, hosts=settings.hosts)
    return app


def _mount(store: Store, records: Sequence[Path]) -> None:
    """Make the built-in cohorts and the given files known to everyone, and forget earlier ones."""
    wanted = {key: ("builtin", name, title) for key, (name, title) in BUILT_IN.items()}
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


async def _answer_error(status: int, request: Request, error: Exception) -> Response:
    message = error.message if isinstance(error, ComorbError) else str(error)
    return answer(request, RefusedError(status, message))


async def _answer_full_disk(request: Request, error: Exception) -> Response:
    """Say that the disk is full where that is what went wrong."""
    code = error.errno if isinstance(error, OSError) else getattr(error, "sqlite_errorcode", None)
    if code not in (errno.ENOSPC, errno.EDQUOT, sqlite3.SQLITE_FULL):
        raise error
    return answer(request, RefusedError(507, "server.disk_full"))


async def _answer_http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    key = "request.no_page" if status == 404 else "request.cannot"
    return answer(request, RefusedError(status, key))


async def _answer_invalid(request: Request, error: Exception) -> Response:
    places = error.errors() if isinstance(error, RequestValidationError) else []
    bad = [
        Message("request.field", field=".".join(map(str, each["loc"][1:])), problem=_problem(each))
        for each in places[:3]
    ]
    return answer(request, RefusedError(422, "request.not_understood", bad=bad))


def _problem(each: Mapping[str, Any]) -> str:
    """Return what is wrong with a field, as a message where there is one of its kind."""
    key, given = f"invalid.{each['type']}", dict(each.get("ctx", {}))
    if "expected" in given:
        given["expected"] = given["expected"].split(" or ")
    return Message(key, **given) if key in catalogue("en") else str(each["msg"])


def check_address(host: str, has_users: bool) -> None:
    """Refuse any address but this machine's own unless users with tokens exist."""
    if host not in LOOPBACK and not has_users:
        raise InputError("serve.no_users", host=host)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    if os.name == "posix":  # elsewhere it would let two servers share one port
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
    except OSError as error:
        opened.close()
        raise InputError(
            "serve.port", host=host, port=port, reason=(error.strerror or "refused").lower()
        ) from None
    opened.listen(128)
    return opened


def explorer(settings: Settings, host: str) -> tuple[uvicorn.Server, str | None]:
    """Return the only server of a workspace, and its one-time link's key if there are no users."""
    app = create_app(settings)
    access, store = app.state.access, app.state.store
    try:
        if not access.has_users and not access.is_local:  # there were users once
            raise StorageError("serve.lost_users", workspace=store.workspace, database=DATABASE)
        check_address(host, access.has_users)
        store.hold()
    except ComorbError:
        store.close()
        raise
    key = access.new_link() if access.is_local else None
    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
    )
    return uvicorn.Server(config), key
