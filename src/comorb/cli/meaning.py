"""From clusters to meaning: profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from comorb.cli.options import Json

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
        int | None, typer.Option(metavar="N", help="Show this cluster in detail, from 1 on.")
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
    min_cell: MinCell = 0,
    as_json: Json = False,
) -> None:
    """Show the clusters of a run.

    Example: comorb profile heart-failure --cluster 2
    """
    from comorb.cli.output import show_cluster, show_json, show_profile
    from comorb.cli.summaries import cluster_summary, profile_summary
    from comorb.insight.run import load_profile

    found = load_profile(run).suppressed(min_cell)
    if cluster is not None and not 1 <= cluster <= found.k:
        raise typer.BadParameter(
            f"expected a cluster from 1 to {found.k}, got {cluster}", param_hint="--cluster"
        )
    if cluster is None:
        summary, show = profile_summary(found, lam, top or 5), show_profile
    else:
        summary, show = cluster_summary(found, cluster, lam, top or 20), show_cluster
    if as_json:
        show_json(summary)
    else:
        show(summary)
