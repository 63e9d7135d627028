"""Results kept in a CSV file as they are made, so that a stopped run goes on where it was."""

from __future__ import annotations

import csv
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import comorb

Value = str | int | float
Result = dict[str, Value]
Tick = Callable[[int, int], None]


def fill(
    path: Path, wanted: Sequence[Result], make: Callable[[Result], Result], tick: Tick
) -> list[Result]:
    """Return the wanted results from a CSV file, making and writing those that are not there.

    What is wanted holds the columns that tell one result from another. Each result also says
    which ``commit`` made it.
    """
    have = {_key(result, wanted[0]): result for result in read_results(path)}
    results = []
    for done, key in enumerate(wanted):
        tick(done, len(wanted))
        if _key(key, key) not in have:
            row = {**key, **make(key), "commit": revision()}
            append_result(path, row)
            have[_key(key, key)] = {name: _value(name, str(value)) for name, value in row.items()}
        results.append(have[_key(key, key)])
    tick(len(wanted), len(wanted))
    return results


def _key(result: Result, columns: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(result[name]) for name in columns)


def read_results(path: Path) -> list[Result]:
    """Return the results in a CSV file; a last row cut short by a stop is cut off the file."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return [
        {name: _value(name, value) for name, value in row.items()}
        for row in csv.DictReader(whole.splitlines())
    ]


def append_result(path: Path, row: Result) -> None:
    """Write one result at the end of a CSV file, with a header where it is new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists() or path.stat().st_size == 0
    with path.open("a", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(row), lineterminator="\n")
        if new:
            table.writeheader()
        table.writerow(row)


def write_results(path: Path, rows: Iterable[Result]) -> None:
    """Write a whole CSV file anew."""
    path.unlink(missing_ok=True)
    for row in rows:
        append_result(path, row)


def _value(column: str, text: str) -> Value:
    for kind in () if column == "commit" else (int, float):  # a commit such as 845865e2 is text
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@cache
def revision() -> str:
    """Return the commit of the code that runs, or the version where there is no repository."""
    git = shutil.which("git")
    if git is not None:
        here = Path(__file__).parent
        command = [git, "-C", str(here), "describe", "--always", "--dirty", "--abbrev=8"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode == 0:
            return done.stdout.strip()
    return f"version {comorb.__version__}"
