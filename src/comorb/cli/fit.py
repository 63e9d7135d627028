"""The fit command: from records to clusters."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from comorb.cli.options import (
    Clusters,
    Directory,
    Force,
    Json,
    Quiet,
    Records,
    WholeMemory,
    cohort_options,
    number_of_clusters,
)

if TYPE_CHECKING:
    from comorb.records.preparation import Preparation


@cohort_options
def fit(  # noqa: PLR0913 - one parameter for each option
    records: Records,
    preparation: Preparation,
    clusters: Clusters = "auto",
    output: Directory = Path("comorb-run"),
    force: Force = False,
    stable: Annotated[
        bool,
        typer.Option(
            "--stability/--no-stability",
            help="Whether to find the clusters again in parts of the records, to see how stable "
            "they are; takes several times as long.",
        ),
    ] = True,
    title: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="What the data are, for the report; else the name of RECORDS."
        ),
    ] = None,
    outcome: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Sum up this column per cluster. Repeatable; all when left out."
        ),
    ] = None,
    memory: WholeMemory = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="ENGINE",
            help="Who does the work: threads, dask, dask://HOST:PORT, spark, spark://HOST:PORT or "
            "sc://HOST.",
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the clusters of records, and write a model and a report.

    DIR gets model.comorb (for assign), assignments.csv (the cluster of each record),
    profile.json (all that is known about the clusters) and report.html (to read and to show).
    With --memory or --engine a run that was interrupted goes on when it is started again.

    Example: comorb fit visits.csv --having 428 -k 5 -o heart-failure
    """
    from comorb.cli.output import progress, show_run
    from comorb.storage import check_folder

    k = number_of_clusters(clusters)
    check_folder(output, force)
    asked: dict[str, Any] = {
        "title": title or Path(_without_secrets(records)).name,
        "command": shlex.join(["comorb", *map(_without_secrets, sys.argv[1:])]),
        "outcomes": outcome,
        "repeats": 3 if stable else 0,
    }
    with progress(quiet) as tell:
        if memory or engine:
            from comorb.insight.runs.large import run_large

            asked |= {"memory": memory, "engine": engine or "threads", "force": force}
            about = run_large(records, output, k, preparation, tell=tell, **asked)
        else:
            from comorb.insight.runs.run import run

            found = run(records, k, preparation, tell=tell, **asked)
            tell("Writing the results")
            found.save(output, force)
            about = found.profile
    show_run(about, output, as_json, quiet)


def _without_secrets(text: str) -> str:
    """Return a URL without its user and password; other texts stay as they are."""
    if "://" not in text:
        return text
    bare = re.sub(r"(password|user)=[^&\s]*", r"\1=…", text)
    return re.sub(r"://[^/?\s]*@", "://…@", bare)
