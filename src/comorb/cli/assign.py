"""The assign command: new records to the clusters of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from comorb.cli import options

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


@options.spec_options
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
    *,
    reading: options.Source,
    counts: options.Counts,
    work: options.Work,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Assign new records to the clusters of a model.

    They are read and chosen as the model's own were: the same coding system, level and rules.
    Codes that the model doesn't know are counted and reported.

    Example: comorb assign heart-failure new-visits.csv -o new-clusters.csv
    """
    from comorb.cli.render import show, show_assigned, shown_progress
    from comorb.cli.summaries import assigned_summary
    from comorb.remote import place_of
    from comorb.runs.assign import assign_records

    with shown_progress(quiet) as report:
        ways: dict[str, Any] = {**vars(work), "every": every, "force": force, "report": report}
        tally = assign_records(model, records, output, options.stated(reading), **ways)
    summary = assigned_summary(tally, counts.least) | {"file": str(place_of(output))}
    show(summary, show_assigned, as_json, quiet, notes=True)
