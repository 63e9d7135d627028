"""The slices command: the clusters of a run by age, sex, site or time."""

from __future__ import annotations

from typing import Annotated

import typer

from comorb.cli import options
from comorb.cli.sources import kinds_of, sources_of

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


def slices(  # noqa: PLR0913 - one parameter for each option
    run: options.RunFolder,
    records: options.Records,
    by: Bys,
    refit: Refit = False,
    draws: Draws = 39,
    beside: options.With = None,
    kinds: options.Kinds = None,
    table: options.Table = None,
    layout: options.LayoutKind = None,
    column: options.Columns = None,
    weights: options.Weights = None,
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
    from comorb.cli.output import show, show_notes, shown_progress
    from comorb.cli.usage import sliced_summary
    from comorb.cli.usage_tables import show_sliced
    from comorb.insight.runs.slicing import SliceRequest, asked_slices, slice_run
    from comorb.records.preparation import Preparation

    reading = Preparation(
        table=table,
        layout=options.layout_of(layout, column, weights),
        kinds=kinds_of(kinds),
        layouts=options.layouts_of(column),
    )
    request = SliceRequest(
        asked_slices(by),
        refit,
        draws,
        reading if reading != Preparation() else None,
        options.least_count(protected, min_cell),
    )
    with shown_progress(quiet) as tell:
        sliced = slice_run(
            run,
            sources_of(records, beside, reading.kinds),
            request,
            memory=memory,
            engine=engine,
            tell=tell,
        )
    summary = sliced_summary(sliced)
    show_notes(summary["notes"])
    show(summary, show_sliced, as_json, quiet)
