"""A server with real workers, made once; users of each role, and a small file of records."""

import time
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from comorb.records.datasets import region
from comorb.records.export import export
from comorb.web.server.app import Settings, create_app

BASE = "http://127.0.0.1"
LIMIT = 2_000_000


@pytest.fixture(scope="session")
def records(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("records") / "visits.csv"
    export(region(1500), path)
    return path


@pytest.fixture(scope="session")
def app(records, tmp_path_factory):
    workspace = tmp_path_factory.mktemp("workspace")
    app = create_app(Settings(workspace, records=(records,), upload_limit=LIMIT))
    with TestClient(app, base_url=BASE):
        yield app


@pytest.fixture(scope="session")
def tokens(app) -> dict[str, str]:
    """A token for each of four users."""
    roles = {"vera": "viewer", "ana": "analyst", "bea": "analyst", "eva": "exporter"}
    return {name: app.state.access.add_user(name, role) for name, role in roles.items()}


@pytest.fixture
def client(app, tokens):
    """Return a client that signs in by the token of a user."""

    def sign_in(name: str) -> TestClient:
        return TestClient(app, base_url=BASE, headers={"authorization": f"Bearer {tokens[name]}"})

    return sign_in


def wait(client: TestClient, key: str, *states: str) -> dict:
    for _ in range(600):
        row = client.get(f"/api/v1/runs/{key}").json()
        if row["state"] in (states or ("done", "failed", "cancelled")):
            return row
        time.sleep(0.1)
    raise AssertionError(f"the run is still {row['state']}")


def mounted(client: TestClient) -> dict:
    return next(row for row in client.get("/api/v1/data").json() if row["kind"] == "mounted")


def new_run(client: TestClient, **given) -> dict:
    body = {"data": mounted(client)["id"], "k": 3, "rules": {"having": ["428"]}} | given
    made = client.post("/api/v1/runs", json=body)
    assert made.status_code == 201, made.text
    return wait(client, made.json()["id"])


@pytest.fixture(scope="session")
def run(app, tokens) -> dict:
    """A finished run of Eva's, on the mounted records."""
    own = TestClient(app, base_url=BASE, headers={"authorization": f"Bearer {tokens['eva']}"})
    row = new_run(own, title="Heart failure")
    assert row["state"] == "done", row
    return row
