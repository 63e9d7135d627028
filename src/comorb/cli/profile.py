"""The profile command: the clusters of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from comorb.cli import options

Lambda = Annotated[
    float,
    typer.Option(
        "--lambda",
        metavar="λ",
        help="Relevance: 0 puts the most specific diagnoses first, 1 the most frequent.",
    ),
]


@options.spec_options
def profile(  # noqa: PLR0913 - one parameter for each option
    run: options.RunFolder,
    cluster: Annotated[
        int | None, typer.Option(metavar="N", help="Show the cluster of this number in detail.")
    ] = None,
    lam: Lambda = 0.6,
    top: Annotated[
        int | None, typer.Option(metavar="N", help="How many diagnoses a cluster: 5, or 20 of one.")
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="N=TEXT", help="Rename a cluster of the run, for good. Repeatable."),
    ] = None,
    *,
    request: options.View,
    counts: options.Counts,
    as_json: options.Json = False,
) -> None:
    """Show the clusters of a run.

    Example: comorb profile heart-failure --cluster 2
    """
    from comorb.cli.render import show, show_cluster, show_profile
    from comorb.cli.summaries import cluster_summary, profile_summary
    from comorb.runs.folder import load_profile, rename
    from comorb.runs.report import board_of

    numbers = load_profile(run).numbers
    _check(cluster, numbers, "--cluster")
    if name:
        names = dict(_numbered(text) for text in name)
        for number in names:
            _check(number, numbers, "--name")
        rename(run, names)
    shown = board_of(run, replace(request, min_cell=counts.least)).profile
    if cluster is None:
        show(profile_summary(shown, lam, top or 5), show_profile, as_json)
    else:
        show(cluster_summary(shown, cluster, lam, top or 20), show_cluster, as_json)


def _numbered(text: str) -> tuple[int, str]:
    number, _, name = text.partition("=")
    if not number.isdigit() or not name.strip():
        problem = f"expected the number of a cluster and a name, such as 2=Kidney, got {text!r}"
        raise typer.BadParameter(problem, param_hint="--name")
    return int(number), name.strip()


def _check(cluster: int | None, numbers: tuple[int, ...], option: str) -> None:
    if cluster is not None and cluster not in numbers:
        known = ", ".join(map(str, numbers))
        problem = f"expected one of the clusters {known}, got {cluster}"
        raise typer.BadParameter(problem, param_hint=option)
