"""The simulate command: records to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from comorb.cli.options import Force, Quiet

BLOCK = 65_536


def simulate(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="A .csv or .parquet file.")
    ],
    records: Annotated[
        int, typer.Option("--records", "-n", metavar="N", help="How many records.")
    ] = 10_000,
    layout: Annotated[
        str, typer.Option(metavar="KIND", help="wide (a row a record) or long (a row a code).")
    ] = "wide",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write simulated records to a file.

    They follow the eleven clusters of the paper's two studies, with age, sex, length of stay
    and death. A smaller file is the beginning of a larger one.

    Example: comorb simulate visits.csv -n 100000
    """
    from comorb.cli.render import tracked
    from comorb.records.datasets import region
    from comorb.records.export import export

    blocks = region(records, layout)  # type: ignore[arg-type]
    shown = tracked(blocks, f"Writing {records:,} records", -(-records // BLOCK), quiet)
    export(shown, file, force)
    if not quiet:
        typer.echo(f"{records:,} simulated records: {file}")
