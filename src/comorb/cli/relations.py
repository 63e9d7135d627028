"""Relations as plain values, as rows of a file and as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from comorb.insight.profile.rough import rough, rough_notes
from comorb.records.values import yes_no

if TYPE_CHECKING:
    from comorb.insight.runs.relate import Related, RelatedRecords
    from comorb.model.arrays import Floats
    from comorb.model.relating.predictors import PredictorRelation
    from comorb.model.relating.regression import RegressionRelation
    from comorb.model.relating.survival import SurvivalRelation
    from comorb.model.relating.wald import Test

DIGITS = 3  # significant ones of protected figures


def relations_summary(found: RelatedRecords, least: int = 0) -> dict[str, Any]:
    """Return what was related to clusters, as plain values.

    With ``least`` numbers of records are rough, figures have three digits, and an outcome, a
    regression or a curve of which any count is smaller is not told at all: what is corrected mixes
    the counts of all clusters.
    """
    relations = found.relations
    notes = list(relations.notes)
    outcomes, held = [], []
    for one in relations.outcomes:
        if least and _few(one.counts, least):
            held.append(one.name)
            continue
        outcomes.append(_outcome(one, found.numbers, least))
    predicted, curves = relations.predictors, relations.survival
    if least and predicted is not None and _few(relations.sizes, least):
        held += list(predicted.names)
        predicted = None
    if least and curves is not None and _few(relations.events, least):
        held.append("the curves")
        curves = None
    notes += [f"{name} is not told: some of its counts are below {least}" for name in held]
    sizes = [int(size) for size in relations.sizes]
    return {
        "clusters": [
            {"cluster": number, "name": name, "records": rough(size, least) if least else size}
            for number, name, size in zip(found.numbers, found.clusters, sizes, strict=True)
        ],
        "min_cell": least,
        "notes": [*found.ledger.notes, *notes] if not least else [*rough_notes(notes, least)],
        "classification": _plain(relations.classification.matrix, least),
        "outcomes": outcomes,
        "predictors": None if predicted is None else _predictors(predicted, found.numbers, least),
        "survival": None if curves is None else _curves(curves, found.numbers, least),
    }


def _few(counts: Floats, least: int) -> bool:
    """Tell whether any count that isn't nothing at all is too small to be told."""
    return bool(((counts > 0) & (counts < least)).any())


def _plain(values: Floats, least: int) -> Any:
    if not least:
        return np.round(values, 9).tolist()
    return [_plain(one, least) for one in values] if values.ndim else _short(float(values))


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _test(test: Test, least: int) -> dict[str, Any]:
    figures = {"statistic": test.statistic, "p": test.p}
    told = {name: _short(value) if least else value for name, value in figures.items()}
    return told | {"df": test.df}


def _outcome(one: Related, numbers: tuple[int, ...], least: int) -> dict[str, Any]:
    relation = one.relation
    values = relation.values or ("mean",)
    names = ("estimate", "error", "low", "high", "naive", "naive_error")
    tables = (
        *(relation.means, relation.errors, relation.low, relation.high),
        *(relation.naive, relation.naive_errors),
    )
    k = len(numbers)
    rows = [
        {"cluster": number, "value": value}
        | {
            name: _plain(np.asarray(table).reshape(k, -1)[place, at], least)
            for name, table in zip(names, tables, strict=True)
        }
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
        | {name: _plain(part[place, at], least) for name, part in zip(names, parts, strict=True)}
        for place, number in enumerate(numbers)
        for at, covariate in enumerate(("intercept", *found.names))
    ]


def _predictors(found: PredictorRelation, numbers: tuple[int, ...], least: int) -> dict[str, Any]:
    parts = (
        *(found.coefficients, found.errors, found.odds_ratios, found.low, found.high),
        np.exp(found.naive),
    )
    names = ("coefficient", "error", "odds_ratio", "low", "high", "naive_odds_ratio")
    rows = [
        {"cluster": numbers[cluster], "predictor": predictor}
        | {name: _plain(part[row, at], least) for name, part in zip(names, parts, strict=True)}
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
            "error": _plain(found.errors[place, ::every], least),
            "naive": _plain(found.naive[place, ::every], least),
        }
        for place, (number, median) in enumerate(zip(numbers, found.medians(), strict=True))
    ]


def relation_batch(summary: dict[str, Any]) -> pa.RecordBatch:
    """Return all estimates of a summary as rows of one file."""
    names = ("estimate", "error", "low", "high", "naive")
    rows: list[dict[str, Any]] = []
    for outcome in summary["outcomes"]:
        for row in outcome["rows"]:
            told = {name: row[name] for name in names}
            what = {"what": "outcome", "of": outcome["name"], "value": row["value"]}
            rows.append({"cluster": row["cluster"]} | what | told)
        for row in outcome["within"] or ():
            told = {name: row[name] for name in names[1:]} | {"estimate": row["coefficient"]}
            what = {"what": "within", "of": outcome["name"], "value": row["covariate"]}
            rows.append({"cluster": row["cluster"]} | what | told)
    for row in (summary["predictors"] or {"rows": ()})["rows"]:
        told = {
            "estimate": row["odds_ratio"],
            "error": row["error"],
            "low": row["low"],
            "high": row["high"],
            "naive": row["naive_odds_ratio"],
        }
        what = {"what": "odds ratio", "of": row["predictor"], "value": ""}
        rows.append({"cluster": row["cluster"]} | what | told)
    schema = pa.schema(
        [("cluster", pa.int64()), *((name, pa.string()) for name in ("what", "of", "value"))]
        + [(name, pa.float64()) for name in names]
    )
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
    share = outcome["kind"] == "share"
    test = outcome["overall"]
    title = f"{outcome['name']} ({outcome['method']}; {_chi(test)})"
    table = Table("Cluster", title=title, box=box.SIMPLE_HEAD, title_justify="left")
    values = list(dict.fromkeys(row["value"] for row in outcome["rows"]))
    if len(values) == 2:
        values = [value for value in values if yes_no(value)] or values[1:]
    if len(values) > 1:
        table.add_column("")
    for heading in (*(values if len(values) == 1 else ("estimate",)), "naive"):
        table.add_column(heading, justify="right")
    for row in (row for row in outcome["rows"] if row["value"] in values):
        ends = f"{_figure(row['low'], share)} to {_figure(row['high'], share)}"
        told = [f"{_figure(row['estimate'], share)} ({ends})", _figure(row["naive"], share)]
        names = [str(row["cluster"]), *([row["value"]] if len(values) > 1 else [])]
        table.add_row(*names, *told)
    return table


def _lines_table(title: str, rows: list[dict[str, Any]]) -> Table:
    table = Table("Cluster", "", title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for heading in ("estimate", "naive"):
        table.add_column(heading, justify="right")
    for row in rows:
        ends = f"{row['low']:.3g} to {row['high']:.3g}"
        told = f"{row['coefficient']:.3g} ({ends})"
        table.add_row(str(row["cluster"]), row["covariate"], told, f"{row['naive']:.3g}")
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
                ends = f"{row['low']:.3f} to {row['high']:.3f}"
                cells += [f"{row['odds_ratio']:.3f} ({ends})", f"{row['naive_odds_ratio']:.3f}"]
        table.add_row(str(cluster), *cells)
    return table


def _chi(test: dict[str, Any]) -> str:
    chance = "p < 0.001" if test["p"] < 0.001 else f"p = {test['p']:.3f}"
    return f"χ² {test['statistic']:.1f}, {test['df']} df, {chance}"


def _figure(value: float, share: bool) -> str:
    return f"{value:.1%}" if share else f"{value:,.2f}"
