"""Disks: every command that writes, and an upload, on a disk that is full at different points.

A small tmpfs is mounted where that is allowed. What can't be written is said in one line, what was
there stays, and nothing half-written is left.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torture.commands import WORDS, tried, unknown, write_visits
from torture.kills import tree
from torture.processes import environment
from torture.server import Server, add_users
from torture.verdict import Verdict

SIZE = 6 << 20
FREE = (0, 4096, 20_000, 60_000, 150_000, 400_000)
_QUIET = (
    "inspect",
    "choose",
    "stability",
    "slices",
    "rules",
    "serve",
    "reproduce",
)  # they write no file here


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """Yield a folder on a disk of its own, or None where nothing can be mounted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "torture", str(folder)]
    allowed = hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("mount")
    if not allowed or subprocess.run(mount, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


def run(share: float) -> Verdict:
    """Try every command with different room, then the explorer."""
    findings = unknown()
    sizes = FREE if share >= 0.5 else FREE[2:3]
    with (
        tempfile.TemporaryDirectory(prefix="torture-") as place,
        small_disk(Path(place, "disk")) as disk,
    ):
        if disk is None:
            return Verdict("no disk can be mounted here, so none was filled", findings)
        names = [name for name in WORDS if name not in _QUIET]
        if share < 0.5:
            names = ["fit", "assign"]
        count, found = _commands(disk, Path(place), names, sizes)
        findings += found
        findings += _upload(disk, Path(place)) if share >= 0.5 else []
    room = f"from {sizes[0]:,} to {sizes[-1]:,} bytes free"
    return Verdict(f"{count} commands with {room}, and an upload", findings)


def _commands(
    disk: Path, place: Path, names: list[str], sizes: tuple[int, ...]
) -> tuple[int, list[str]]:
    """Try commands in a folder of the disk, whose home and temporary files are elsewhere."""
    env, work = environment(place), disk / "work"
    work.mkdir()
    write_visits(work / "visits.csv")
    findings = []
    for name in ("fit", "assign", "simulate", "report"):
        for words in WORDS[name]:
            ended = tried(name, words, work, env)
            if ended.code:
                findings.append(f"{name} {words} {ended.told()}")
    count = 0
    for name in names:
        for words in WORDS[name]:
            for free in sizes:
                before = tree(work, hidden=True)
                with _filled(disk, free):
                    ended = tried(name, words, work, env)
                count += 1
                after = tree(work, hidden=True)
                if not ended.plainly:
                    findings.append(f"{name} {words} with {free:,} bytes free {ended.told()}")
                if ended.code and (left := _left(before, after)):
                    findings.append(f"{name} {words} with {free:,} bytes free left {left}")
    shutil.rmtree(work)
    return count, findings


def _left(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return what a command that failed changed; a database may have grown, a run be unfinished."""
    return [
        path
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path)
        and "workspace" not in path
        and ".unfinished" not in path
        and path != "demo/"
    ][:5]


@contextmanager
def _filled(disk: Path, free: int) -> Iterator[None]:
    """Fill a disk up to some bytes."""
    filler = disk / "filler"
    room = shutil.disk_usage(disk).free - free
    filler.write_bytes(bytes(max(room, 0)))
    try:
        yield
    finally:
        filler.unlink()


def _upload(disk: Path, place: Path) -> list[str]:
    """Upload to an explorer whose disk is full: 507, and usable once there is room."""
    findings = []
    workspace = disk / "workspace"
    tokens = add_users(workspace)
    write_visits(place / "visits.csv", 3000)
    content = (place / "visits.csv").read_bytes()
    with (
        Server(workspace, environment(place)) as server,
        server.client(tokens["analyst"]) as client,
    ):
        client.get("/api/v1/data")
        with _filled(disk, 40_000):
            told = client.put("/api/v1/data?name=visits.csv", content=content)
            if told.status_code != 507:
                findings.append(
                    f"an upload to a full disk answered {told.status_code}: {told.text[:120]}"
                )
            if client.get("/api/v1/data").status_code != 200:
                findings.append("the list of data can't be read while the disk is full")
        told = client.put("/api/v1/data?name=visits.csv", content=content)
        if told.status_code != 201:
            findings.append(
                f"once there is room, an upload answered {told.status_code}: {told.text[:120]}"
            )
        kept = [row for row in client.get("/api/v1/data").json() if row["kind"] == "upload"]
        if len(kept) != 1:
            findings.append(f"{len(kept)} uploads are kept, and one was taken")
    return findings
