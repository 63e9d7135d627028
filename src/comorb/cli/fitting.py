"""From records to clusters: demo, fit and assign."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from comorb.cli.options import (
    Clusters,
    Columns,
    Force,
    Json,
    LayoutKind,
    Quiet,
    Records,
    Table,
    WholeMemory,
    cohort_options,
    layout_of,
    number_of_clusters,
)

if TYPE_CHECKING:
    from comorb.insight.profile import Profile
    from comorb.records.preparation import Preparation

Directory = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Where the results go.")
]


def demo(
    output: Directory = Path("comorb-demo"),
    serve: Annotated[
        bool, typer.Option("--serve", help="Open the explorer on the cohort instead.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Do the whole job on a built-in cohort of heart-failure patients.

    23,154 simulated records after the paper's first study, always the same: the clusters are
    printed, and the model and the report are written. Results of an earlier demo are replaced.

    Example: comorb demo
    """
    if serve:
        from comorb.cli.serve import run_explorer
        from comorb.web.app import Settings

        run_explorer(Settings(output), "127.0.0.1", 8042, data="heart-failure")
        return
    from comorb.cli.output import progress
    from comorb.insight.run import run
    from comorb.records.datasets import heart_failure

    with progress(quiet) as tell:
        found = run(
            heart_failure(), 5, title="Simulated heart failure", command="comorb demo", tell=tell
        )
        tell("Writing the results")
        found.save(output, force=True)
    _show(found.profile, output, as_json, quiet)


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
    from comorb.cli.output import progress
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
            from comorb.insight.large import run_large

            asked |= {"memory": memory, "engine": engine or "threads", "force": force}
            about = run_large(records, output, k, preparation, tell=tell, **asked)
        else:
            from comorb.insight.run import run

            found = run(records, k, preparation, tell=tell, **asked)
            tell("Writing the results")
            found.save(output, force)
            about = found.profile
    _show(about, output, as_json, quiet)


def assign(  # noqa: PLR0913 - one parameter for each option
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", show_default=False, help="The model.comorb of a run, or its folder."
        ),
    ],
    records: Records,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="A .csv or .parquet file."),
    ] = Path("assignments.csv"),
    every: Annotated[
        bool,
        typer.Option("--all", help="Also assign records that the model's rules would leave out."),
    ] = False,
    table: Table = None,
    layout: LayoutKind = None,
    column: Columns = None,
    memory: WholeMemory = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Assign new records to the clusters of a model.

    They are read and chosen as the model's own were: the same coding system, level and rules.
    Codes that the model doesn't know are counted and reported.

    Example: comorb assign heart-failure new-visits.csv -o new-clusters.csv
    """
    from comorb.cli.output import progress, show_assigned, show_json
    from comorb.cli.summaries import assigned_summary
    from comorb.insight.scoring import assign_records, assign_stream
    from comorb.records.export import check_export
    from comorb.records.preparation import Preparation

    check_export(output, force)
    asked = table or layout or column
    reading = Preparation(table=table, layout=layout_of(layout, column)) if asked else None
    with progress(quiet) as tell:
        if memory:
            tally = assign_stream(
                model, records, output, reading, every=every, memory=memory, force=force, tell=tell
            )
        else:
            found = assign_records(model, records, reading, every=every, tell=tell)
            found.save(output, force)
            tally = found.tally
    summary = assigned_summary(tally) | {"file": str(output)}
    if as_json:
        show_json(summary)
    elif not quiet:
        show_assigned(summary)


def _without_secrets(text: str) -> str:
    """Return a URL without its user and password; other texts stay as they are."""
    if "://" not in text:
        return text
    bare = re.sub(r"(password|user)=[^&\s]*", r"\1=…", text)
    return re.sub(r"://[^/?\s]*@", "://…@", bare)


def _show(about: Profile, directory: Path, as_json: bool, quiet: bool) -> None:
    from comorb.cli.output import show_json, show_profile
    from comorb.cli.summaries import profile_summary

    summary: dict[str, Any] = profile_summary(about) | {"directory": str(directory)}
    if as_json:
        show_json(summary)
    elif not quiet:
        show_profile(summary)
        typer.echo(f"\nReport: {directory / 'report.html'}")
