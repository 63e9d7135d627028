"""Result rows kept in a CSV file as they are made, so that a stopped run goes on where it was."""

from __future__ import annotations

import csv
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import comorb

Value = str | int | float
Row = dict[str, Value]
Tick = Callable[[int, int], None]


@dataclass(frozen=True)
class Rows:
    """A CSV file of results; ``keys`` are the columns that tell one row from another.

    Each row also says which ``commit`` made it.
    """

    path: Path
    keys: tuple[str, ...]

    def fill(self, wanted: Sequence[Row], make: Callable[[Row], Row], tick: Tick) -> list[Row]:
        """Return the rows for the wanted keys, making and writing those that are not there."""
        have = {self._key(row): row for row in read_rows(self.path)}
        result = []
        for done, key in enumerate(wanted):
            tick(done, len(wanted))
            if self._key(key) not in have:
                row = {**key, **make(key), "commit": revision()}
                append_row(self.path, row)
                have[self._key(key)] = {name: _value(str(value)) for name, value in row.items()}
            result.append(have[self._key(key)])
        tick(len(wanted), len(wanted))
        return result

    def _key(self, row: Row) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in self.keys)


def read_rows(path: Path) -> list[Row]:
    """Return the whole rows of a CSV file; a last row cut short by a stop is cut off the file."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return [
        {name: _value(value) for name, value in row.items()}
        for row in csv.DictReader(whole.splitlines())
    ]


def append_row(path: Path, row: Row) -> None:
    """Write one row at the end of a CSV file, with a header where it is new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists() or path.stat().st_size == 0
    with path.open("a", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(row), lineterminator="\n")
        if new:
            table.writeheader()
        table.writerow(row)


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a whole CSV file anew."""
    path.unlink(missing_ok=True)
    for row in rows:
        append_row(path, row)


def _value(text: str) -> Value:
    for kind in (int, float):
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
