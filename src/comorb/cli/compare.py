"""The compare command: two runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from comorb.cli import options


@options.spec_options
def compare(
    one: Annotated[
        Path,
        typer.Argument(metavar="RUN_A", show_default=False, help="The folder of the first run."),
    ],
    two: Annotated[
        Path,
        typer.Argument(metavar="RUN_B", show_default=False, help="The folder of the second run."),
    ],
    chart: options.Chart = None,
    force: options.Force = False,
    *,
    counts: options.Counts,
    as_json: options.Json = False,
) -> None:
    """Compare the clusters of two runs.

    Each cluster is matched with the one that is most like it; a word and a number say how good the
    match is, and outcomes that differ beyond chance are listed. Runs on the same records are also
    compared record by record.

    Example: comorb compare heart-failure-2009 heart-failure-2010
    """
    from comorb.cli.render import save_chart, show, show_comparison
    from comorb.cli.summaries import compare_summary
    from comorb.runs.compare import compare_runs
    from comorb.views.charts import draw_comparison

    compared = compare_runs(one, two, counts.least)
    if chart:
        axes = draw_comparison(compared.one, compared.two, comparison=compared.comparison)
        save_chart(axes, chart, force)
    show(compare_summary(compared), show_comparison, as_json)
