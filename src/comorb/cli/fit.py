"""The fit command: from records to clusters."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from comorb.cli import options

if TYPE_CHECKING:
    from comorb.records.preparation import Preparation


Stable = Annotated[
    bool,
    typer.Option(
        "--stability/--no-stability",
        help="Whether to find the clusters again in parts of the records, to see how stable "
        "they are; takes several times as long.",
    ),
]


@options.cohort_options
def fit(  # noqa: PLR0913 - one parameter for each option
    records: options.Records,
    preparation: Preparation,
    clusters: options.Clusters = "auto",
    output: options.Directory = Path("comorb-run"),
    force: options.Force = False,
    stable: Stable = True,
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
    protected: options.Protected = False,
    min_cell: options.MinCell = None,
    memory: options.Memory = None,
    engine: options.Engine = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Find the clusters of records, and write a model and a report.

    DIR gets model.comorb (for assign), assignments.csv (the cluster of each record),
    profile.json (all that is known about the clusters) and report.html (to read and to show;
    with --protected, to share).
    With --memory or --engine a run that was interrupted goes on when it is started again.

    Example: comorb fit visits.csv --having 428 -k 5 -o heart-failure
    """
    from comorb.cli.output import show_run, shown_progress
    from comorb.insight.runs.run import Request, fit_records
    from comorb.records.beside import main_and_beside

    main, beside = main_and_beside(records)
    request = Request(
        options.number_of_clusters(clusters),
        preparation,
        title=title or Path(_without_secrets(main)).name,
        outcomes=None if outcome is None else tuple(outcome),
        repeats=3 if stable else 0,
        protected=options.least_count(protected, min_cell),
    )
    named = {kind: _without_secrets(source) for kind, source in beside.items()}
    request = replace(request, command=request.words(_without_secrets(main), named))
    with shown_progress(quiet) as tell:
        profile = fit_records(
            records, output, request, memory=memory, engine=engine, force=force, tell=tell
        )
    shown = profile.protected(request.protected) if request.protected else profile
    show_run(shown, output, as_json, quiet)


def _without_secrets(text: str) -> str:
    """Return a URL without its user and password; other texts stay as they are."""
    if "://" not in text:
        return text
    bare = re.sub(r"(password|user)=[^&\s]*", r"\1=…", text)
    return re.sub(r"://[^/?\s]*@", "://…@", bare)
