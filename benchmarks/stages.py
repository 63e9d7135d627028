"""Stages: what each part of a run costs the process that drives it, and the workers of a cluster.

``python -m benchmarks.stages wide 10000000 spark`` simulates records, starts a cluster on this
machine (``spark``: a master with two workers; ``connect``: Spark Connect on it; ``dask``: a
scheduler and two workers), and makes the whole run there. ``long 5000000 dask 200`` has the rows of
each patient in 200 files. ``here`` makes the same run in this process.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.scale import CLUSTERS, write_region
from comorb.records.datasets import region
from comorb.runs.folder import read_assignments
from comorb.runs.progress import Progress
from comorb.runs.run import Request, fit_records
from comorb.storage import load_model
from tests.engines import clusters

REST = 0.2  # CPU seconds in two, of processes that wait


def write_long(folder: Path, n: int, files: int) -> None:
    """Write the visits of n patients, a row a code, spread over files."""
    folder.mkdir()
    held: list[list[pa.Table]] = [[] for _ in range(files)]
    for batch in region(n, "long"):
        rows = pa.Table.from_batches([batch])
        for number, part in enumerate(held):
            part.append(rows.take(np.arange(number, len(rows), files)))
    for number, part in enumerate(held):
        pq.write_table(pa.concat_tables(part), folder / f"part-{number:04d}.parquet")


@contextmanager
def dask(folder: Path) -> Iterator[str]:
    """Yield the address of a scheduler with two workers of one thread each."""
    told = folder / "scheduler.json"
    common = ["--no-dashboard", "--scheduler-file", str(told)]
    scheduler = ["dask_scheduler", "--host", "127.0.0.1", "--port", "0", *common]
    worker = ["dask_worker", "--nthreads", "1", "--nworkers", "2", "--memory-limit", "4GB"]
    worker += ["--local-directory", str(folder), *common]
    env = os.environ | {"PYTHONPATH": os.pathsep.join((*clusters.sources(), ""))}
    with ExitStack() as stack:
        for words in (scheduler, worker):
            command = [sys.executable, "-m", f"distributed.cli.{words[0]}", *words[1:]]
            with (folder / "log").open("ab") as log:
                one = subprocess.Popen(command, env=env, stdout=log, stderr=log)
            stack.callback(one.wait)
            stack.callback(one.terminate)
            while not told.exists():
                time.sleep(0.1)
        yield "dask://" + json.loads(told.read_text())["address"].removeprefix("tcp://")


@contextmanager
def started(name: str, folder: Path) -> Iterator[str | None]:
    """Yield the address of an engine that is started here, or None for this process."""
    with ExitStack() as stack:
        if name == "here":
            yield None
        elif name == "dask":
            yield stack.enter_context(dask(folder))
        else:
            os.environ |= clusters.environment(folder)
            address = stack.enter_context(clusters.standalone(folder))
            if name == "connect":
                address = stack.enter_context(clusters.connect(folder, address))
            yield address


class Spent:
    """The CPU seconds of all processes that this one started, those of workers apart."""

    def __init__(self) -> None:
        self.known: dict[psutil.Process, tuple[bool, float]] = {}
        self.looked = 0.0  # the seconds of looking, which don't count

    def now(self) -> tuple[float, float]:
        """Return the seconds of all until now, and of those that drive."""
        here = time.process_time() - self.looked
        works = {one: _works(one) for one in psutil.Process().children()}
        for child in works:
            for one in (child, *child.children(recursive=True)):
                try:
                    self.known[one] = (works[child], sum(one.cpu_times()[:2]))
                except psutil.Error:
                    continue
        self.looked = time.process_time() - here
        drives = here + sum(seconds for work, seconds in self.known.values() if not work)
        return here + sum(seconds for _, seconds in self.known.values()), drives


def _works(process: psutil.Process) -> bool:
    """Tell a worker from a scheduler, a master, or the other half of this process."""
    words = " ".join(process.cmdline())
    return "worker.Worker" in words or "dask_worker" in words


def stage(text: str, passes: list[int]) -> str:
    """Return the stage that a run is in, by what it tells."""
    if not text.startswith("Pass "):
        return text.partition(" of ")[0] if text.startswith("Finding") else text.split(";")[0]
    passes.append(1)
    return {1: "prevalence", 2: "start", 3: "start"}.get(len(passes), "EM and checks")


def main(layout: str, n: int, engine: str, files: int = 200) -> None:
    """Make a run, and print what each of its stages took."""
    with tempfile.TemporaryDirectory(prefix="comorb-bench-") as name:
        folder = Path(name)
        source = folder / ("region.parquet" if layout == "wide" else "claims")
        make = (write_region, (source, n)) if layout == "wide" else (write_long, (source, n, files))
        maker = get_context("spawn").Process(target=make[0], args=make[1])
        maker.start()
        maker.join()
        (folder / "cluster").mkdir()
        with started(engine, folder / "cluster") as address:
            wait_for_rest()
            _measure(source, folder / "run", address)


def wait_for_rest() -> None:
    """Wait until a cluster that has just been started does nothing any more."""
    spent, before = Spent(), -1.0
    while (now := spent.now()[0]) - before > REST:
        before = now
        time.sleep(2)


def _measure(source: Path, run: Path, address: str | None) -> None:
    spent, passes = Spent(), list[int]()
    began, (all_before, own_before) = time.perf_counter(), spent.now()
    table: dict[str, list[float]] = {}
    current = "begin"

    def report(progress: Progress) -> None:
        nonlocal current, all_before, own_before
        every, own = spent.now()
        line = table.setdefault(current, [0.0, 0.0, 0.0])
        line[0] += every - all_before
        line[1] += own - own_before
        line[2] = _peak()
        all_before, own_before = every, own
        current = stage(progress.text, passes)

    memory = "2GB" if address is None else None
    fit_records(
        source, run, Request(CLUSTERS, repeats=0), memory=memory, engine=address, report=report
    )
    report(Progress("writing", "done"))
    for text, (every, own, peak) in table.items():
        print(f"{text:40} {every:7.1f} {own:7.1f} {own / max(every, 0.1):6.0%} {peak:6.2f} GB")
    every, own = (sum(line[at] for line in table.values()) for at in (0, 1))
    print(f"{'all':40} {every:7.1f} {own:7.1f} {own / every:6.0%}")
    saved = load_model(run / "model.comorb")
    bits = saved.mixture.weights.tobytes() + saved.mixture.means.tobytes()
    labels = read_assignments(run / "assignments.csv").sort_by("id")["cluster"].to_numpy()
    told = sha256(bits).hexdigest()[:16], sha256(labels.tobytes()).hexdigest()[:16]
    print(f"parameters {told[0]}, labels {told[1]}, {time.perf_counter() - began:.0f} s in all")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], *map(int, sys.argv[4:5]))
