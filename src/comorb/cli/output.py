"""What commands print: tables for people, JSON for scripts, progress on standard error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

Tell = Callable[[str], None]


@contextmanager
def progress(quiet: bool = False) -> Iterator[Tell]:
    """Show what is being done and for how long, on a terminal, until the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    shown = Progress(
        TextColumn("{task.description}"),
        BarColumn(pulse_style="cyan"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    )
    with shown:
        task = shown.add_task("", total=None)
        yield lambda text: shown.update(task, description=text)


def show_json(value: Any) -> None:
    """Print plain values as JSON."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
