"""Bodies: who asks is known before one is read, and none but a file is longer than its limit."""

import asyncio
import json

import pytest
from fastapi.testclient import TestClient

from comorb.web.server.access import COOKIE
from comorb.web.server.app import Settings, create_app
from comorb.web.server.uploads import MAX_JSON
from tests.web.conftest import BASE
from tests.web.server.test_protection import BODIES

CHUNK = 1 << 16
PATHS = [
    (method, path.replace("{key}", "0123456789ab"))
    for method, path in (route.split(" ") for route in BODIES)
]


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    """An app with one user, whose workers never start."""
    app = create_app(Settings(tmp_path_factory.mktemp("quiet"), upload_limit=3 * MAX_JSON))
    app.state.token = app.state.access.add_user("kim", "exporter")
    yield app
    app.state.store.close()


class Endless:
    """A client that sends one chunk after the other, without saying how many."""

    def __init__(self, app, method: str, path: str, **headers: str) -> None:
        self.app, self.taken, self.sent = app, 0, []
        given = {"host": "127.0.0.1", "content-type": "application/json"} | headers
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"name=v.csv",
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }

    async def receive(self):
        self.taken += CHUNK
        return {"type": "http.request", "body": b" " * CHUNK, "more_body": True}

    async def send(self, message):
        self.sent.append(message)

    def ask(self) -> tuple[int, str]:
        asyncio.run(self.app(self.scope, self.receive, self.send))
        body = b"".join(message.get("body", b"") for message in self.sent)
        return self.sent[0]["status"], json.loads(body)["error"]


def test_every_route_with_a_body_is_tried(quiet):
    paths = quiet.openapi()["paths"]
    taking = {
        f"{method.upper()} {path}"
        for path, calls in paths.items()
        for method, call in calls.items()
        if "requestBody" in call
    }
    assert len(taking) > 10
    assert taking <= set(BODIES)


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_nothing_of_a_body_is_read_before_one_is_signed_in(quiet, method, path):
    for way_in in ({}, {"cookie": f"{COOKIE}=wrong"}):
        client = Endless(quiet, method, path, **way_in)
        assert client.ask() == (401, "Sign in first.")
        assert client.taken == 0


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_a_body_that_never_ends_is_refused_at_the_limit(quiet, method, path):
    client = Endless(quiet, method, path, authorization=f"Bearer {quiet.state.token}")
    status, said = client.ask()
    assert (status, said) == (
        413,
        "The request is larger than 1 MB, which is the most; send less.",
    )
    assert MAX_JSON < client.taken <= MAX_JSON + CHUNK


def test_an_announced_length_over_the_limit_is_refused_unread(quiet):
    bearer = {"authorization": f"Bearer {quiet.state.token}", "accept-language": "ca"}
    client = Endless(quiet, "POST", "/api/v1/runs", **bearer, **{"content-length": "1000001"})
    status, said = client.ask()
    assert (status, client.taken) == (413, 0)
    assert said == "La petició ocupa més de 1 MB, que és el màxim; envieu-ne menys."


def test_a_session_s_change_without_the_secret_of_its_page_is_refused_unread(quiet):
    session = quiet.state.access.open_session("kim")
    client = Endless(quiet, "POST", "/api/v1/definitions", cookie=f"{COOKIE}={session}")
    assert client.ask()[0] == 403
    assert client.taken == 0


def test_a_wrong_token_counts_once(quiet, monkeypatch):
    tries = []
    monkeypatch.setattr(quiet.state.access, "too_many", lambda client: tries.append(client))
    client = Endless(quiet, "POST", "/api/v1/runs", authorization="Bearer wrong")
    assert client.ask() == (401, "That token is not known here.")
    assert (len(tries), client.taken) == (1, 0)


def test_a_body_within_the_limit_is_taken_and_a_file_has_its_own(quiet):
    bearer = {"authorization": f"Bearer {quiet.state.token}"}
    client = TestClient(quiet, base_url=BASE, headers=bearer)
    room = MAX_JSON - len(json.dumps({"name": "mine", "codes": ["428"], "more": ""}))
    body = {"name": "mine", "codes": ["428"]}
    text = json.dumps(body) + " " * room
    headers = {"content-type": "application/json"}
    assert client.post("/api/v1/definitions", content=text, headers=headers).status_code == 201
    upload = Endless(quiet, "PUT", "/api/v1/data", **bearer)
    status, said = upload.ask()
    assert (status, said.partition(";")[0]) == (413, "The file is larger than 3 MB")
    assert upload.taken > 3 * MAX_JSON
