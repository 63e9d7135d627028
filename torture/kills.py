"""Kills: −9 at points where the disk changes; what is there then is old or new, whole, never mixed.

Each job is done once to list its points, then once for each point at which it is killed. After a
kill the files in view must be those from before or those that it makes; after the job was done
again, nothing else may be left, hidden or in the folder of temporary files.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from torture import served_kills
from torture.commands import write_visits
from torture.processes import Ended, comorb, environment, left_in, limited
from torture.verdict import Verdict

POINTS = 200
SERVER_SHARE = 0.3
HOOK = Path(__file__).parent / "hook"
_FIT = ("fit", "visits.csv", "--no-stability", "-q", "--force")
Tree = dict[str, str]


@dataclass(frozen=True)
class Job:
    """What is killed: the words before it, its own, and those that look at what it wrote."""

    name: str
    words: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    look: tuple[str, ...] = ()


RUN = (*_FIT, "-k", "2", "-o", "run")
JOBS = (
    Job("fit", (*_FIT, "-k", "3", "-o", "run"), look=("profile", "run")),
    Job("fit again", (*_FIT, "-k", "3", "-o", "run"), (RUN,), ("profile", "run")),
    Job(
        "fit in parts",
        (*_FIT, "-k", "3", "--memory", "1GB", "-o", "run"),
        (RUN,),
        ("profile", "run"),
    ),
    Job(
        "rename",
        ("profile", "run", "--name", "1=Other", "--name", "2=More"),
        (RUN,),
        ("profile", "run"),
    ),
    Job(
        "assign",
        ("assign", "run", "visits.csv", "-o", "out.csv", "--force"),
        (RUN, ("assign", "run", "fewer.csv", "-o", "out.csv")),
        ("inspect", "out.csv"),
    ),
    Job(
        "report",
        ("report", "run", "-o", "page.html", "--force"),
        (RUN, ("simulate", "x.csv", "-n", "9")),
    ),
    Job(
        "export",
        ("simulate", "all.parquet", "-n", "400", "--force"),
        (("simulate", "all.parquet", "-n", "90"),),
    ),
)


def run(share: float) -> Verdict:
    """Kill each job at its share of the points, evenly spread over those it has."""
    wanted = max(int(POINTS * share), len(JOBS) + 1)
    for_server = max(int(wanted * SERVER_SHARE), 1)
    findings: list[str] = []
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="torture-") as place:
        kept = [Prepared(job, Path(place)) for job in JOBS]
        chosen = spread({one.job.name: one.points for one in kept}, wanted - for_server)
        tasks = [(one, point) for one in kept for point in chosen[one.job.name]]
        with ThreadPoolExecutor(2) as pool:
            for found in pool.map(lambda task: task[0].killed(task[1]), tasks):
                findings += found
        counts |= {name: len(points) for name, points in chosen.items()}
    served, found = served_kills.run(wanted - len(tasks))
    findings += found
    told = ", ".join(f"{name} {count}" for name, count in (counts | {"server": served}).items())
    return Verdict(f"{len(tasks) + served} kills ({told})", findings)


def spread(points: Mapping[str, int], wanted: int) -> dict[str, list[int]]:
    """Return the points of each job, evenly spread, so that all together are as many as wanted."""
    total = sum(points.values())
    chosen = {}
    for name, count in points.items():
        some = max(min(round(wanted * count / total), count), 1)
        chosen[name] = [1 + (2 * i + 1) * count // (2 * some) for i in range(some)]
    return chosen


def tree(folder: Path, hidden: bool = False) -> Tree:
    """Return the digest of each file in view below a folder; with ``hidden``, of all of them."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.split("/")[0] in ("home", "tmp") or (not hidden and "/." in f"/{name}"):
            continue
        if path.is_file():
            found[name] = sha256(path.read_bytes()).hexdigest()
        elif hidden:
            found[f"{name}/"] = ""
    return found


class Prepared:
    """A job with the state before it, the files that it makes, and its number of points."""

    def __init__(self, job: Job, place: Path) -> None:
        self.job = job
        self.start = place / job.name.replace(" ", "-")
        self.start.mkdir()
        write_visits(self.start / "visits.csv")
        write_visits(self.start / "fewer.csv", 100)
        (self.start / "home").mkdir()
        (self.start / "home" / "protection.key").write_text("07" * 32 + "\n")
        for words in job.before:
            self._do(self.start, words)
        self.old = tree(self.start)
        done = self._copy()
        points = done / "tmp" / "points"
        ended = self._do(done, job.words, points, 0)
        self.points = points.read_bytes().count(b"\n")
        points.unlink()
        self.new, self.all = tree(done), tree(done, hidden=True)
        if ended.code != 0:
            raise RuntimeError(f"{job.name} {ended.told()}")

    def _copy(self) -> Path:
        folder = Path(tempfile.mkdtemp(dir=self.start.parent))
        shutil.copytree(self.start, folder, dirs_exist_ok=True)
        return folder

    def _do(
        self, folder: Path, words: tuple[str, ...], points: Path | None = None, kill: int = 0
    ) -> Ended:
        env = environment(folder)
        if points is not None:
            env |= {
                "PYTHONPATH": f"{HOOK}:{env['PYTHONPATH']}",
                "TORTURE_POINTS": str(points),
                "TORTURE_KILL": str(kill),
            }
        return limited(comorb(*words), folder, env)

    def killed(self, point: int) -> list[str]:
        """Kill the job at a point, look, and do it again; return what is wrong."""
        folder, name = self._copy(), f"{self.job.name}, killed at point {point} of {self.points}"
        points = folder.with_name(f"{folder.name}-points")
        ended = self._do(folder, self.job.words, points, point)
        findings = []
        if ended.code != -9:
            findings.append(f"{name}: was not killed but {ended.told()}")
        if self.job.look and Path(folder, self.job.look[1]).exists():
            looked = self._do(folder, self.job.look)
            if not looked.plainly:
                findings.append(f"{name}: looking {looked.told()}")
        if tree(folder) not in (self.old, self.new):
            findings.append(f"{name}: {_differences(tree(folder), self.old, self.new)}")
        again = self._do(folder, self.job.words)
        if again.code != 0:
            findings.append(f"{name}: doing it again {again.told()}")
        elif tree(folder, hidden=True) != self.all:
            left = sorted(set(tree(folder, hidden=True).items()) ^ set(self.all.items()))
            findings.append(
                f"{name}: after it was done again {[path for path, _ in left][:6]} differ"
            )
        left = left_in(folder / "tmp")
        if left:
            findings.append(f"{name}: temporary files are left: {left[:5]}")
        shutil.rmtree(folder, ignore_errors=True)
        points.unlink(missing_ok=True)
        return findings


def _differences(now: Tree, old: Tree, new: Tree) -> str:
    states = {}
    for path in sorted({*now, *old, *new}):
        here = now.get(path)
        if old.get(path) != new.get(path):
            states[path] = (
                "old" if here == old.get(path) else "new" if here == new.get(path) else "else"
            )
        elif here != old.get(path):
            states[path] = "else"
    return f"a mixed folder: {states}"
