"""Processes under limits: whatever is attacked has so much memory and time, and no more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
GIGABYTE = 1 << 30


@dataclass(frozen=True)
class Ended:
    """How a process ended: its code, −9 where it was killed, and what it said."""

    code: int
    out: str
    err: str
    late: bool = False

    @property
    def plainly(self) -> bool:
        """Whether it is done, or said in one line why it can't be."""
        said = [line for line in self.err.splitlines() if not line.startswith("note: ")]
        refused = self.code == 1 and len(said) == 1 and "Traceback" not in self.err
        return not self.late and (self.code == 0 or refused)

    def told(self) -> str:
        """Return how it ended, shortly."""
        if self.late:
            return "did not end in time"
        return f"ended with {self.code}: {self.err.strip()[-300:]!r}"


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what a process of a torture lives in: its own home and folder of temporary files."""
    for name in ("home", "tmp"):
        (home / name).mkdir(parents=True, exist_ok=True)
    paths = [str(ROOT / "src"), str(ROOT)]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "COMORB_HOME": str(home / "home"),
        "HOME": str(home / "home"),
        "TMPDIR": str(home / "tmp"),
        "PYTHONFAULTHANDLER": "",
        **(more or {}),
    }


def limited(
    command: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    seconds: float = 120,
    memory: int = 8 * GIGABYTE,
) -> Ended:
    """Run a command within limits on its memory and time, with all that it starts."""
    process = start(command, cwd, env, memory)
    try:
        out, err = process.communicate(timeout=seconds)
        late = False
    except subprocess.TimeoutExpired:
        late = True
        end(process)
        out, err = process.communicate()
    return Ended(
        process.returncode, out.decode(errors="replace"), err.decode("utf-8", "replace"), late
    )


def start(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], memory: int = 8 * GIGABYTE
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, under a limit of memory."""
    limit = [sys.executable, "-c", _LIMIT, str(memory), *command]
    return subprocess.Popen(
        limit,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


_LIMIT = """
import ctypes, os, resource, signal, sys
room = int(sys.argv[1])
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # whoever started it may be ended too
resource.setrlimit(resource.RLIMIT_AS, (room, room))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
os.execv(sys.argv[2], sys.argv[2:])
"""


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its group."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(OSError):
        process.kill()


def comorb(*words: str | Path) -> list[str]:
    """Return the command line of comorb with some words."""
    return [sys.executable, "-m", "comorb", *map(str, words)]


def left_in(folder: Path) -> list[str]:
    """Return temporary files that are left; Python tries a folder out with one that says 'blat'."""
    tried = (path for path in folder.iterdir() if path.is_file() and path.read_bytes() == b"blat")
    return sorted({path.name for path in folder.iterdir()} - {path.name for path in tried})
