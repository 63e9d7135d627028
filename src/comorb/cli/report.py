"""The report command: the report of a run, written again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from comorb.cli import options

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


@options.spec_options
def report(  # noqa: PLR0913 - one parameter for each option
    run: options.RunFolder,
    output: Output = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="A PDF for print.")] = False,
    pack: Pack = None,
    *,
    request: options.Report,
    counts: options.Counts,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Write the report of a run again, for print or to share.

    The HTML file opens from disk and asks nobody for anything.

    Example: comorb report heart-failure --protected -o to-share.html
    """
    from comorb.runs.report import pack_run, report_run

    request = replace(request, min_cell=counts.least)
    if pack is not None:
        if output is not None or pdf:
            problem = "a pack has names of its own; leave -o and --pdf out"
            raise typer.BadParameter(problem, param_hint="--pack")
        text = f"Board pack: {', '.join(map(str, pack_run(run, pack, request, force)))}"
    else:
        path = output or Path("report")
        if pdf or output is None:
            path = path.with_suffix(".pdf" if pdf else ".html")
        report_run(run, path, request, force)
        text = f"Report: {path}"
    if not quiet:
        typer.echo(text)
