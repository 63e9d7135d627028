"""The API as a target: odd bodies and queries to every route that takes any, by its description."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI
from fastapi.testclient import TestClient

from comorb.records.datasets import region
from comorb.records.export import export
from comorb.web.server.app import Settings, create_app
from torture.mutation import json_text, mutated_bytes, mutated_json, odd_value
from torture.target import Target, expect

BASE = "http://127.0.0.1"
_SMALL = b"visit_id,dx1,dx2\n" + b"".join(b"%d,428.0,250.00\n" % i for i in range(20))
_OPEN = ExitStack()


def targets() -> list[Target]:
    """Return one target for all routes."""
    return [
        Target(
            "api",
            lambda _: [json.dumps(name).encode() for name in _routes()],
            _check,
            2000,
            _mutate,
        )
    ]


class Explorer:
    """A server in this process with one exporter, small data and a finished run."""

    def __init__(self, folder: Path) -> None:
        records = folder / "visits.csv"
        export(region(300), records)
        self.app: FastAPI = create_app(Settings(folder / "workspace", records=(records,)))
        _OPEN.enter_context(TestClient(self.app, base_url=BASE))
        token = self.app.state.access.add_user("eva", "exporter")
        self.client = TestClient(
            self.app,
            base_url=BASE,
            headers={"authorization": f"Bearer {token}"},
            raise_server_exceptions=False,
        )
        rows = self.client.get("/api/v1/data").json()
        self.data = next(row["id"] for row in rows if row["kind"] == "mounted")
        body = {"data": self.data, "k": 2, "rules": {"at_least": 1}}
        self.run = self.client.post("/api/v1/runs", json=body).json()["id"]
        for _ in range(1200):
            row = self.client.get(f"/api/v1/runs/{self.run}").json()
            if row["state"] not in ("queued", "running"):
                break
            time.sleep(0.05)
        if row["state"] != "done":
            raise RuntimeError(f"the run of the torture is {row}")
        self.app.state.jobs.put = lambda *_: None  # runs that are asked for stay in the queue


@cache
def explorer() -> Explorer:
    """Return the server that is attacked, made once a process."""
    return Explorer(Path(_OPEN.enter_context(tempfile.TemporaryDirectory(prefix="torture-"))))


def close() -> None:
    """End the server that was attacked."""
    _OPEN.close()
    explorer.cache_clear()


@cache
def _description() -> dict[str, Any]:
    return explorer().app.openapi()


@cache
def _routes() -> dict[str, dict[str, Any]]:
    """Return the routes that take a body or a query, with their descriptions."""
    found = {}
    for path, methods in _description()["paths"].items():
        for method, told in methods.items():
            places = [one["in"] for one in told.get("parameters", ())]
            if "requestBody" in told or "query" in places or method in ("put", "post"):
                found[f"{method.upper()} {path}"] = told
    return found


def _mutate(rng: Random, seeds: Sequence[bytes]) -> bytes:
    route = json.loads(rng.choice(seeds))
    told = _routes()[route]
    queries = {
        one["name"]: _value(rng, one["schema"])
        for one in told.get("parameters", ())
        if one["in"] == "query" and rng.random() < 0.8
    }
    if "requestBody" in told:
        schema = told["requestBody"]["content"]["application/json"]["schema"]
        body = _value(rng, schema)
        text = json_text(mutated_json(rng, body) if rng.random() < 0.6 else body)
        text = mutated_bytes(rng, text) if rng.random() < 0.1 else text
    else:
        text = mutated_bytes(rng, _SMALL) if rng.random() < 0.02 else b""
    asked = {"route": route, "queries": queries, "body": text.decode("latin-1")}
    return json.dumps(asked).encode("utf-8", "surrogatepass")


def _value(rng: Random, schema: dict[str, Any], depth: int = 0) -> Any:
    """Return a value as a schema wants it, mostly."""
    if rng.random() < 0.04 or depth > 8:
        return odd_value(rng)
    if "$ref" in schema:
        named = _description()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return _value(rng, named, depth + 1)
    if "anyOf" in schema:
        return _value(rng, rng.choice(schema["anyOf"]), depth + 1)
    if "enum" in schema or "const" in schema:
        return rng.choice(schema.get("enum") or [schema["const"]])
    kind = schema.get("type")
    if kind == "object":
        fields = schema.get("properties", {})
        named = set(schema.get("required", ()))
        made = {
            name: _value(rng, one, depth + 1)
            for name, one in fields.items()
            if name in named or rng.random() < 0.3
        }
        more = schema.get("additionalProperties")
        return made | ({"1": _value(rng, more, depth + 1)} if isinstance(more, dict) else {})
    if kind == "array":
        places = schema.get("prefixItems")
        if places:
            return [_value(rng, one, depth + 1) for one in places]
        return [_value(rng, schema.get("items", {}), depth + 1) for _ in range(rng.randrange(3))]
    if kind in ("integer", "number"):
        return rng.choice((1, 2, 3, 0, 0.6, 11, 200, -1))
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "null":
        return None
    known = explorer()
    return rng.choice(("428", "250", "x", known.run, known.data, "heart-failure", "category", "1"))


def _check(data: bytes, _: Path) -> None:
    asked = json.loads(data)
    if not isinstance(asked, dict):
        return
    known = explorer()
    method, _, path = asked["route"].partition(" ")
    key = known.data if "/data/" in path else known.run
    for place, value in (("{key}", key), ("{one}", known.run), ("{two}", known.run)):
        path = path.replace(place, value)
    path = path.replace("{name}", "profile.csv")
    query = urlencode({k: str(v).encode("utf-8", "replace") for k, v in asked["queries"].items()})
    if method == "POST" and path.endswith("logout"):
        return
    told = known.client.request(
        method,
        f"{path}?{query}",
        content=asked["body"].encode("latin-1"),
        headers={"content-type": "application/json"},
    )
    expect(
        told.status_code < 500, f"{asked['route']} answered {told.status_code}: {told.text[:200]}"
    )
    expect("an unexpected" not in told.text, f"{asked['route']}: {told.text[:200]}")
    if told.status_code >= 400:
        expect(told.json().get("error"), f"{asked['route']} refused without a word")
