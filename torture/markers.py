"""Markers: ids and lists of codes that stand nowhere else, searched in everything that is written.

Ids may be in what was asked to hold them (assignments, cohorts, uploads); a record's list of codes
in an upload alone. Files, databases, output, errors and answers are searched, also what is packed.
"""

from __future__ import annotations

import gzip
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from comorb.web.server.access import ROLES
from tests.web.server.test_protection import BODIES, ROUTES
from torture.commands import CODES, WORDS, tried, unknown, write_visits
from torture.processes import environment
from torture.server import Server, add_users, settled
from torture.verdict import Verdict

MARKER = "ZQMARKER"
LIST = ";".join(CODES[:7])  # a list of codes that some record has, as its file writes it
# Where ids may be: what holds the cluster of each record, cohorts, and records themselves.
IDS = (
    *("visits.csv", "*/assignments.csv", "*/moved.csv", "assigned.csv", "*/cohort-*.parquet"),
    *("*/cohort.parquet", "workspace/data/*/records.csv", "simulated.csv"),
)
LISTS = ("visits.csv", "workspace/data/*/records.csv")


def run(share: float) -> Verdict:
    """Run all commands and a session of each role on marked records, and search."""
    findings = unknown()
    with tempfile.TemporaryDirectory(prefix="torture-") as place:
        folder = Path(place)
        env = environment(folder)
        write_visits(folder / "visits.csv", 200, MARKER)
        _append_odd_rows(folder / "visits.csv")
        told: dict[str, str] = {}
        names = WORDS if share >= 0.5 else ("inspect", "fit", "assign")
        for name in names:
            for words in WORDS[name]:
                ended = tried(name, words, folder, env)
                told[f"the output of {name} {' '.join(words)}"] = ended.out + ended.err
                if ended.code:
                    findings.append(f"{name} {words} {ended.told()}")
        told |= _failures(folder, env)
        if share >= 0.5:
            told |= _session(folder, env)
        searched = 0
        for where, text in told.items():
            searched += 1
            findings += _found(where, text.encode(), (), ())
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                searched += 1
                name = str(path.relative_to(folder))
                for part in _parts(path):
                    findings += _found(name, part, IDS, LISTS)
    return Verdict(f"{searched} files, outputs and answers searched", sorted(set(findings)))


def _append_odd_rows(path: Path) -> None:
    """Add records that can't be read well, so that notes and problems speak of them."""
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{MARKER}X1,age?,F,0,{LIST}\n")
        file.write(f"{MARKER}X2,50,?,0,not a code;428.0\n")
        file.write(f"{MARKER}X3,-7,M,9,\n")


def _failures(folder: Path, env: dict[str, str]) -> dict[str, str]:
    """Make commands fail on marked records, and return what they said."""
    lines = (folder / "visits.csv").read_text().splitlines()
    (folder / "home" / "cut.csv").write_text("\n".join([*lines[:20], lines[20] + ",a,b,c"]) + "\n")
    (folder / "home" / "twice.csv").write_text("\n".join([*lines, lines[1][:-3]]) + "\n")
    (folder / "home" / "bytes.csv").write_bytes(
        "\n".join(lines[:20]).encode() + b"\n\xff\xfe\x00,\x9d\n"
    )
    told = {}
    for name in ("cut.csv", "twice.csv", "bytes.csv"):
        for command in ("inspect", "fit"):
            more = ("-o", "never", "-k", "2") if command == "fit" else ()
            ended = tried(command, (f"home/{name}", *more), folder, env)
            told[f"the refusal of {command} {name}"] = ended.out + ended.err
        (folder / "home" / name).unlink()
    for words in (("visits.csv", "-k", "900"), ("visits.csv", "-k", "2", "--having", "nothing")):
        ended = tried("fit", (*words, "-o", "never"), folder, env)
        told[f"the refusal of fit {words}"] = ended.out + ended.err
    return told


def _session(folder: Path, env: dict[str, str]) -> dict[str, str]:
    """Upload, run and ask everything as each role; return answers that may hold no ids."""
    tokens = add_users(folder / "workspace")
    told: dict[str, str] = {}
    content = (folder / "visits.csv").read_bytes()
    with Server(folder / "workspace", env, (str(folder / "visits.csv"),)) as server:
        with server.client(tokens["exporter"]) as client:
            data = client.put("/api/v1/data?name=visits.csv", content=content).json()["id"]
            body = {"data": data, "k": 2, "rules": {"at_least": 1}}
            key = client.post("/api/v1/runs", json=body).json()["id"]
            if (row := settled(client, key))["state"] != "done":
                raise RuntimeError(f"the run of the torture is {row['state']}: {row}")
            client.patch(f"/api/v1/runs/{key}", json={"shared": True})
            client.post(f"/api/v1/runs/{key}/record", json={"record": f"{MARKER}000001"})
            client.post(f"/api/v1/runs/{key}/record", json={"record": f"{MARKER}none"})
            moved = client.post(
                f"/api/v1/runs/{key}/move", json={"record": f"{MARKER}000001", "cluster": 2}
            ).json()["id"]
            settled(client, moved)
            client.post(f"/api/v1/runs/{key}/assign?name=visits.csv", content=content)
            client.get(f"/api/v1/runs/{key}/download/assignments.csv")
        for role in ROLES:
            with server.client(tokens[role]) as client:
                told |= _answers(client, role, data, key)
        told["the standard error of the server"] = server.stop()
    return told


def _answers(client: object, role: str, data: str, run: str) -> dict[str, str]:
    told = {}
    for route in ROUTES:
        method, _, path = route.partition(" ")
        if method not in ("GET", "POST") or route.endswith(
            ("/events", "/logout", "/duplicate", "/cancel", "/move", "/record", "/assign")
        ):
            continue
        key = data if "/data/" in path else run
        path = path.replace("{key}", key).replace("{one}", run).replace("{two}", run)
        names = ("report.html", "profile.json", "profile.csv") if "{name}" in path else ("",)
        for name in names:
            answer = client.request(
                method, path.replace("{name}", name), json=BODIES.get(route, {})
            )  # type: ignore[attr-defined]
            told[f"the answer of {route} {name} to the role {role}"] = answer.text
    return told


def _parts(path: Path) -> Iterator[bytes]:
    """Yield what a file holds, and what is packed in it."""
    data = path.read_bytes()
    yield data
    if data.startswith(b"PAR1"):
        table = pq.read_table(path)
        texts = [name for name in table.column_names if pa.types.is_string(table[name].type)]
        yield "\n".join(str(cell) for name in texts for cell in table[name].to_pylist()).encode()
    if data.startswith(b"\x1f\x8b"):
        yield gzip.decompress(data)
    if data.startswith(b"PK"):
        with zipfile.ZipFile(path) as packed:
            yield from (packed.read(name) for name in packed.namelist())
    if data.startswith(b"%PDF"):
        for piece in data.split(b"stream\n")[1:]:
            try:
                yield zlib.decompress(piece)
            except zlib.error:
                continue


def _found(where: str, data: bytes, ids: tuple[str, ...], lists: tuple[str, ...]) -> list[str]:
    findings = []
    if MARKER.encode() in data and not any(fnmatch(where, one) for one in ids):
        findings.append(f"an id stands in {where}")
    if LIST.encode() in data and not any(fnmatch(where, one) for one in lists):
        findings.append(f"the list of codes of a record stands in {where}")
    return findings
