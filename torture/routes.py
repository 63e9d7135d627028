"""Routes: every route of the explorer, asked by every role, with ids of others and wrong tokens.

The routes are those of the application, and who may ask each is in `ROUTES` of
tests/web/server/test_protection.py; a route that isn't there is a finding.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from comorb.records.datasets import region
from comorb.records.export import export
from comorb.web.server.access import ROLES
from comorb.web.server.app import Settings, create_app
from tests.web.server.test_protection import BODIES, ROUTES, routes
from torture.verdict import Verdict

BASE = "http://127.0.0.1"
_STREAMS = "/events"
_ODD_TOKENS = ("", "x", "a" * 500, "Bearer", "é")


def run(share: float) -> Verdict:
    """Ask every route as everybody; ``share`` doesn't matter."""
    del share
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="torture-")))
        house = House(folder, stack)
        findings = [
            f"the route {route} has no one who may ask it: name it in ROUTES"
            for route in sorted(set(routes(house.app)) - ROUTES.keys())
        ]
        counts: Counter[str] = Counter()
        for route in ROUTES:
            for name in house.people:
                for whose in ("own", "shared", "foreign", "unknown"):
                    findings += house.ask(route, name, whose, counts)
            findings += house.ask_as_nobody(route, counts)
        told = ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))
        asked = f"{len(house.people)} users and {len(_ODD_TOKENS) + 1} strangers"
        return Verdict(f"{len(ROUTES)} routes × {asked}: {told}", findings)


class House:
    """A server in this process with a user of each role, each with data and runs of their own."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        records = folder / "visits.csv"
        export(region(400), records)
        self.content = records.read_bytes()
        self.app = create_app(Settings(folder / "workspace", records=(records,)))
        stack.enter_context(TestClient(self.app, base_url=BASE))
        names = {role: role for role in ROLES} | {"other": ROLES[-1]}
        self.roles = names
        self.people = {
            name: self._client(self.app.state.access.add_user(name, role))
            for name, role in names.items()
        }
        self.keys = self._owned()

    def _client(self, token: str) -> TestClient:
        headers = {"authorization": f"Bearer {token}"}
        return TestClient(self.app, base_url=BASE, headers=headers, raise_server_exceptions=False)

    def _owned(self) -> dict[str, dict[str, str]]:
        """Return ids by whose they are: Other's run, its data, and a run that is shared."""
        other = self.people["other"]
        data = other.put("/api/v1/data?name=own.csv", content=self.content).json()["id"]
        body = {"data": data, "k": 2, "rules": {"at_least": 1}}
        runs = [other.post("/api/v1/runs", json=body).json()["id"] for _ in range(2)]
        for key in runs:
            for _ in range(1200):
                row = other.get(f"/api/v1/runs/{key}").json()
                if row["state"] in ("done", "failed") and row.get("measured", True):
                    break
                time.sleep(0.1)
            if row["state"] != "done":
                raise RuntimeError(f"a run of the torture is {row['state']}")
        other.patch(f"/api/v1/runs/{runs[1]}", json={"shared": True})
        return {
            "foreign": {"run": runs[0], "data": data},
            "shared": {"run": runs[1], "data": data},
            "own": {"run": "", "data": "heart-failure"},
            "unknown": {"run": "f" * 12, "data": "f" * 12},
        }

    def ask(self, route: str, name: str, whose: str, counts: Counter[str]) -> list[str]:
        """Ask one route as one user with ids of someone, and say what was told that should not."""
        keys = self.keys[whose]
        if not keys["run"] and "{" in route and "/data/" not in route:
            return []
        if _skipped(route, name, whose):
            return []
        told = self._send(self.people[name], route, keys)
        least, status = ROUTES[route][0], told["status"]
        counts[_word(status)] += 1
        role = self.roles[name]
        findings = []
        if status >= 500:
            findings.append(f"{route} as {name} with {whose} ids answered {status}: {told['text']}")
        if least and ROLES.index(least) > ROLES.index(role) and status != 403:
            findings.append(f"{route} answered {status} to the role {role}")
        hidden = whose in ("foreign", "unknown") and name != "other" and "{" in route
        framed = "/api/" not in route  # a page is an empty frame, whose id is asked of the API
        if hidden and not framed and status < 400:
            findings.append(f"{route} answered {status} to {name} with {whose} ids")
        if (
            whose == "shared"
            and name != "other"
            and route.split()[0] in ("PATCH", "DELETE", "PUT")
            and "{key}" in route
            and status < 400
        ):
            findings.append(f"{route} let {name} change a run of another")
        return findings

    def ask_as_nobody(self, route: str, counts: Counter[str]) -> list[str]:
        """Ask a route without a token and with wrong ones."""
        findings = []
        open_to_all = ROUTES[route][0] is None
        for token in (None, *_ODD_TOKENS):
            headers = {} if token is None else {"authorization": f"Bearer {token}".encode()}
            client = TestClient(
                self.app,
                base_url=BASE,
                headers=headers,
                raise_server_exceptions=False,
                follow_redirects=False,
                client=(f"10.0.0.{len(counts) % 250}", 5000),
            )
            told = self._send(client, route, self.keys["shared"])
            counts["asked as nobody"] += 1
            refused = told["status"] in (303, 307, 401, 403, 404, 405, 429)
            if not open_to_all and not refused:
                findings.append(f"{route} answered {told['status']} to a stranger")
            if told["status"] >= 500:
                findings.append(f"{route} answered {told['status']} to a stranger: {told['text']}")
        return findings

    def _send(self, client: TestClient, route: str, keys: dict[str, str]) -> dict[str, Any]:
        method, _, path = route.partition(" ")
        if method == "MOUNT":
            method, path = "GET", f"{path}/nothing.js"
        path = path.replace("{key}", keys["data" if "/data/" in path else "run"])
        path = path.replace("{one}", keys["run"]).replace("{two}", keys["run"])
        path = path.replace("{name}", "assignments.csv")
        told = client.request(method, path, params={"name": "x.csv"}, json=BODIES.get(route, {}))
        return {"status": told.status_code, "text": told.text[:160]}


def _skipped(route: str, name: str, whose: str) -> bool:
    """Leave out what would end the torture's own things: a user's deletion of what they own."""
    mine = name == "other" and whose in ("foreign", "shared")
    ends = route.startswith("DELETE") or route.endswith(("/logout", "/duplicate", _STREAMS))
    makes = route.endswith(("POST /api/v1/runs", "/move"))
    return (mine and (ends or makes)) or route == "POST /api/v1/logout"


def _word(status: int) -> str:
    return "answered" if status < 400 else "refused" if status < 500 else "failed"
