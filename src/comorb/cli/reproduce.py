"""``comorb reproduce``: the paper's figures and tables, made again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Parts = Annotated[
    list[str] | None,
    typer.Argument(help="Parts by name: exact, ari, time, studies, bias, scaling. All by default."),
]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer seeds and sizes: minutes, not hours.")]
Out = Annotated[Path, typer.Option("--out", help="Folder for the CSV files, figures and page.")]


Data = Annotated[
    Path, typer.Option("--data", help="The National Hospital Discharge Survey 2010, as CSV.")
]


def reproduce(
    parts: Parts = None,
    quick: Quick = False,
    out: Out = Path("results"),
    data: Data = Path("nhds2010.csv.gz"),
) -> None:
    """Make the paper's figures and tables again, and judge its claims.

    A run that was stopped goes on where it was.

    Example: comorb reproduce --quick
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from comorb.experiments.reproduce import reproduce as run

    columns = (TextColumn("{task.description:<8}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks = {}

        def show(part: str, done: int, total: int) -> None:
            if part not in tasks:
                tasks[part] = bars.add_task(part, total=total)
            bars.update(tasks[part], completed=done, total=total)

        page = run(parts or (), quick=quick, out=out, data=data, progress=show)
    typer.echo(page)
