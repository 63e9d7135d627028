"""The stability command: whether clusters come out again."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from comorb.cli import options


@options.spec_options
def stability(  # noqa: PLR0913 - one parameter for each option
    records: options.Records,
    *,
    run: options.Model,
    repeats: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many pairs of overlapping parts.")
    ] = 3,
    counts: options.Counts,
    work: options.Work,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    cohort: options.Cohort,
) -> None:
    """See how well clusters come out again in parts of the records.

    The agreement of two parts on the records they share is the adjusted Rand index: 1 for the
    same clusters, 0 for chance. A cluster's own stability is the share of it that comes back.

    Example: comorb stability visits.csv --having 428 -k 5
    """
    from comorb.cli.render import show, show_stability, shown_progress
    from comorb.cli.summaries import stability_summary
    from comorb.runs.cohorts import open_records
    from comorb.runs.run import measure_stability

    run = replace(run, preparation=cohort, repeats=repeats)
    with (
        shown_progress(quiet) as report,
        open_records(records, cohort, **vars(work), report=report) as (chosen, executor),
    ):
        profile, measured = measure_stability(chosen, run, executor, report)
    shown = profile.protected(counts.least) if counts.least else profile
    show(stability_summary(shown, measured), show_stability, as_json, quiet, notes=True)
