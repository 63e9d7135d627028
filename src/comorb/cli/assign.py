"""The assign command: new records to the clusters of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from comorb.cli import options
from comorb.cli.sources import kinds_of, sources_of

Every = Annotated[
    bool, typer.Option("--all", help="Also assign records that the model's rules would leave out.")
]

Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="A .csv or .parquet file, or a folder for .parquet parts.",
    ),
]


def assign(  # noqa: PLR0913 - one parameter for each option
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", show_default=False, help="The model.comorb of a run, or its folder."
        ),
    ],
    records: options.Records,
    output: Output = Path("assignments.csv"),
    every: Every = False,
    beside: options.With = None,
    kinds: options.Kinds = None,
    table: options.Table = None,
    layout: options.LayoutKind = None,
    column: options.Columns = None,
    protected: options.Protected = False,
    min_cell: options.MinCell = None,
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
    from comorb.remote import place_of

    reading = Preparation(
        table=table,
        layout=options.layout_of(layout, column),
        kinds=kinds_of(kinds),
        layouts=options.layouts_of(column),
    )
    with shown_progress(quiet) as tell:
        tally = assign_records(
            model,
            sources_of(records, beside, reading.kinds),
            output,
            reading if reading != Preparation() else None,
            every=every,
            memory=memory,
            engine=engine,
            force=force,
            tell=tell,
        )
    summary = assigned_summary(tally, options.least_count(protected, min_cell))
    summary |= {"file": str(place_of(output))}
    show_notes(summary["notes"])
    show(summary, show_assigned, as_json, quiet)
