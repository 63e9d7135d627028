"""The relate command: outcomes and predictors of clusters, as values, rows and tables."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from comorb.cli import options
from comorb.messages import Message
from comorb.profiles.rounded import round_count, round_notes
from comorb.records.values import yes_no

if TYPE_CHECKING:
    from comorb.model.arrays import Floats
    from comorb.model.relations.classification import Test
    from comorb.model.relations.predictors import PredictorRelation, RegressionRelation
    from comorb.model.relations.survival import SurvivalRelation
    from comorb.runs.relate import RelatedOutcome, RelatedRecords

Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Also write a .csv or .parquet file."),
]
Every = Annotated[
    bool, typer.Option("--all", help="Also take records that the model's rules would leave out.")
]


@options.spec_options
def relate(  # noqa: PLR0913 - one parameter for each option
    run: options.RunFolder,
    records: options.Records,
    *,
    question: options.Asked,
    output: Output = None,
    every: Every = False,
    reading: options.Source,
    counts: options.Counts,
    work: options.Work,
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
    from comorb.cli.render import show, shown_progress
    from comorb.records.export import check_export, export
    from comorb.runs.relate import relate_records

    if output is not None:
        check_export(output, force)
    with shown_progress(quiet) as report:
        ways: dict[str, Any] = {**vars(work), "every": every, "report": report}
        found = relate_records(run, records, question, options.stated(reading), **ways)
    summary = relations_summary(found, counts.least)
    if output is not None:
        export([relation_batch(summary)], output, force)
        summary |= {"file": str(output)}
    show(summary, show_relations, as_json, quiet, notes=True)


DIGITS = 2  # significant ones of protected figures
# A share and its error with more digits than this could be solved for the count and the records.
ERRORS = {"error": 1, "naive_error": 1}


def relations_summary(found: RelatedRecords, least: int = 0) -> dict[str, Any]:
    """Return what was related to clusters, as plain values.

    With ``least`` numbers of records are rounded, figures have two digits and errors one. An
    outcome, a regression or a curve of which any count is smaller is suppressed: what is corrected
    mixes the counts of all clusters.
    """
    relations = found.relations
    notes = list(relations.notes)
    outcomes, held = [], []
    for one in relations.outcomes:
        if (one.counts < least).any():
            held.append(one.name)
        else:
            outcomes.append(_outcome(one, found.numbers, least))
    predicted, curves = relations.predictors, relations.survival
    if predicted is not None and (relations.sizes < least).any():
        held += list(predicted.names)
        predicted = None
    if curves is not None and (relations.events < least).any():
        held.append(Message("relate.curves"))
        curves = None
    notes += [Message("relate.suppressed", name=name, least=least) for name in held]
    sizes = [int(size) for size in relations.sizes]
    return {
        "clusters": [
            {"cluster": number, "name": name, "records": round_count(n, least) if least else n}
            for number, name, n in zip(found.numbers, found.clusters, sizes, strict=True)
        ],
        "min_cell": least,
        "notes": [*found.ledger.notes, *notes] if not least else [*round_notes(notes, least)],
        "classification": _plain(relations.classification.matrix, least),
        "outcomes": outcomes,
        "predictors": None if predicted is None else _predictors(predicted, found.numbers, least),
        "survival": None if curves is None else _curves(curves, found.numbers, least),
    }


def _plain(values: Floats, least: int, digits: int = DIGITS) -> Any:
    if not least:
        return np.round(values, 9).tolist()
    if values.ndim:
        return [_plain(one, least, digits) for one in values]
    return _short(float(values), digits)


def _short(value: float, digits: int = DIGITS) -> float:
    return float(f"{value:.{digits}g}")


def _named(names: Iterable[str], figures: Iterable[Any], least: int) -> dict[str, Any]:
    """Return figures by their names, with the digits that each may have."""
    return {
        name: _plain(np.asarray(one), least, ERRORS.get(name, DIGITS))
        for name, one in zip(names, figures, strict=True)
    }


def _test(test: Test, least: int) -> dict[str, Any]:
    figures = {"statistic": test.statistic, "p": test.p}
    shown = {name: _short(value) if least else value for name, value in figures.items()}
    return shown | {"df": test.df}


def _outcome(one: RelatedOutcome, numbers: tuple[int, ...], least: int) -> dict[str, Any]:
    relation = one.relation
    values = relation.values or ("mean",)
    names = ("estimate", "error", "low", "high", "naive", "naive_error")
    means = relation.means, relation.errors, relation.low, relation.high
    tables, k = (*means, relation.naive, relation.naive_errors), len(numbers)
    rows = [
        {"cluster": number, "value": value}
        | _named(names, (np.asarray(one).reshape(k, -1)[place, at] for one in tables), least)
        for place, number in enumerate(numbers)
        for at, value in enumerate(values)
    ]
    pairs = [
        {"first": numbers[pair.first], "second": numbers[pair.second]} | _test(pair, least)
        for pair in relation.pairwise
    ]
    return {
        "name": one.name,
        "kind": "share" if relation.values else "number",
        "method": relation.method,
        "rows": rows,
        "overall": _test(relation.overall, least),
        "pairwise": pairs,
        "within": None if one.regression is None else _within(one.regression, numbers, least),
    }


def _within(found: RegressionRelation, numbers: tuple[int, ...], least: int) -> list[Any]:
    parts = (found.coefficients, found.errors, found.low, found.high, found.naive)
    names = ("coefficient", "error", "low", "high", "naive")
    return [
        {"cluster": number, "covariate": covariate}
        | _named(names, (part[place, at] for part in parts), least)
        for place, number in enumerate(numbers)
        for at, covariate in enumerate(("intercept", *found.names))
    ]


def _predictors(found: PredictorRelation, numbers: tuple[int, ...], least: int) -> dict[str, Any]:
    ratios = found.odds_ratios, found.low, found.high, np.exp(found.naive)
    parts = (found.coefficients, found.errors, *ratios)
    names = ("coefficient", "error", "odds_ratio", "low", "high", "naive_odds_ratio")
    rows = [
        {"cluster": numbers[cluster], "predictor": predictor}
        | _named(names, (part[row, at] for part in parts), least)
        for row, cluster in enumerate(found.clusters)
        for at, predictor in enumerate(("intercept", *found.names))
    ]
    marginal = [
        {
            "predictor": name,
            "at": _plain(found.points[place, at], least),
            "shares": _plain(found.marginal[place, at], least),
        }
        for place, name in enumerate(found.names)
        for at in range(2)
    ]
    tests = {name: _test(test, least) for name, test in zip(found.names, found.tests, strict=True)}
    reference = numbers[found.reference]
    return {"reference": reference, "rows": rows, "tests": tests, "marginal": marginal}


def _curves(found: SurvivalRelation, numbers: tuple[int, ...], least: int) -> list[Any]:
    every = max(len(found.times) // 10, 1) if least else 1  # of protected curves a few points
    return [
        {
            "cluster": number,
            "median": median,
            "times": found.times[::every].tolist(),
            "survival": _plain(found.survival[place, ::every], least),
            "error": _plain(found.errors[place, ::every], least, ERRORS["error"]),
            "naive": _plain(found.naive[place, ::every], least),
        }
        for place, (number, median) in enumerate(zip(numbers, found.medians(), strict=True))
    ]


def relation_batch(summary: dict[str, Any]) -> pa.RecordBatch:
    """Return all estimates of a summary as rows of one file."""
    schema = pa.schema(
        [("cluster", pa.int64()), *((name, pa.string()) for name in ("what", "of", "value"))]
        + [(name, pa.float64()) for name in ("estimate", "error", "low", "high", "naive")]
    )  # which leaves out the other values of a row
    rows: list[dict[str, Any]] = []
    for outcome in summary["outcomes"]:
        name = outcome["name"]
        rows += [row | {"what": "outcome", "of": name} for row in outcome["rows"]]
        for row in outcome["within"] or ():
            own = {"what": "within", "value": row["covariate"], "estimate": row["coefficient"]}
            rows.append(row | own | {"of": name})
    for row in (summary["predictors"] or {"rows": ()})["rows"]:
        figures = {"estimate": row["odds_ratio"], "naive": row["naive_odds_ratio"]}
        rows.append(row | figures | {"what": "odds ratio", "of": row["predictor"], "value": ""})
    return pa.RecordBatch.from_pylist(rows, schema)


def show_relations(summary: dict[str, Any]) -> None:
    """Print outcomes, predictors and curves as tables for people."""
    console = Console(highlight=False)
    for one in summary["clusters"]:
        size = "few" if one["records"] is None else f"{one['records']:,}"
        console.print(f"{one['cluster']} {one['name']} ({size} records)", markup=False)
    for outcome in summary["outcomes"]:
        console.print(_outcome_table(outcome))
        if outcome["within"]:
            console.print(_lines_table(f"{outcome['name']} within clusters", outcome["within"]))
    if summary["predictors"]:
        console.print(_odds_table(summary["predictors"]))
    for curve in summary["survival"] or ():
        median = "not reached" if curve["median"] is None else f"{curve['median']:g}"
        typer.echo(f"Cluster {curve['cluster']}: median survival {median}")
    console.print(
        "Corrected for records that may be of another cluster than they are taken for; naive "
        "figures are not. Brackets: 95% intervals."
    )


def _outcome_table(outcome: dict[str, Any]) -> Table:
    digits = ".1%" if outcome["kind"] == "share" else ",.2f"
    title = f"{outcome['name']} ({outcome['method']}; {_chi(outcome['overall'])})"
    table = Table("Cluster", title=title, box=box.SIMPLE_HEAD, title_justify="left")
    values = list(dict.fromkeys(row["value"] for row in outcome["rows"]))
    if len(values) == 2:
        values = [value for value in values if yes_no(value)] or values[1:]
    if len(values) > 1:
        table.add_column("")
    for heading in (*(values if len(values) == 1 else ("estimate",)), "naive"):
        table.add_column(heading, justify="right")
    for row in (row for row in outcome["rows"] if row["value"] in values):
        names = [str(row["cluster"]), *([row["value"]] if len(values) > 1 else [])]
        table.add_row(*names, *_figures(row, "estimate", "naive", digits))
    return table


def _lines_table(title: str, rows: list[dict[str, Any]]) -> Table:
    table = Table("Cluster", "", title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for heading in ("estimate", "naive"):
        table.add_column(heading, justify="right")
    for row in rows:
        figures = _figures(row, "coefficient", "naive", ".3g")
        table.add_row(str(row["cluster"]), row["covariate"], *figures)
    return table


def _odds_table(found: dict[str, Any]) -> Table:
    title = f"Odds ratios against cluster {found['reference']}"
    table = Table("Cluster", title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for name, test in found["tests"].items():
        table.add_column(f"{name}\n{_chi(test)}", justify="right")
        table.add_column("naive", justify="right")
    for cluster in dict.fromkeys(row["cluster"] for row in found["rows"]):
        cells = []
        for row in found["rows"]:
            if row["cluster"] == cluster and row["predictor"] != "intercept":
                cells += _figures(row, "odds_ratio", "naive_odds_ratio", ".3f")
        table.add_row(str(cluster), *cells)
    return table


def _chi(test: dict[str, Any]) -> str:
    chance = "p < 0.001" if test["p"] < 0.001 else f"p = {test['p']:.3f}"
    return f"χ² {test['statistic']:.1f}, {test['df']} df, {chance}"


def _figures(row: dict[str, Any], name: str, naive: str, digits: str) -> list[str]:
    """Return an estimate with its interval, and the naive one."""
    ends = f"{row['low']:{digits}} to {row['high']:{digits}}"
    return [f"{row[name]:{digits}} ({ends})", f"{row[naive]:{digits}}"]
