"""The report command: the report of a run, written again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from comorb.cli.options import Force, MinCell, Protected, Quiet, RunFolder, least_count


def report(
    run: RunFolder,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="An .html or .pdf file; else report.html or report.pdf.",
        ),
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="A PDF for print.")] = False,
    protected: Protected = False,
    min_cell: MinCell = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write the report of a run again, for print or to share.

    The HTML file opens from disk and asks nobody for anything.

    Example: comorb report heart-failure --protected -o to-share.html
    """
    from comorb.insight.runs.folder import write_report

    path = output or Path("report")
    if pdf or output is None:
        path = path.with_suffix(".pdf" if pdf else ".html")
    write_report(run, path, least_count(protected, min_cell), force)
    if not quiet:
        typer.echo(f"Report: {path}")
