"""Hold the coverage of a whole run to its bounds: of the core, of the rest, and of every module.

``make coverage`` runs it. A module counts as tested by the lines in
its functions that ran: those outside run at its import, which tests nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

CORE, REST, MODULE = 95, 85, 60  # percent: of comorb.model, of all else, of each file's functions


def rate(done: int, wanted: int) -> float:
    return 100.0 * done / wanted if wanted else 100.0


def _total(summaries: list[dict[str, Any]]) -> float:
    """Return the percentage of lines and branches that ran, of several files."""
    done = sum(one["covered_lines"] + one.get("covered_branches", 0) for one in summaries)
    wanted = sum(one["num_statements"] + one.get("num_branches", 0) for one in summaries)
    return rate(done, wanted)


def in_functions(file: dict[str, Any]) -> float:
    """Return the percentage of a file's lines in functions that ran."""
    inside = [one["summary"] for name, one in file["functions"].items() if name]
    return rate(
        sum(one["covered_lines"] for one in inside), sum(one["num_statements"] for one in inside)
    )


def failures(files: dict[str, dict[str, Any]]) -> list[str]:
    """Return a line for each bound that the files of a report of coverage miss."""
    core = [file["summary"] for name, file in files.items() if "/model/" in name]
    rest = [file["summary"] for name, file in files.items() if "/model/" not in name]
    found = [
        f"{name}: {_total(summaries):.1f}% ran, and {bound}% have to"
        for name, summaries, bound in (("comorb.model", core, CORE), ("the rest", rest, REST))
        if _total(summaries) < bound
    ]
    return found + [
        f"{name}: {in_functions(file):.0f}% of its functions ran, and {MODULE}% have to"
        for name, file in sorted(files.items())
        if in_functions(file) < MODULE
    ]


if __name__ == "__main__":
    missed = failures(json.loads(Path(sys.argv[1]).read_text("utf-8"))["files"])
    print("\n".join(missed) or "Coverage holds its bounds.")
    sys.exit(bool(missed))
