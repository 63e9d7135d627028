"""Bits: the same model and the same clusters on any threads, in any order, in parts and on Dask."""

from __future__ import annotations

import csv
import random
import sys
import tempfile
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from comorb.records.datasets import region
from comorb.records.export import export
from comorb.storage import load_model
from torture.processes import comorb, environment, limited
from torture.verdict import Verdict

RECORDS = 6000
THREADS = (1, 2, 4)


def run(share: float) -> Verdict:
    """Fit the same records in every way, with and without weights, and compare."""
    findings: list[str] = []
    made = 0
    with tempfile.TemporaryDirectory(prefix="torture-") as place:
        for weighted in (False, True):
            folder = Path(place, "weighted" if weighted else "plain")
            folder.mkdir()
            ways = written(folder, max(int(RECORDS * share), 400), weighted)
            if share < 1:
                ways = dict(list(ways.items())[:4])
            found = {name: _fitted(name, words, folder) for name, words in ways.items()}
            made += len(found)
            told = {name: bits for name, bits in found.items() if bits is not None}
            first = next(iter(told.values()), None)
            findings += [f"{name}: the fit failed" for name, bits in found.items() if bits is None]
            findings += [
                f"{name}, {'with' if weighted else 'without'} weights: {what} other bits"
                for name, bits in told.items()
                for what, one, two in zip(
                    ("the model has", "assignments have"), bits, first, strict=True
                )  # type: ignore[arg-type]
                if one != two
            ]
    ways_told = f"{made} fits of {max(int(RECORDS * share), 400):,} records"
    return Verdict(
        f"{ways_told}: threads {THREADS}, shuffled, permuted, in parts, engines", findings
    )


def written(folder: Path, records: int, weighted: bool) -> dict[str, list[str]]:
    """Write the records in several orders, and return the words of each way to fit them."""
    export(region(records), folder / "visits.csv")
    with (folder / "visits.csv").open(newline="") as file:
        names, *rows = list(csv.reader(file))
    rng = random.Random(7)
    if weighted:
        names = [*names, "survey_weight"]
        rows = [[*row, f"{rng.uniform(0.2, 5):.3f}"] for row in rows]
    _write(folder / "visits.csv", names, rows)
    shuffled = rng.sample(rows, len(rows))
    _write(folder / "shuffled.csv", names, shuffled)
    order = rng.sample(range(len(names)), len(names))
    _write(
        folder / "permuted.csv",
        [names[i] for i in order],
        [[row[i] for i in order] for row in rows],
    )
    plain = ["visits.csv", "-k", "4"]
    ways = {f"on {count} threads": [*plain, "--torture-threads", str(count)] for count in THREADS}
    ways |= {"with shuffled rows": ["shuffled.csv", "-k", "4"]}
    ways |= {"with permuted columns": ["permuted.csv", "-k", "4"]}
    ways |= {"in parts": [*plain, "--memory", "1GB"]}
    if find_spec("distributed"):
        ways |= {"on dask": [*plain, "--engine", "dask"]}
    return ways


def _write(path: Path, names: list[str], rows: list[list[str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])


_THREADS = """
import os, sys
count = int(sys.argv.pop(1))
os.sched_getaffinity = lambda _=0: set(range(count))
from comorb.__main__ import main
main()
"""


def _fitted(name: str, words: list[str], folder: Path) -> tuple[str, str] | None:
    """Fit in one way; return digests of the model, by code, and of each record's cluster."""
    out = folder / name.replace(" ", "-")
    command = comorb("fit")
    if "--torture-threads" in words:
        count = words[-1]
        words = words[:-2]
        command = [sys.executable, "-c", _THREADS, count, "fit"]
    words = [*words, "-o", str(out), "--no-stability", "-q"]
    env = environment(folder, {"OPENBLAS_CORETYPE": "Haswell"})
    if limited([*command, *words], folder, env, 600, 32 << 30).code != 0:
        return None
    model = load_model(out / "model.comorb")
    order = sorted(range(len(model.codes)), key=lambda i: model.codes[i])
    means = model.mixture.means[:, order]
    codes = "\n".join(model.codes[i] for i in order).encode()
    parameters = sha256(model.mixture.weights.tobytes() + means.tobytes() + codes).hexdigest()
    rows = sorted((out / "assignments.csv").read_text("utf-8").splitlines()[1:])
    return parameters, sha256("\n".join(rows).encode()).hexdigest()
