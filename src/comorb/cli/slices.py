"""The slices command: the clusters of a run by age, sex, site or time."""

from __future__ import annotations

from typing import Annotated

import typer

from comorb.cli import options
from comorb.records.spec import CohortSpec

Bys = Annotated[
    list[str],
    typer.Option(
        "--by",
        metavar="WHAT",
        help="age, sex, site, year, quarter, month or a column; with cut points as in "
        "age:18,45,65,80 or quantiles as in age:q4. Repeatable.",
    ),
]
Refit = Annotated[
    bool,
    typer.Option(
        "--refit",
        help="Also find the clusters of each slice anew, match them to the run's, and test "
        "whether profiles differ.",
    ),
]
Draws = Annotated[
    int,
    typer.Option(metavar="N", min=1, max=999, help="Draws of the test of --refit."),
]


@options.spec_options
def slices(  # noqa: PLR0913 - one parameter for each option
    run: options.RunFolder,
    records: options.Records,
    by: Bys,
    refit: Refit = False,
    draws: Draws = 39,
    *,
    reading: options.WeightedSource,
    protected: options.Protected = False,
    min_cell: options.MinCell = None,
    memory: options.Memory = None,
    engine: options.Engine = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show the clusters of a run by age, sex, site or time.

    Records are read and chosen as the run's own were; each belongs to its most probable cluster.
    Standardised shares have the age and sex of all records.

    Example: comorb slices heart-failure visits.csv --by age:18,45,65,80 --by site
    """
    from comorb.cli.render import show, show_notes, show_sliced, shown_progress
    from comorb.cli.summaries import sliced_summary
    from comorb.runs.slices import SliceRequest, parse_slices, slice_run

    request = SliceRequest(
        parse_slices(by),
        refit,
        draws,
        reading if reading != CohortSpec() else None,
        options.least_count(protected, min_cell),
    )
    with shown_progress(quiet) as report:
        sliced = slice_run(
            run,
            records,
            request,
            memory=memory,
            engine=engine,
            report=report,
        )
    summary = sliced_summary(sliced)
    show_notes(summary["notes"])
    show(summary, show_sliced, as_json, quiet)
