"""The demo command: the whole job on a built-in cohort."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from comorb.cli import options


def demo(
    output: options.Directory = Path("comorb-demo"),
    serve: Annotated[
        bool, typer.Option("--serve", help="Open the explorer on the cohort instead.")
    ] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Do the whole job on a built-in cohort of heart-failure patients.

    23,154 simulated records after the paper's first study, always the same: the clusters are
    printed, and the model and the report are written. Results of an earlier demo are replaced.

    Example: comorb demo
    """
    if serve:
        from comorb.cli.serve import run_explorer
        from comorb.web.server.app import Settings

        run_explorer(Settings(output / "workspace"), "127.0.0.1", 8042, data="heart-failure")
        return
    from comorb.cli.render import show_run, shown_progress
    from comorb.records.datasets import heart_failure
    from comorb.runs.run import fit_records
    from comorb.runs.spec import RunSpec

    request = RunSpec(5, title="Simulated heart failure", command="comorb demo")
    with shown_progress(quiet) as report:
        profile = fit_records(heart_failure(), output, request, force=True, report=report)
    show_run(profile, output, as_json, quiet)
