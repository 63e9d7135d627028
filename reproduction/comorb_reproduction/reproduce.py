"""Reproduce: run the parts of the paper that are asked for and write one page on them."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import sklearn

from comorb.errors import InputError
from comorb_reproduction import accuracy, bias, exact, scaling, studies, timing
from comorb_reproduction.results import Tick, read_results, revision
from comorb_reproduction.sections import Section, table
from comorb_reproduction.survey import SURVEY

Progress = Callable[[str, int, int], None]

SectionMaker = Callable[[Path, bool, Tick], Section]

PARTS = ("exact", "ari", "time", "studies", "bias", "scaling")
PAGE = "reproduction.md"


def reproduce(
    parts: Sequence[str] = (),
    *,
    quick: bool = False,
    out: str | Path = "results",
    data: str | Path = SURVEY,
    progress: Progress | None = None,
) -> Path:
    """Make the paper's figures and tables again, judge its claims, and return the page on them.

    It holds the ``parts`` of this call, all by default. Each result is in a CSV file of ``out`` as
    soon as it is made, so that a run that was stopped goes on; ``quick`` takes fewer seeds and
    smaller sizes. Without the National Hospital Discharge Survey 2010 in ``data`` the studies take
    the built-in cohorts. ``progress`` hears how many results of a part are there, of how many.
    """
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise InputError(
            f"expected parts among {', '.join(PARTS)}, got {', '.join(map(repr, unknown))}"
        )
    folder = Path(out)
    tell = progress or (lambda part, done, total: None)
    runs: dict[str, SectionMaker] = {
        "exact": exact.run,
        "ari": accuracy.run,
        "time": timing.run,
        "studies": partial(studies.run, Path(data)),
        "bias": bias.run,
        "scaling": scaling.run,
    }
    chosen = [part for part in PARTS if not parts or part in parts]
    sections = [runs[part](folder, quick, partial(tell, part)) for part in chosen]
    page = folder / PAGE
    page.write_text(_page(chosen, sections, quick, _commits(folder)), encoding="utf-8")
    return page


def _commits(folder: Path) -> list[str]:
    rows = [row for path in sorted(folder.glob("*.csv")) for row in read_results(path)]
    return sorted({str(row["commit"]) for row in rows if "commit" in row}) or [revision()]


def _page(chosen: list[str], sections: list[Section], quick: bool, commits: list[str]) -> str:
    every = len(chosen) == len(PARTS)
    command = " ".join(
        ["comorb reproduce", *([] if every else chosen), *(["--quick"] if quick else [])]
    )
    claims = [
        [claim.text, f"**{claim.verdict}**", claim.evidence]
        for section in sections
        for claim in section.claims
    ]
    note = " (a quick look at few seeds and small sizes, not evidence)" if quick else ""
    head = (
        "# The paper, reproduced\n\n"
        "*Clustering Patients with Tensor Decomposition* (Ruffini, Gavaldà, Limón) measured again "
        "with comorb: every method, figure and table, and where comorb goes beyond it.\n\n"
        f"Made by `{command}`{note}, with comorb at {', '.join(commits)}, Python "
        f"{platform.python_version()}, NumPy {np.__version__}, scikit-learn "
        f"{sklearn.__version__}, on {os.cpu_count()} cores. One part alone: `comorb reproduce "
        f"{chosen[0]}`. Every number is in a CSV file of the folder with the results. A claim that "
        "was looked at in several settings is confirmed when it held in all of them, and confirmed "
        "with limits when it held in at least half.\n"
    )
    verdicts = "\n## The paper's claims\n\n" + table(["claim", "verdict", "our number"], claims)
    bodies = [f"\n## {section.title}\n\n{section.body}" for section in sections]
    return "\n".join([head, verdicts, *bodies]) + "\n"
