"""The choose command: how many clusters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from comorb.cli import options

if TYPE_CHECKING:
    from comorb.runs.choose import ClassTables


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
    protected: options.Protected = False,
    min_cell: options.MinCell = None,
    memory: options.Memory = None,
    engine: options.Engine = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    *,
    cohort: options.Cohort,
) -> None:
    """Find out how many clusters records hold.

    Of the numbers whose records lie mostly in clusters that come out again in parts of the records,
    the recommended one explains the records best once the complexity of the model is counted.

    Example: comorb choose visits.csv --having 428 --chart choice.png
    """
    from comorb.cli.render import save_chart, show, show_choice, show_notes, shown_progress
    from comorb.cli.summaries import choice_summary
    from comorb.engines import open_engine
    from comorb.runs.choose import class_tables, splits
    from comorb.runs.cohorts import open_cohort
    from comorb.runs.run import choose_number
    from comorb.views.charts import draw_choice

    ks = None if clusters is None else _range(clusters)
    least = options.least_count(protected, min_cell)
    _check(lca, blrt, output)
    tables = None
    with (
        shown_progress(quiet) as report,
        open_engine(engine or "threads") as executor,
        open_cohort(
            records, cohort, memory=memory, executor=executor if engine else None, report=report
        ) as chosen,
    ):
        choice = choose_number(chosen, ks, executor, report)
        found = splits(choice, chosen.codes, chosen.names, chosen.system)
        if lca:
            draws = (blrt, 60 * minutes)
            tables = class_tables(choice, chosen, executor, draws, min_cell=least, report=report)
    summary = choice_summary(choice, chosen.ledger, found, least)
    if tables is not None:
        summary |= _told(tables, output, force)
    show_notes(summary["notes"])
    if chart:
        save_chart(draw_choice(choice), chart, force, quiet)
    show(summary, show_choice, as_json, quiet)


def _check(lca: bool, blrt: int, output: Path | None) -> None:
    if (blrt or output) and not lca:
        raise typer.BadParameter("--blrt and --output go with --lca", param_hint="--lca")


def _told(tables: ClassTables, output: Path | None, force: bool) -> dict[str, Any]:
    """Write the tables of latent classes, and return what is to be told of them."""
    from comorb.views.sheets import save_sheets

    files = [] if output is None else save_sheets(tables.sheets, output, force)
    told = {"lca": tables.sheets, "methods": tables.methods}
    return told | ({"files": [str(file) for file in files]} if files else {})


def _range(text: str) -> list[int]:
    first, _, last = text.partition(":")
    if not (first.isdigit() and last.isdigit() and 1 <= int(first) <= int(last)):
        raise typer.BadParameter(
            f"expected two whole numbers from 1 on, such as 2:12, got {text!r}", param_hint="-k"
        )
    return list(range(int(first), int(last) + 1))
