"""What a person waits for: a small file from the command line, the first time and every other.

``python -m benchmarks startup`` fits 13 patients in processes of their own, in seconds of processor
time: what a machine with nothing else to do takes, and on one that is busy no more.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.table import Figure, show

NINE = ("428.0", "401.9", "250.00", "414.01", "427.31", "585.9", "496", "272.4", "584.9", "285.9")
TEN = ("I50.9", "I10", "E11.9", "I25.10", "I48.91", "N18.9", "J44.9", "E78.5", "N17.9", "D64.9")


def patients(codes: tuple[str, ...]) -> str:
    """Return a file of 13 patients with four of ten codes each."""
    rows = (";".join(codes[(n + 3 * m) % 10] for m in range(4)) for n in range(13))
    return "id,codes\n" + "".join(f"{n},{row}\n" for n, row in enumerate(rows))


def seconds(folder: Path, file: str, kept: str) -> float:
    """Return the processor time of a fit whose machine code is kept in a folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["fit", file, "-o", "run", "--force", "--quiet"]
    subprocess.run(
        [sys.executable, "-m", "comorb", *words],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / kept)},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, codes in (("nine.csv", NINE), ("ten.csv", TEN)):
            (folder / file).write_text(patients(codes))
        first = min(seconds(folder, "nine.csv", kept) for kept in ("one", "two"))
        nine, ten = (
            min(seconds(folder, f, "one") for _ in range(3)) for f in ("nine.csv", "ten.csv")
        )
    show(
        "Start",
        [
            Figure("13 patients, ICD-9", nine, 1.5, at_least=False, unit=" s"),
            Figure("the first run, compiling, more", first - nine, 4, at_least=False, unit=" s"),
            Figure("ICD-10 instead of ICD-9, more", ten - nine, 1, at_least=False, unit=" s"),
        ],
    )
