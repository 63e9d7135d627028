"""Commands: words with which every command of comorb is tried, on small files in one folder."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

from comorb.cli.app import COMMANDS
from torture.processes import Ended, comorb, limited

Words = tuple[str, ...]
# What each command is given; those before it have made what it reads. A command that isn't here
# is a finding of every part that tries them all.
WORDS: dict[str, tuple[Words, ...]] = {
    "simulate": (("simulated.csv", "-n", "300", "--force", "-q"),),
    "inspect": (("visits.csv",), ("visits.csv", "--json")),
    "fit": (
        ("visits.csv", "-k", "3", "-o", "run", "--force", "-q"),
        ("visits.csv", "-k", "2", "-o", "parts", "--memory", "1GB", "--no-stability", "--force"),
    ),
    "assign": (("run", "visits.csv", "-o", "assigned.csv", "--force"),),
    "choose": (("visits.csv", "--json"),),
    "stability": (("visits.csv", "-k", "2"),),
    "profile": (
        ("run",),
        ("run", "--cluster", "1"),
        ("run", "--name", "1=Other"),
        ("run", "--json"),
    ),
    "report": (
        ("run", "-o", "report.html", "--force"),
        ("run", "-o", "report.pdf", "--force"),
        ("run", "-o", "to-share.html", "--protected", "--force"),
        ("run", "--pack", "pack", "--split-by", "sex", "--language", "es", "--force"),
    ),
    "relate": (("run", "visits.csv", "--outcome", "died", "-o", "related.csv", "--force"),),
    "rules": (("run",),),
    "slices": (("run", "visits.csv", "--by", "sex"),),
    "compare": (("run", "parts"),),
    "demo": (("-o", "demo"),),
    "user": (("add", "ada", "--role", "analyst"), ("list",), ("remove", "ada")),
    "audit": (("show",), ("verify",)),
    "reproduce": (("--help",),),  # it reads no records
    "serve": (("--help",),),  # the parts that need it start it themselves
}
CODES = ("428.0", "250.00", "401.9", "585.6", "V58.61", "272.4", "414.01", "427.31", "496", "276.1")


def unknown() -> list[str]:
    """Return a finding for each command that is not tried."""
    missing = sorted(set(COMMANDS) - set(WORDS))
    return [
        f"the command {name} isn't tried: give it words in torture/commands.py" for name in missing
    ]


def write_visits(path: Path, records: int = 300, marker: str = "v") -> None:
    """Write a small table of records, always the same, in three kinds of patients."""
    rng = random.Random(4)
    with path.open("w", encoding="utf-8") as file:
        file.write("visit_id,age,sex,died,diagnoses\n")
        for row in range(records):
            first = 3 * (row % 3)
            likely = CODES[first : first + 4]
            codes = [code for code in CODES if rng.random() < (0.8 if code in likely else 0.1)]
            text = ";".join(codes or CODES[:1])
            file.write(
                f"{marker}{row:06},{40 + row % 50},{'FM'[row % 2]},{row % 7 == 0:d},{text}\n"
            )


def tried(
    name: str, words: Words, folder: Path, env: Mapping[str, str], seconds: float = 300
) -> Ended:
    """Run one command in a folder."""
    return limited(comorb(name, *words), folder, env, seconds)
