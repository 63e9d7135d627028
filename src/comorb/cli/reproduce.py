"""The paper's figures and tables, made again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from comorb.cli.options import Quiet


def reproduce(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PART",
            show_default=False,
            help="exact, ari, time, studies, bias or scaling; all of them where none is named.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few seeds and small sizes: a look in a minute or two.")
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="For results, figures and the page.")
    ] = Path("results"),
    data: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The National Hospital Discharge Survey 2010, as CSV."),
    ] = Path("nhds2010.csv.gz"),
    quiet: Quiet = False,
) -> None:
    """Make the paper's figures and tables again, and judge its claims.

    Every result is kept as it is made, so that a run that was stopped goes on where it was.

    Example: comorb reproduce --quick
    """
    from rich.progress import BarColumn, MofNCompleteColumn

    from comorb.cli.render import bars
    from comorb_reproduction.reproduce import reproduce as run

    with bars(quiet, BarColumn(), MofNCompleteColumn()) as shown:
        tasks = {}

        def show(part: str, done: int, total: int) -> None:
            if part not in tasks:
                tasks[part] = shown.add_task(part, total=total)
            shown.update(tasks[part], completed=done, total=total)

        page = run(parts or (), quick=quick, out=out, data=data, progress=show)
    if not quiet:
        typer.echo(f"The page: {page}")
