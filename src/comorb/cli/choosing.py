"""How many clusters, and how stable they are: choose and stability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from comorb.cli.options import (
    Chart,
    Clusters,
    Force,
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
def choose(  # noqa: PLR0913 - one parameter for each option
    records: Records,
    preparation: Preparation,
    clusters: Annotated[
        str, typer.Option("--clusters", "-k", metavar="FROM:TO", help="The numbers to try.")
    ] = "1:20",
    chart: Chart = None,
    force: Force = False,
    memory: Memory = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find out how many clusters records hold.

    Of the numbers whose clusters come out again in parts of the records, the recommended one
    explains the records best once the complexity of the model is counted.

    Example: comorb choose visits.csv --having 428 --chart choice.png
    """
    from comorb.cli.output import progress, save_chart, show_choice, show_json
    from comorb.cli.summaries import choice_summary
    from comorb.insight.charts import choice_of_k
    from comorb.insight.run import sweep

    ks = _range(clusters)
    with progress(quiet) as tell:
        found = sweep(records, ks, preparation, memory=memory, tell=tell)
    if chart:
        save_chart(choice_of_k(found), chart, force, quiet)
    if as_json:
        show_json(choice_summary(found))
    elif not quiet:
        show_choice(choice_summary(found))


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
    from comorb.insight.run import run

    k = number_of_clusters(clusters)
    with progress(quiet) as tell:
        found = run(records, k, preparation, repeats=repeats, memory=memory, tell=tell)
    if as_json:
        show_json(stability_summary(found))
    elif not quiet:
        show_stability(stability_summary(found))


def _range(text: str) -> list[int]:
    first, _, last = text.partition(":")
    if not (first.isdigit() and last.isdigit() and 1 <= int(first) <= int(last)):
        raise typer.BadParameter(
            f"expected two whole numbers from 1 on, such as 2:12, got {text!r}", param_hint="-k"
        )
    return list(range(int(first), int(last) + 1))
