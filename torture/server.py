"""Server: the explorer as a process of its own, on this machine, with users of each role."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx2 as httpx

from comorb.web.server.access import ROLES, Access
from comorb.web.server.store import Store
from torture.processes import comorb, end, start


def add_users(workspace: Path) -> dict[str, str]:
    """Add a user of each role to a workspace, two of the last, and return their tokens by name."""
    store = Store(workspace)
    access = Access(store)
    tokens = {role: access.add_user(role, role) for role in ROLES}
    tokens["other"] = access.add_user("other", ROLES[-1])
    store.close()
    return tokens


class Server:
    """A running explorer; within the block it answers, and then it is ended."""

    def __init__(
        self, workspace: Path, env: Mapping[str, str], words: Sequence[str | Path] = ()
    ) -> None:
        self.workspace = workspace
        options = ("--workspace", workspace, "--port", "0", "--no-browser")
        command = comorb("serve", *words, *options)
        self.process = start(command, workspace.parent, env, 64 << 30)
        self.address = self._listening()

    def _listening(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        told = re.search(r"http://[^/\s]+", line)
        if told is None:
            self.process.wait(30)
            return ""
        return told[0]

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.stop()

    def client(self, token: str = "", seconds: float = 120) -> httpx.Client:
        """Return a client that signs in by a token."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.address, headers=headers, timeout=seconds)

    def stop(self) -> str:
        """End the server as an operator does, and return what it wrote to standard error."""
        self.process.send_signal(signal.SIGINT)
        try:
            _, err = self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            end(self.process)
            _, err = self.process.communicate()
        return err.decode(errors="replace")

    @property
    def dead(self) -> bool:
        """Whether the process has ended."""
        return self.process.poll() is not None


def settled(client: httpx.Client, key: str, seconds: float = 180) -> dict[str, Any]:
    """Wait until a run is neither waiting nor running, nor measured, and return its row."""
    until = time.monotonic() + seconds
    row: dict[str, Any] = {"state": "unknown"}
    while time.monotonic() < until:
        row = client.get(f"/api/v1/runs/{key}").json()
        over = row.get("state") not in ("queued", "running")
        if over and (row.get("measured") or row.get("state") != "done"):
            return row
        time.sleep(0.1)
    return row


def quietly(call: Any, *given: Any, **named: Any) -> Any:
    """Call something of a client; None where the server is gone."""
    with suppress(httpx.HTTPError, KeyError, ValueError):
        return call(*given, **named)
    return None
