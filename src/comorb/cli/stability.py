"""The stability command: whether clusters come out again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from comorb.cli.options import (
    Clusters,
    Json,
    Memory,
    Quiet,
    Records,
    cohort_options,
    number_of_clusters,
)

if TYPE_CHECKING:
    from comorb.records.preparation import Preparation


@cohort_options
def stability(
    records: Records,
    preparation: Preparation,
    clusters: Clusters = "auto",
    repeats: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many pairs of overlapping parts.")
    ] = 3,
    memory: Memory = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """See how well clusters come out again in parts of the records.

    The agreement of two parts on the records they share is the adjusted Rand index: 1 for the
    same clusters, 0 for chance. A cluster's own stability is the share of it that comes back.

    Example: comorb stability visits.csv --having 428 -k 5
    """
    from comorb.cli.output import progress, show_json, show_stability
    from comorb.cli.summaries import stability_summary
    from comorb.insight.runs.run import run

    k = number_of_clusters(clusters)
    with progress(quiet) as tell:
        found = run(records, k, preparation, repeats=repeats, memory=memory, tell=tell)
    if as_json:
        show_json(stability_summary(found))
    elif not quiet:
        show_stability(stability_summary(found))
