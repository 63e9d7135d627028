"""Workers that die: an engine one of whose processes is killed in the middle of some calls."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Container
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from comorb.engines.base import Engine, in_file

EXECUTOR, WORKER = "CoarseGrainedExecutorBackend", "deploy.worker.Worker"  # processes of Spark


@dataclass(frozen=True)
class Deadly:
    """A function after which a process is killed, the first time: what it came to is lost.

    It is the process that this runs in or, with ``above``, the one above it of such a command. The
    process that drives it all, ``home``, stays alive.
    """

    function: Any
    marker: Path
    home: int
    above: str = ""

    def __call__(self, *words):
        result = self.function(*words)
        if os.getpid() == self.home:
            return result
        try:
            self.marker.touch(exist_ok=False)
        except FileExistsError:
            return result
        os.kill(self._victim(), signal.SIGKILL)
        time.sleep(600)  # until what is below a killed process ends as well
        return None

    def _victim(self) -> int:
        own = psutil.Process()
        if not self.above:
            return own.pid
        return next(one.pid for one in own.parents() if self.above in " ".join(one.cmdline()))


class Doomed(Engine):
    """An engine one of whose processes dies once in each of the calls ``at``.

    They are 'pass 1', 'pass 2' … over blocks and 'round 1' … of other tasks. Calls about nothing,
    or about blocks in the memory of this process, don't count. ``markers`` are the names of files,
    one for each process that died.
    """

    def __init__(self, engine, folder: Path, at: Container[str], above: str = "") -> None:
        self.engine, self.at, self.above = engine, at, above
        self.passes = self.rounds = 0
        self.folder = folder
        folder.mkdir()

    map_partitions = head = None  # no test reads a frame

    @property
    def markers(self) -> list[str]:
        return sorted(one.name for one in self.folder.iterdir())

    def map_blocks(self, function, loaders):
        return self.engine.map_blocks(
            self._pass(function) if in_file(loaders) else function, loaders
        )

    def map_items(self, function, items):
        self.rounds += bool(items)
        own = self._deadly(function, f"round {self.rounds}")
        return self.engine.map_items(own, items) if items else []

    def run_pass(self, job, loaders):
        if not in_file(loaders):
            return self.engine.run_pass(job, loaders)
        function, finish = self._pass(job.function), job.finish
        if not self.above:  # of what is above workers there are few
            finish = self._deadly(finish, f"pass {self.passes}", ", at the end")
        return self.engine.run_pass(replace(job, function=function, finish=finish), loaders)

    def _pass(self, function):
        self.passes += 1
        return self._deadly(function, f"pass {self.passes}")

    def _deadly(self, function, call: str, more: str = ""):
        if call not in self.at:
            return function
        return Deadly(function, self.folder / f"{call}{more}", os.getpid(), self.above)
