"""The fit command: from records to clusters."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from comorb.cli import options


@options.spec_options
def fit(  # noqa: PLR0913 - one parameter for each option
    records: options.Records,
    output: options.Directory = Path("comorb-run"),
    force: options.Force = False,
    *,
    run: options.Run,
    counts: options.Counts,
    work: options.Work,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    cohort: options.Cohort,
) -> None:
    """Find the clusters of records, and write a model and a report.

    DIR gets model.comorb (for assign), assignments.csv (the cluster of each record),
    profile.json (all that is known about the clusters) and report.html (to read and to show;
    with --protected, to share).
    With --memory or --engine a run that was interrupted goes on when it is started again.

    Example: comorb fit visits.csv --having 428 -k 5 -o heart-failure
    """
    from comorb.cli.render import show_run, shown_progress
    from comorb.records.auxiliary import split_sources
    from comorb.runs.run import fit_records

    main, auxiliary = split_sources(records)
    named = {kind: _without_secrets(source) for kind, source in auxiliary.items()}
    run = replace(
        run,
        preparation=cohort,
        title=run.title or Path(_without_secrets(main)).name,
        protected=counts.least,
    )
    run = replace(run, command=run.words(_without_secrets(main), named))
    with shown_progress(quiet) as report:
        profile = fit_records(records, output, run, **vars(work), force=force, report=report)
    shown = profile.protected(run.protected) if run.protected else profile
    show_run(shown, output, as_json, quiet)


def _without_secrets(text: str) -> str:
    """Return a URL without its user and password; other texts stay as they are."""
    if "://" not in text:
        return text
    bare = re.sub(r"(password|user)=[^&\s]*", r"\1=…", text)
    return re.sub(r"://[^/?\s]*@", "://…@", bare)
