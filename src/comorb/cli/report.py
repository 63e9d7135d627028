"""The report command: the report of a run, written again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from comorb.cli.options import (
    Force,
    Language,
    MinCell,
    OwnRecords,
    Protected,
    Quiet,
    RunFolder,
    SplitBy,
    least_count,
)

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="An .html or .pdf file; else report.html or report.pdf.",
    ),
]
Pack = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="A board pack instead: board.pdf, board.pptx and board.xlsx."),
]
Day = Annotated[
    str, typer.Option("--date", metavar="DAY", help="The day, for print: 2026-01-31, or today.")
]
Star = Annotated[
    list[str] | None,
    typer.Option(metavar="OUTCOME", help="Print this outcome and other starred. Repeatable."),
]


def report(  # noqa: PLR0913 - one parameter for each option
    run: RunFolder,
    output: Output = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="A PDF for print.")] = False,
    pack: Pack = None,
    language: Language = "en",
    site: Annotated[str, typer.Option(metavar="TEXT", help="The site, for print.")] = "",
    day: Day = "",
    star: Star = None,
    split_by: SplitBy = None,
    records: OwnRecords = None,
    protected: Protected = False,
    min_cell: MinCell = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write the report of a run again, for print or to share.

    The HTML file opens from disk and asks nobody for anything.

    Example: comorb report heart-failure --protected -o to-share.html
    """
    from comorb.runs.report import ReportRequest, pack_run, report_run

    request = ReportRequest(
        language=language,
        site=site,
        day=day,
        min_cell=least_count(protected, min_cell),
        split_by=tuple(split_by or ()),
        records=records,
        starred=tuple(star or ()),
    )
    if pack is not None:
        if output is not None or pdf:
            raise typer.BadParameter(
                "a pack has names of its own; leave -o and --pdf out", param_hint="--pack"
            )
        written = pack_run(run, pack, request, force)
        told = f"Board pack: {', '.join(map(str, written))}"
    else:
        path = output or Path("report")
        if pdf or output is None:
            path = path.with_suffix(".pdf" if pdf else ".html")
        report_run(run, path, request, force)
        told = f"Report: {path}"
    if not quiet:
        typer.echo(told)
