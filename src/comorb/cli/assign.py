"""The assign command: new records to the clusters of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from comorb.cli import options


def assign(  # noqa: PLR0913 - one parameter for each option
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", show_default=False, help="The model.comorb of a run, or its folder."
        ),
    ],
    records: options.Records,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="A .csv or .parquet file."),
    ] = Path("assignments.csv"),
    every: Annotated[
        bool,
        typer.Option("--all", help="Also assign records that the model's rules would leave out."),
    ] = False,
    table: options.Table = None,
    layout: options.LayoutKind = None,
    column: options.Columns = None,
    memory: options.Memory = None,
    engine: options.Engine = None,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Assign new records to the clusters of a model.

    They are read and chosen as the model's own were: the same coding system, level and rules.
    Codes that the model doesn't know are counted and reported.

    Example: comorb assign heart-failure new-visits.csv -o new-clusters.csv
    """
    from comorb.cli.output import show, show_assigned, show_notes, shown_progress
    from comorb.cli.summaries import assigned_summary
    from comorb.insight.runs.assign import assign_records
    from comorb.records.preparation import Preparation

    asked = table or layout or column
    reading = Preparation(table=table, layout=options.layout_of(layout, column)) if asked else None
    with shown_progress(quiet) as tell:
        tally = assign_records(
            model,
            records,
            output,
            reading,
            every=every,
            memory=memory,
            engine=engine,
            force=force,
            tell=tell,
        )
    summary = assigned_summary(tally) | {"file": str(output)}
    show_notes(summary["notes"])
    show(summary, show_assigned, as_json, quiet)
