"""From clusters to meaning: profile, report and compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from comorb.cli.options import Chart, Force, Json, Quiet

RunFolder = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", show_default=False, help="The folder of a run, or its profile.json."
    ),
]
MinCell = Annotated[
    int,
    typer.Option(
        metavar="N", help="Hide counts under N, and those from which they could be worked out."
    ),
]


def profile(
    run: RunFolder,
    cluster: Annotated[
        int | None, typer.Option(metavar="N", help="Show the cluster of this number in detail.")
    ] = None,
    lam: Annotated[
        float,
        typer.Option(
            "--lambda",
            metavar="λ",
            help="Relevance: 0 puts the most specific diagnoses first, 1 the most frequent.",
        ),
    ] = 0.6,
    top: Annotated[
        int | None, typer.Option(metavar="N", help="How many diagnoses a cluster: 5, or 20 of one.")
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="N=TEXT", help="Rename a cluster of the run, for good. Repeatable."),
    ] = None,
    min_cell: MinCell = 0,
    as_json: Json = False,
) -> None:
    """Show the clusters of a run.

    Example: comorb profile heart-failure --cluster 2
    """
    from comorb.cli.output import show_cluster, show_json, show_profile
    from comorb.cli.summaries import cluster_summary, profile_summary
    from comorb.insight.saved import load_profile, rename

    found = load_profile(run)
    _check(cluster, found.numbers, "--cluster")
    if name:
        names = dict(_numbered(text) for text in name)
        for number in names:
            _check(number, found.numbers, "--name")
        found = rename(run, names)
    found = found.suppressed(min_cell)
    if cluster is None:
        summary, show = profile_summary(found, lam, top or 5), show_profile
    else:
        summary, show = cluster_summary(found, cluster, lam, top or 20), show_cluster
    if as_json:
        show_json(summary)
    else:
        show(summary)


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
    min_cell: MinCell = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write the report of a run again, for print or without small counts.

    The HTML file opens from disk and asks nobody for anything.

    Example: comorb report heart-failure --min-cell 11 -o to-share.html
    """
    from comorb.insight.saved import write_report

    path = output or Path("report")
    if pdf or output is None:
        path = path.with_suffix(".pdf" if pdf else ".html")
    write_report(run, path, min_cell, force)
    if not quiet:
        typer.echo(f"Report: {path}")


def compare(
    one: Annotated[
        Path,
        typer.Argument(metavar="RUN_A", show_default=False, help="The folder of the first run."),
    ],
    two: Annotated[
        Path,
        typer.Argument(metavar="RUN_B", show_default=False, help="The folder of the second run."),
    ],
    chart: Chart = None,
    force: Force = False,
    min_cell: MinCell = 0,
    as_json: Json = False,
) -> None:
    """Compare the clusters of two runs.

    Each cluster is matched with the one that is most like it. Runs on the same records are also
    compared record by record.

    Example: comorb compare heart-failure-2009 heart-failure-2010
    """
    from comorb.cli.output import save_chart, show_comparison, show_json
    from comorb.cli.summaries import compare_summary
    from comorb.insight.charts import compare as draw
    from comorb.insight.saved import compare_runs

    found = compare_runs(one, two, min_cell)
    if chart:
        save_chart(draw(found.one, found.two, comparison=found.comparison), chart, force)
    summary = compare_summary(found)
    if as_json:
        show_json(summary)
    else:
        show_comparison(summary)


def _numbered(text: str) -> tuple[int, str]:
    number, _, name = text.partition("=")
    if not number.isdigit() or not name.strip():
        raise typer.BadParameter(
            f"expected the number of a cluster and a name, such as 2=Kidney, got {text!r}",
            param_hint="--name",
        )
    return int(number), name.strip()


def _check(cluster: int | None, numbers: tuple[int, ...], option: str) -> None:
    if cluster is not None and cluster not in numbers:
        known = ", ".join(map(str, numbers))
        raise typer.BadParameter(
            f"expected one of the clusters {known}, got {cluster}", param_hint=option
        )
