"""The stability command: whether clusters come out again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from comorb.cli.options import (
    Clusters,
    Engine,
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
def stability(  # noqa: PLR0913 - one parameter for each option
    records: Records,
    preparation: Preparation,
    clusters: Clusters = "auto",
    repeats: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many pairs of overlapping parts.")
    ] = 3,
    memory: Memory = None,
    engine: Engine = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """See how well clusters come out again in parts of the records.

    The agreement of two parts on the records they share is the adjusted Rand index: 1 for the
    same clusters, 0 for chance. A cluster's own stability is the share of it that comes back.

    Example: comorb stability visits.csv --having 428 -k 5
    """
    from comorb.cli.output import show_json, show_notes, show_stability, shown_progress
    from comorb.cli.summaries import stability_summary
    from comorb.engines import open_engine
    from comorb.insight.runs.cohorts import open_cohort
    from comorb.insight.runs.run import Request, measure_stability

    request = Request(number_of_clusters(clusters), preparation, repeats=repeats)
    with (
        shown_progress(quiet) as tell,
        open_engine(engine or "threads") as executor,
        open_cohort(
            records, preparation, memory=memory, outside=engine is not None, tell=tell
        ) as cohort,
    ):
        profile, measured = measure_stability(cohort, request, executor, tell)
    summary = stability_summary(profile, measured)
    show_notes(summary["notes"])
    if as_json:
        show_json(summary)
    elif not quiet:
        show_stability(summary)
