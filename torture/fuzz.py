"""Fuzz: readers, normalisers, files and the API, with inputs that nobody should send.

Each execution ends in a right answer or in an error of comorb's own tree. An input follows from the
target's name and a number, so that the same finding comes again; it is kept in ``results/torture``,
and ``python -m torture.fuzz TARGET FILE`` tries it again.
"""

from __future__ import annotations

import mmap
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random

from torture.guided import guided
from torture.processes import GIGABYTE
from torture.target import Target, ends_well
from torture.verdict import Verdict, keep

EXECUTIONS = 1_000_000
GUIDED = 0.03  # of all executions, where the coverage-guided fuzzer is installed
_AT_ONCE = 2
_MOST, _FEW = 50_000, 500  # executions a process: of what is fast, and of what is slow
_MEMORY, _MEMORY_APART = 8 * GIGABYTE, 4 * GIGABYTE  # of addresses; apart, as the program has it
_KINDS = ("codes", "files", "readers", "api")
_WAITING = 20  # times the processor seconds of an execution, by the clock, as others work here too
_SLOTS = 4  # the number it is at, and how many were taken, refused and wrong


def all_targets(kinds: tuple[str, ...] = _KINDS) -> dict[str, Target]:
    """Return every target by its name."""
    found = [one for kind in kinds for one in import_module(f"torture.{kind}").targets()]
    return {target.name: target for target in found}


@dataclass(frozen=True)
class Chunk:
    """Some executions of one target, by the numbers of their inputs."""

    target: Target
    first: int
    last: int


def run(share: float) -> Verdict:
    """Attack every target with its share of the executions, two processes at a time."""
    targets = all_targets()
    total = max(int(EXECUTIONS * share), len(targets))
    names = [name for name, target in targets.items() if target.guided]
    steered, findings, told = guided(int(total * GUIDED), names)
    for target in targets.values():
        if target.apart:  # it ends many processes, and each would make its seeds again
            target.seeds(Path())
    waiting = deque(_chunks(list(targets.values()), total - steered))
    counts: Counter[str] = Counter()
    running: list[Child] = []
    while waiting or running:
        while waiting and len(running) < _AT_ONCE:
            running.append(Child(waiting.popleft()))
        time.sleep(0.02)
        for child in [one for one in running if one.ended()]:
            running.remove(child)
            left = child.tell(counts, findings)
            if left is not None:
                waiting.appendleft(left)
    ends = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    made = steered + sum(counts.values())
    return Verdict(f"{made:,} executions over {len(targets)} targets ({ends}; {told})", findings)


def _chunks(targets: list[Target], total: int) -> list[Chunk]:
    """Share executions among targets by their weights; those that are slow come first."""
    weights = sum(target.weight for target in targets)
    chunks = []
    for target in sorted(targets, key=lambda target: target.weight):
        count = max(round(total * target.weight / weights), 1)
        most = _FEW if target.weight < 10 * _FEW else _MOST
        chunks += [Chunk(target, at, min(at + most, count)) for at in range(0, count, most)]
    return chunks


class Child:
    """A process that attacks, under limits, and keeps count in a file that outlives it."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self._place = tempfile.TemporaryDirectory(prefix="torture-", dir=_memory_disk())
        self.folder = Path(self._place.name)
        (self.folder / "progress").write_bytes(bytes(8 * _SLOTS))
        memory = _MEMORY_APART if chunk.target.apart else _MEMORY
        self._process = forked(lambda: _attack(chunk, self.folder), self.folder, memory)
        self._status: int | None = None

    def ended(self) -> bool:
        """Whether the process is over."""
        done, status = os.waitpid(self._process, os.WNOHANG)
        if done:
            self._status = os.waitstatus_to_exitcode(status)
        return bool(done)

    def tell(self, counts: Counter[str], findings: list[str]) -> Chunk | None:
        """Add what was counted and found, and return what is left to do after a process died."""
        name, chunk = self.chunk.target.name, self.chunk
        data = (self.folder / "progress").read_bytes()
        at, taken, refused, wrong = (
            int.from_bytes(data[8 * slot : 8 * slot + 8], "little") for slot in range(_SLOTS)
        )
        counts += Counter(taken=taken, refused=refused, wrong=wrong)
        err = (self.folder / "err").read_text("utf-8", "replace")
        findings += [line[7:] for line in err.splitlines() if line.startswith("FOUND: ")]
        left = None
        if self._status and not at:
            findings.append(f"{name}: the attack couldn't begin: {err.strip()[-400:]}")
        elif self._status and self.chunk.target.apart and self._status < 0:
            counts["ended apart"] += 1
            left = Chunk(chunk.target, at, chunk.last)
        elif self._status:
            counts["wrong"] += 1
            late = self._status in (-signal.SIGALRM, -signal.SIGPROF)
            how = "took too long" if late else f"ended its process with {self._status}"
            findings.append(f"{name} {at - 1}: {how}; {self._input(at - 1)}")
            left = Chunk(chunk.target, at, chunk.last) if len(findings) < 50 else None
        self._place.cleanup()
        return left if left is not None and left.first < left.last else None

    def _input(self, number: int) -> str:
        """Keep the input of a number, made in a process of its own, and return where."""
        target, path = self.chunk.target, self.folder / "kept"

        def make() -> None:
            data = target.mutate(_random(target, number), target.seeds(self.folder))
            path.write_text(str(keep(target.name, data)))

        os.waitpid(forked(make, self.folder), 0)
        return path.read_text() if path.exists() else "its input can't be made again"


def _memory_disk() -> str | None:
    shared = Path("/dev/shm")
    return str(shared) if shared.is_dir() and os.access(shared, os.W_OK) else None


def forked(work: Callable[[], None], folder: Path, memory: int = _MEMORY) -> int:
    """Start a process that does some work under limits and ends; return its number."""
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process
    try:
        os.setsid()
        err = os.open(folder / "err", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(err, 2)
        os.dup2(err, 1)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        tempfile.tempdir = str(folder)
        os.environ["TMPDIR"] = os.environ["COMORB_HOME"] = str(folder)
        room = memory + _held()
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
        code = 3
    sys.stderr.flush()
    os._exit(code)


def _held() -> int:
    """Return the bytes of addresses that this process was forked with; 0 where that isn't told."""
    told = Path("/proc/self/statm")
    return int(told.read_text().split()[0]) * resource.getpagesize() if told.exists() else 0


def _random(target: Target, number: int) -> Random:
    return Random(f"{target.name} {number}")


def _attack(chunk: Chunk, folder: Path) -> None:
    """Attack a target with the inputs of some numbers."""
    target = chunk.target
    warnings.simplefilter("ignore")
    place = folder / "inputs"
    place.mkdir()
    seeds = target.seeds(place)
    for seed in seeds[:3]:
        ends_well(target, seed, place)
    found: Counter[str] = Counter()
    ends = Counter({True: 0, False: 0, None: 0})
    slots = {True: 1, False: 2, None: 3}
    with (folder / "progress").open("r+b") as file, mmap.mmap(file.fileno(), 0) as progress:
        for number in range(chunk.first, chunk.last):
            progress[:8] = (number + 1).to_bytes(8, "little")
            signal.setitimer(signal.ITIMER_PROF, target.seconds)
            signal.setitimer(signal.ITIMER_REAL, _WAITING * target.seconds)
            data = target.mutate(_random(target, number), seeds)
            ending: bool | None = None
            try:
                ending = ends_well(target, data, place)
            except Exception as error:
                told = said(error)
                found[told] += 1
                if found[told] == 1:
                    line = f"FOUND: {target.name} {number}: {told}; {keep(target.name, data)}"
                    print(line, file=sys.stderr, flush=True)
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            ends[ending] += 1
            slot = slots[ending]
            progress[8 * slot : 8 * slot + 8] = ends[ending].to_bytes(8, "little")


def said(error: Exception) -> str:
    """Return what an error is and where in comorb it came from."""
    calls = traceback.extract_tb(error.__traceback__)
    where = next((call for call in calls[::-1] if "comorb" in call.filename), calls[-1])
    words = str(error).splitlines()[0][:160] if str(error) else ""
    return f"{type(error).__name__} {words} at {Path(where.filename).name}:{where.lineno}"


def _again(name: str, path: Path) -> None:
    """Try one input again, with the whole traceback."""
    target = all_targets()[name]
    with tempfile.TemporaryDirectory(prefix="torture-") as place:
        target.seeds(Path(place))
        print("taken" if ends_well(target, path.read_bytes(), Path(place)) else "refused")


if __name__ == "__main__":
    _again(sys.argv[1], Path(sys.argv[2]))
