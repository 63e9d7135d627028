"""The relate command: what follows from clusters, and what leads to them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from comorb.cli import options
from comorb.cli.sources import kinds_of, sources_of

METHODS = ("bch", "ml", "naive")


def relate(  # noqa: PLR0913 - one parameter for each option
    run: options.RunFolder,
    records: options.Records,
    outcome: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A covariate that follows, such as died. Repeatable."),
    ] = None,
    predictors: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME", help="Covariates that lead to a cluster, as age,sex."),
    ] = None,
    survival: Annotated[
        str | None,
        typer.Option(metavar="TIME,EVENT", help="Two covariates: how long, and whether it ended."),
    ] = None,
    within: Annotated[
        bool,
        typer.Option(
            "--within",
            help="Also regress numbers, and yes or no, on the predictors in each cluster.",
        ),
    ] = False,
    method: Annotated[
        str, typer.Option(metavar="METHOD", help="How outcomes are corrected: bch, ml or naive.")
    ] = "bch",
    reference: Annotated[
        int | None,
        typer.Option(metavar="N", help="The cluster to hold others against; the largest if none."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Also write a .csv or .parquet file."),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Also take records that the model's rules would leave out."),
    ] = False,
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
    """Relate outcomes and predictors to the clusters of a run.

    Corrected for uncertain membership: a record of one cluster may be taken for one of another, and
    how often is known. Outcomes get means or shares in each cluster (BCH), predictors odds ratios
    against a cluster (three-step maximum likelihood), times Kaplan-Meier curves.

    Example: comorb relate heart-failure visits.csv --predictors age,sex --outcome died
    """
    from comorb.cli.output import show, show_notes, shown_progress
    from comorb.cli.relations import relation_batch, relations_summary, show_relations
    from comorb.insight.runs.relate import Question, relate_records
    from comorb.records.export import check_export, export
    from comorb.records.preparation import Preparation

    if method not in METHODS:
        raise typer.BadParameter(
            f"expected one of {', '.join(METHODS)}, got {method!r}", param_hint="--method"
        )
    if output is not None:
        check_export(output, force)
    reading = Preparation(
        table=table,
        layout=options.layout_of(layout, column),
        kinds=kinds_of(kinds),
        layouts=options.layouts_of(column),
    )
    question = Question(
        outcomes=tuple(outcome or ()),
        predictors=_names(predictors, "--predictors"),
        survival=_pair(survival),
        within=within,
        method=cast("Literal['bch', 'ml', 'naive']", method),
        reference=reference,
    )
    with shown_progress(quiet) as tell:
        found = relate_records(
            run,
            sources_of(records, beside, reading.kinds),
            question,
            reading if reading != Preparation() else None,
            every=every,
            memory=memory,
            engine=engine,
            tell=tell,
        )
    summary = relations_summary(found, options.least_count(protected, min_cell))
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
