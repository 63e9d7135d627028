"""The stability command: whether clusters come out again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from comorb.cli import options

if TYPE_CHECKING:
    from comorb.records.preparation import Preparation


@options.cohort_options
def stability(  # noqa: PLR0913 - one parameter for each option
    records: options.Records,
    preparation: Preparation,
    clusters: options.Clusters = "auto",
    repeats: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many pairs of overlapping parts.")
    ] = 3,
    protected: options.Protected = False,
    min_cell: options.MinCell = None,
    memory: options.Memory = None,
    engine: options.Engine = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """See how well clusters come out again in parts of the records.

    The agreement of two parts on the records they share is the adjusted Rand index: 1 for the
    same clusters, 0 for chance. A cluster's own stability is the share of it that comes back.

    Example: comorb stability visits.csv --having 428 -k 5
    """
    from comorb.cli.output import show, show_notes, show_stability, shown_progress
    from comorb.cli.summaries import stability_summary
    from comorb.engines import open_engine
    from comorb.insight.runs.cohorts import open_cohort
    from comorb.insight.runs.run import Request, measure_stability

    request = Request(options.number_of_clusters(clusters), preparation, repeats=repeats)
    with (
        shown_progress(quiet) as tell,
        open_engine(engine or "threads") as executor,
        open_cohort(
            records, preparation, memory=memory, executor=executor if engine else None, tell=tell
        ) as cohort,
    ):
        profile, measured = measure_stability(cohort, request, executor, tell)
    if least := options.least_count(protected, min_cell):
        profile = profile.protected(least)
    summary = stability_summary(profile, measured)
    show_notes(summary["notes"])
    show(summary, show_stability, as_json, quiet)
