"""Kills of the server: at points of an upload, a run, an export and an assignment.

The next start must find what is done whole and take up or remove the rest: no hidden files, no
files of nobody, no temporary files, an audit log that verifies, and every run done or told why not.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx2 as httpx

from comorb.errors import ComorbError
from comorb.records.cohort_file import load_cohort
from comorb.runs.folder import load_profile
from comorb.web.server.store import Store
from torture.commands import write_visits
from torture.processes import comorb, environment, left_in, limited
from torture.server import Server, add_users, settled

HOOK = Path(__file__).parent / "hook"
_LEFT = ("assign-", "download-", "codes-")


def run(wanted: int) -> tuple[int, list[str]]:
    """Kill a server at so many points of a session, and return how many and what is wrong."""
    with tempfile.TemporaryDirectory(prefix="torture-") as place:
        folder = Path(place)
        write_visits(folder / "visits.csv", 240)
        (folder / "start").mkdir()
        tokens = add_users(folder / "start" / "workspace")
        session = Session(folder, tokens["exporter"])
        total = session.points()
        points = sorted({1 + (2 * i + 1) * total // (2 * wanted) for i in range(wanted)})
        with ThreadPoolExecutor(2) as pool:
            findings = [found for some in pool.map(session.killed, points) for found in some]
        return len(points), findings


class Session:
    """What a user does while the server is killed, and what must be there afterwards."""

    def __init__(self, folder: Path, token: str) -> None:
        self.folder, self.token = folder, token
        self.total = 0

    def points(self) -> int:
        """Do the session once without a kill, and return how many points it has."""
        place = self._copy()
        points = place / "points"
        with self._server(place, points, 0) as server:
            self._do(server)
        self.total = points.read_bytes().count(b"\n")
        shutil.rmtree(place, ignore_errors=True)
        return self.total

    def _copy(self) -> Path:
        place = Path(tempfile.mkdtemp(dir=self.folder))
        shutil.copytree(self.folder / "start", place, dirs_exist_ok=True)
        return place

    def _server(self, place: Path, points: Path | None = None, kill: int = 0) -> Server:
        env = environment(place)
        if points is not None:
            env |= {
                "PYTHONPATH": f"{HOOK}:{env['PYTHONPATH']}",
                "TORTURE_POINTS": str(points),
                "TORTURE_KILL": str(kill),
                "TORTURE_SERVER": "1",
            }
        return Server(place / "workspace", env)

    def _do(self, server: Server) -> None:
        """Upload, run, name, export, assign and duplicate; a server that is gone ends it."""
        records = (self.folder / "visits.csv").read_bytes()
        with suppress(httpx.HTTPError, KeyError, ValueError), server.client(self.token) as client:
            data = client.put("/api/v1/data?name=visits.csv", content=records).json()["id"]
            body = {"data": data, "k": 2, "rules": {"at_least": 1}}
            key = client.post("/api/v1/runs", json=body).json()["id"]
            settled(client, key)
            run = f"/api/v1/runs/{key}"
            client.put(f"{run}/names", json={"1": "One"})
            for name in ("assignments.csv", "report.html", "model.comorb"):
                client.get(f"{run}/download/{name}")
            client.post(f"{run}/assign?name=visits.csv", content=records)
            client.post(f"{run}/duplicate")
            client.get(f"/api/v1/data/{data}/codes?q=428")

    def killed(self, point: int) -> list[str]:
        """Kill the server at a point, start it again, and return what is wrong."""
        name = f"server, killed at point {point} of {self.total}"
        place = self._copy()
        with self._server(place, place / "points", point) as server:
            self._do(server)
        killed = server.process.returncode == -signal.SIGKILL
        findings = []
        if not killed and (place / "points").read_bytes().count(b"\n") >= point:
            findings.append(f"{name}: was not killed")
        with self._server(place) as server:
            if not server.address:
                findings.append(f"{name}: doesn't start again: {server.stop()[-300:]!r}")
            else:
                findings += [f"{name}: {found}" for found in self._look(server)]
            told = server.stop()
        findings += [f"{name}: {found}" for found in self._left(place)]
        if "Traceback" in told or "Error" in told:
            findings.append(f"{name}: the next server wrote {told[-300:]!r}")
        shutil.rmtree(place, ignore_errors=True)
        return findings

    def _look(self, server: Server) -> list[str]:
        """Return what of data and runs is neither whole nor gone."""
        findings = []
        with server.client(self.token) as client:
            for row in client.get("/api/v1/data").json():
                told = client.get(f"/api/v1/data/{row['id']}")
                if told.status_code != 200 or told.json().get("refused"):
                    findings.append(f"data of kind {row['kind']} answer {told.status_code}")
            for row in client.get("/api/v1/runs").json():
                row = settled(client, row["id"])
                if row["state"] != "done":
                    findings.append(f"a run is {row['state']}: {row.get('message')}")
                    continue
                for path in ("profile", "download/assignments.csv", "download/report.html"):
                    told = client.get(f"/api/v1/runs/{row['id']}/{path}")
                    if told.status_code != 200:
                        findings.append(
                            f"{path} of a run answers {told.status_code}: {told.text[:120]}"
                        )
        return findings

    def _left(self, place: Path) -> list[str]:
        """Return what is left over in the workspace and in the folder of temporary files."""
        workspace = place / "workspace"
        audit = limited(
            comorb("audit", "verify", "--workspace", str(workspace)), place, environment(place)
        )
        findings = [] if audit.code == 0 else [f"the audit log doesn't verify: {audit.err[-200:]}"]
        store = Store(workspace)
        for table in ("data", "runs"):
            for path in sorted((workspace / table).rglob("*")):
                key = path.relative_to(workspace / table).parts[0]
                if store.get(table, key) is None:  # type: ignore[arg-type]
                    findings.append(f"{table}/…/{path.name} is nobody's")
                elif path.name.startswith((".", *_LEFT[:2])):
                    findings.append(f"{table}/…/{path.name} is left over")
        for row in store.list("runs"):
            if row["state"] == "done":
                findings += _whole(load_profile, store.folder("runs", row["id"]))
        for row in store.list("data"):
            for cohort in store.folder("data", row["id"]).glob("cohort-*.parquet"):
                findings += _whole(load_cohort, cohort)
        store.close()
        left = [name for name in left_in(place / "tmp") if not name.startswith("pymp-")]
        return [*findings, *([f"temporary files are left: {left[:5]}"] if left else [])]


def _whole(load: object, path: Path) -> list[str]:
    try:
        load(path)  # type: ignore[operator]
    except ComorbError as error:
        return [f"{path.name} isn't whole: {error}"]
    return []
