"""The choose command: how many clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from comorb.cli import options

Numbers = Annotated[
    str | None,
    typer.Option(
        "--clusters",
        "-k",
        metavar="FROM:TO",
        help="The numbers to try; without it 1:20, and more where the largest is best.",
    ),
]
Classes = Annotated[
    bool,
    typer.Option(
        "--lca", help="Also print what papers on latent classes print, in totals: AIC, BIC, …"
    ),
]
Draws = Annotated[
    int,
    typer.Option(
        min=0, metavar="DRAWS", help="With --lca: draws of the bootstrap likelihood-ratio test."
    ),
]
Minutes = Annotated[
    float, typer.Option(min=0, metavar="MINUTES", help="The most that all draws may take.")
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="With --lca: a .csv, .xlsx, .tex or .dta file (for Stata and R) of the tables.",
    ),
]


@options.spec_options
def choose(  # noqa: PLR0913 - one parameter for each option
    records: options.Records,
    clusters: Numbers = None,
    lca: Classes = False,
    blrt: Draws = 0,
    minutes: Minutes = 10.0,
    output: Output = None,
    chart: options.Chart = None,
    force: options.Force = False,
    *,
    counts: options.Counts,
    work: options.Work,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    cohort: options.Cohort,
) -> None:
    """Find out how many clusters records hold.

    Finds the number of main groups, and the finest number that the records bear out; what BIC
    would take is shown with them.

    Example: comorb choose visits.csv --having 428 --chart choice.png
    """
    from comorb.cli.render import save_chart, show, show_choice, shown_progress
    from comorb.cli.summaries import choice_summary
    from comorb.runs.choose import class_tables, splits
    from comorb.runs.cohorts import open_records
    from comorb.runs.run import choose_number
    from comorb.views.charts import draw_choice
    from comorb.views.sheets import save_sheets

    ks = None if clusters is None else _range(clusters)
    if (blrt or output) and not lca:
        raise typer.BadParameter("--blrt and --output go with --lca", param_hint="--lca")
    tables, least = None, counts.least
    with (
        shown_progress(quiet) as report,
        open_records(records, cohort, **vars(work), report=report) as (chosen, executor),
    ):
        choice = choose_number(chosen, ks, executor, report)
        found = splits(choice, chosen.codes, chosen.names, chosen.system)
        if lca:
            draws = (blrt, 60 * minutes)
            tables = class_tables(choice, chosen, executor, draws, min_cell=least, report=report)
    summary = choice_summary(choice, chosen.ledger, found, least)
    if tables is not None:
        summary |= {"lca": tables.sheets, "methods": tables.methods}
    if tables is not None and output is not None:
        summary["files"] = [str(file) for file in save_sheets(tables.sheets, output, force)]
    if chart:
        save_chart(draw_choice(choice), chart, force, quiet)
    show(summary, show_choice, as_json, quiet, notes=True)


def _range(text: str) -> list[int]:
    first, _, last = text.partition(":")
    if not (first.isdigit() and last.isdigit() and 1 <= int(first) <= int(last)):
        raise typer.BadParameter(
            f"expected two whole numbers from 1 on, such as 2:12, got {text!r}", param_hint="-k"
        )
    return list(range(int(first), int(last) + 1))
