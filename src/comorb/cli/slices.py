"""The slices command: the clusters of a run by age, sex, site or time."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from comorb.cli import options


@options.spec_options
def slices(  # noqa: PLR0913 - one parameter for each option
    run: options.RunFolder,
    records: options.Records,
    by: Annotated[
        list[str],
        typer.Option(
            metavar="WHAT",
            help="age, sex, site, year, quarter, month or a column; with cut points as in "
            "age:18,45,65,80 or quantiles as in age:q4. Repeatable.",
        ),
    ],
    *,
    request: options.Refit,
    reading: options.WeightedSource,
    counts: options.Counts,
    work: options.Work,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show the clusters of a run by age, sex, site or time.

    Records are read and chosen as the run's own were; each belongs to its most probable cluster.
    Standardised shares have the age and sex of all records.

    Example: comorb slices heart-failure visits.csv --by age:18,45,65,80 --by site
    """
    from comorb.cli.render import show, show_sliced, shown_progress
    from comorb.cli.summaries import sliced_summary
    from comorb.runs.slices import parse_slices, slice_run

    own = options.stated(reading)
    request = replace(request, by=parse_slices(by), reading=own, min_cell=counts.least)
    with shown_progress(quiet) as report:
        sliced = slice_run(run, records, request, **vars(work), report=report)
    show(sliced_summary(sliced), show_sliced, as_json, quiet, notes=True)
