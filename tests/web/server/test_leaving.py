"""Whoever leaves takes along what a worker does for them, on every route that asks one."""

import asyncio
import inspect
import json
import socket
import threading
import time
from pathlib import Path

import pytest
import uvicorn
from fastapi import APIRouter
from fastapi.routing import APIRoute

from comorb.web import server
from comorb.web.server import readers as module
from comorb.web.server import session, uploads
from comorb.web.server.app import Settings, create_app
from comorb.web.worker.process import StoppedError

RUN = {
    "k": 2,
    "rules": {},
    "title": "R",
    "parent": None,
    "within": None,
    "merge": None,
    "state": "done",
    "seconds": 1,
    "records": 20,
    "shared": False,
    "splits": ["sex"],
}
RECORD = {"record": "7"}
# What is asked, by method and path: the query and the body.
ASKED = {
    ("PUT", "/api/v1/data"): ("name=visits.csv", b"id,dx\n1,428\n"),
    ("GET", "/api/v1/data/{key}"): ("", b""),
    ("PATCH", "/api/v1/data/{key}"): ("", {"unit": "visit"}),
    ("GET", "/api/v1/data/{key}/codes"): ("q=heart", b""),
    ("POST", "/api/v1/data/{key}/codes"): ("", {"texts": ["V*"]}),
    ("PUT", "/api/v1/data/{key}/maps"): ("name=map.csv", b"code,group\n428,heart\n"),
    ("POST", "/api/v1/data/{key}/size"): ("", {"rules": {}}),
    ("GET", "/api/v1/runs/{key}/profile"): ("", b""),
    ("GET", "/api/v1/runs/{key}/relevance"): ("lambda=0.5", b""),
    ("GET", "/api/v1/runs/{key}/slices"): ("by=sex", b""),
    ("GET", "/api/v1/runs/{key}/slices/profile"): ("by=sex&label=female", b""),
    ("GET", "/api/v1/runs/{key}/map"): ("by=cluster", b""),
    ("PUT", "/api/v1/runs/{key}/names"): ("", {"1": "Heart"}),
    ("POST", "/api/v1/runs/{key}/explain"): ("", {"codes": ["428"]}),
    ("POST", "/api/v1/runs/{key}/record"): ("", RECORD),
    ("POST", "/api/v1/runs/{key}/assign"): ("name=new.csv", b"id,dx\n1,428\n"),
    ("PUT", "/api/v1/runs/{key}/notes"): ("", {"1": {"owner": "Heart clinic"}}),
    ("POST", "/api/v1/runs/{key}/arrivals"): ("", {"data": "data"}),
    ("GET", "/api/v1/compare/{one}/{two}"): ("", b""),
    ("GET", "/api/v1/runs/{key}/download/{name}"): ("", b""),
}


class Slow:
    """A worker that does its task until it is stopped."""

    def __init__(self, bounds=None):
        self.busy, self.stops, self._stopped = False, 0, threading.Event()

    def ask(self, task):
        self.busy = True
        stopped = self._stopped.wait(30)
        self._stopped.clear()
        self.busy = False
        raise StoppedError("stopped" if stopped else "not stopped")

    def stop(self):
        self.stops += 1
        self._stopped.set()

    close = stop


@pytest.fixture
def app(tmp_path, monkeypatch):
    """A server whose workers are slow, with data and a run of Eva's."""
    monkeypatch.setattr(module, "Worker", Slow)
    app = create_app(Settings(tmp_path / "workspace"))
    store, app.state.token = app.state.store, app.state.access.add_user("eva", "exporter")
    source = tmp_path / "visits.csv"
    source.write_text("id,dx\n1,428\n")
    body = {"kind": "mounted", "source": str(source), "title": "T", "reading": {}}
    store.add("data", "eva", body, "data")
    store.add("runs", "eva", RUN | {"data": "data"}, "run")
    yield app
    app.state.jobs.close()
    store.close()


def workers(app) -> list[Slow]:
    jobs = app.state.jobs
    return [worker for pool in (jobs._readers, jobs._answering) for worker in pool._workers]


def waiting_routes() -> set[tuple[str, str]]:
    """The routes that have a worker do something, by their dependencies and what they call."""
    from comorb.web.server import codes_api, data_api, results_api, runs_api

    return {
        (method, route.path)
        for api in (codes_api, data_api, results_api, runs_api)
        for router in vars(api).values()
        if isinstance(router, APIRouter)
        for route in router.routes
        if isinstance(route, APIRoute)
        and (
            session._scope in [each.call for each in route.dependant.dependencies]
            or "cancel_on_disconnect(" in inspect.getsource(route.endpoint)
        )
        for method in route.methods
    }


def test_every_route_that_has_a_worker_do_something_is_tried():
    assert waiting_routes() == set(ASKED)


def test_every_cancel_scope_ends_when_its_client_disconnects():
    for path in Path(server.__file__).parent.glob("*_api.py"):
        text = path.read_text("utf-8")
        assert text.count("CancelScope(") == text.count(
            "cancel_on_disconnect(request, CancelScope("
        )


def scope_of(app, method: str, path: str, query: str) -> dict:
    """A request of Eva's as a server hands it on."""
    headers = {"host": "127.0.0.1", "authorization": f"Bearer {app.state.token}"}
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "client": ("127.0.0.1", 1),
        "server": ("x", 80),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }


async def visit(app, method: str, path: str, query: str, body: bytes) -> int:
    """Ask, leave as soon as a worker is at it, and return the status that nobody reads."""
    coming = [{"type": "http.request", "body": body, "more_body": False}]
    sent = []

    async def receive() -> dict:
        if coming:
            return coming.pop()
        while not any(worker.busy for worker in workers(app)):
            await asyncio.sleep(0.01)
        return {"type": "http.disconnect"}

    async def send(message: dict) -> None:
        sent.append(message)

    scope = scope_of(app, method, path, query)
    if body.startswith(b"{"):
        scope["headers"].append((b"content-type", b"application/json"))
    await app(scope, receive, send)
    return sent[0]["status"]


@pytest.mark.parametrize("route", ASKED, ids=" ".join)
def test_who_leaves_frees_the_worker_and_leaves_nothing_behind(app, route):
    method, path = route
    query, body = ASKED[route]
    kind = "data" if path.startswith("/api/v1/data") else "run"
    path = path.format(key=kind, one="run", two="run", name="profile.csv")
    before = sorted(app.state.store.workspace.rglob("*"))
    given = body if isinstance(body, bytes) else json.dumps(body).encode()
    assert asyncio.run(visit(app, method, path, query, given)) == 503
    assert sorted(worker.stops for worker in workers(app)) == [0, 0, 0, 1]
    for pool in (app.state.jobs._readers, app.state.jobs._answering):
        assert len(pool._free) == 2
        assert pool._pending.total() == 0
    left = [path for path in app.state.store.workspace.rglob("*") if path not in before]
    assert [path.name for path in left if path.name != "maps"] == []


def test_a_browser_that_closes_its_connection_frees_the_worker(app):
    bearer = f"Bearer {app.state.token}"
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="critical", lifespan="off")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
    thread.start()
    with socket.create_connection(listening.getsockname()) as browser:
        lines = ("GET /api/v1/data/data HTTP/1.1", "host: 127.0.0.1", f"authorization: {bearer}")
        browser.sendall("\r\n".join((*lines, "", "")).encode())
        wait_for(lambda: any(worker.busy for worker in workers(app)))
    wait_for(lambda: sum(worker.stops for worker in workers(app)) == 1)
    wait_for(lambda: len(app.state.jobs._readers._free) == 2)
    running.should_exit = True
    thread.join(10)
    listening.close()


def wait_for(true) -> None:
    for _ in range(500):
        if true():
            return
        time.sleep(0.02)
    raise AssertionError("it didn't come")


def test_a_client_that_falls_silent_is_refused_and_frees_its_place(app, monkeypatch):
    monkeypatch.setattr(uploads, "_SECONDS", 0.05)

    async def silent():
        async def receive() -> dict:
            await asyncio.sleep(60)
            return {}

        return await put(app, receive)

    for _ in range(6):
        assert asyncio.run(silent()) == (408, "Nothing came for 0 seconds")
    assert app.state.store.list("data")[0]["id"] == "data"
    assert len(app.state.store.list("data")) == 1


def test_many_uploads_at_once_of_one_are_refused(app):
    async def many():
        end = asyncio.Event()

        async def receive() -> dict:
            await end.wait()
            return {"type": "http.disconnect"}

        slow = [asyncio.create_task(put(app, receive)) for _ in range(4)]
        await asyncio.sleep(0.2)
        told = await put(app, receive)
        end.set()
        await asyncio.gather(*slow, return_exceptions=True)
        return told

    assert asyncio.run(many()) == (429, "You are sending several files already")
    assert len(app.state.store.list("data")) == 1


async def put(app, receive) -> tuple[int, str]:
    """Upload what is received, and return the status with how the answer begins."""
    sent = []

    async def send(message: dict) -> None:
        sent.append(message)

    scope = scope_of(app, "PUT", "/api/v1/data", "name=a.csv")
    await app(scope, receive, send)
    error = json.loads(sent[1]["body"])["error"]
    return sent[0]["status"], error.partition(";")[0].partition(", so")[0]
