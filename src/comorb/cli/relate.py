"""The relate command: what follows from clusters, and what leads to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from comorb.cli import options
from comorb.cli.sources import kinds_of, sources_of

if TYPE_CHECKING:
    from comorb.insight.runs.relate import RelatedRecords
    from comorb.records.preparation import Preparation

METHODS = ("bch", "ml", "naive")


Outcomes = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="What follows: died; one value, as discharge=died; a mean, as gpa=number. Repeatable.",
    ),
]
Predictors = Annotated[
    str | None,
    typer.Option(metavar="NAME,NAME", help="Covariates that lead to a cluster, as age,sex."),
]
Survival = Annotated[
    str | None,
    typer.Option(metavar="TIME,EVENT", help="Two covariates: how long, and whether it ended."),
]
Within = Annotated[
    bool,
    typer.Option(
        "--within", help="Also regress numbers, and yes or no, on the predictors in each cluster."
    ),
]
Method = Annotated[
    str, typer.Option(metavar="METHOD", help="How outcomes are corrected: bch, ml or naive.")
]
Reference = Annotated[
    int | None,
    typer.Option(metavar="N", help="The cluster to hold others against; the largest if none."),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Also write a .csv or .parquet file."),
]
Every = Annotated[
    bool, typer.Option("--all", help="Also take records that the model's rules would leave out.")
]


def relate(  # noqa: PLR0913 - one parameter for each option
    run: options.RunFolder,
    records: options.Records,
    outcome: Outcomes = None,
    predictors: Predictors = None,
    survival: Survival = None,
    within: Within = False,
    method: Method = "bch",
    reference: Reference = None,
    output: Output = None,
    every: Every = False,
    beside: options.With = None,
    kinds: options.Kinds = None,
    table: options.Table = None,
    layout: options.LayoutKind = None,
    column: options.Columns = None,
    protected: options.Protected = False,
    min_cell: options.MinCell = None,
    memory: options.Memory = None,
    engine: options.Engine = None,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Relate outcomes and predictors to clusters, corrected for doubt.

    What is doubtful is membership: a record of one cluster may be taken for one of another, and
    how often is known. Outcomes get means or shares in each cluster (BCH), predictors odds ratios
    against a cluster (three-step maximum likelihood), times Kaplan-Meier curves.

    Example: comorb relate heart-failure visits.csv --predictors age,sex --outcome died
    """
    from comorb.cli.output import shown_progress
    from comorb.insight.runs.relate import Question, relate_records

    _check(method, output, force)
    names = tuple(outcome or ()), _names(predictors, "--predictors"), _pair(survival)
    corrected = cast("Literal['bch', 'ml', 'naive']", method)
    question = Question(*names, within=within, method=corrected, reference=reference)
    reading = _reading(table, layout, column, kinds)
    with shown_progress(quiet) as tell:
        sources = sources_of(records, beside, kinds_of(kinds))
        ways: dict[str, Any] = {"every": every, "memory": memory, "engine": engine, "tell": tell}
        found = relate_records(run, sources, question, reading, **ways)
    _tell(found, output, options.least_count(protected, min_cell), (force, as_json, quiet))


def _check(method: str, output: Path | None, force: bool) -> None:
    from comorb.records.export import check_export

    if method not in METHODS:
        raise typer.BadParameter(
            f"expected one of {', '.join(METHODS)}, got {method!r}", param_hint="--method"
        )
    if output is not None:
        check_export(output, force)


def _reading(
    table: str | None, layout: str | None, column: list[str] | None, kinds: str | None
) -> Preparation | None:
    from comorb.records.preparation import Preparation

    reading = Preparation(
        table=table,
        layout=options.layout_of(layout, column),
        kinds=kinds_of(kinds),
        layouts=options.layouts_of(column),
    )
    return reading if reading != Preparation() else None


def _tell(
    found: RelatedRecords, output: Path | None, least: int, ways: tuple[bool, bool, bool]
) -> None:
    """Write and print what was found; ``ways`` are force, JSON and quiet."""
    from comorb.cli.output import show, show_notes
    from comorb.cli.relations import relation_batch, relations_summary, show_relations
    from comorb.records.export import export

    force, as_json, quiet = ways
    summary = relations_summary(found, least)
    if output is not None:
        export([relation_batch(summary)], output, force)
        summary |= {"file": str(output)}
    show_notes(summary["notes"])
    show(summary, show_relations, as_json, quiet)


def _names(text: str | None, hint: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in (text or "").split(",") if name.strip())
    if text is not None and not names:
        raise typer.BadParameter("expected names of covariates, such as age,sex", param_hint=hint)
    return names


def _pair(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    names = _names(text, "--survival")
    if len(names) != 2:
        raise typer.BadParameter(
            f"expected two names, such as days,died, got {text!r}", param_hint="--survival"
        )
    return names[0], names[1]
