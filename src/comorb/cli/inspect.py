"""``comorb inspect``: what a source of records holds, before anything is done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from comorb.records.reading import Inspection


def inspect(
    records: Annotated[str, typer.Argument(help="A file, a folder, a glob or a URL.")],
    table: Annotated[str | None, typer.Option(help="A table, or a query that selects.")] = None,
    layout: Annotated[
        str | None, typer.Option(help="wide, long, delimited, binary, omop or fhir.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="visit or patient.")] = None,
    system: Annotated[str | None, typer.Option(help="icd9cm, icd10cm, icd10 or opaque.")] = None,
    level: Annotated[
        list[str] | None, typer.Option(help="category, full, group or chapter; may be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what records hold: layout, coding system, counts and problems."""
    import json

    from rich.console import Console

    from comorb.records.layouts import Layout
    from comorb.records.reading import inspect_records

    with Console(stderr=True).status("Reading the records"):
        found = inspect_records(
            records,
            table=table,
            layout=Layout(kind=layout),  # type: ignore[arg-type]
            unit=unit,
            system=system,
            level=level or "category",
        )
    if as_json:
        typer.echo(json.dumps(found.to_dict(), ensure_ascii=False, indent=2))
    else:
        _show(found, Console())


def _show(found: Inspection, console: Console) -> None:
    from rich.table import Table

    facts = Table(title=found.table, show_header=False, title_justify="left", box=None)
    for key, value in _facts(found).items():
        facts.add_row(key, value)
    ledger = Table("what", "rule", "removed", "left", title="Ledger", title_justify="left")
    for line in found.ledger.lines:
        ledger.add_row(line.unit, line.rule, f"{line.removed:,}", f"{line.after:,}")
    common = Table("code", "name", "records", title="Most common", title_justify="left")
    for code, name, count in found.most_common:
        common.add_row(code, name, f"{count:,}")
    for part in (facts, ledger, common):
        console.print(part)
    for problem in found.ledger.problems[:10]:
        console.print(f"row {problem.row:,}, column {problem.column}: {problem.reason}")
    for note in found.ledger.notes:
        console.print(f"note: {note}")


def _facts(found: Inspection) -> dict[str, str]:
    codes = found.layout.codes or ()
    shown = ", ".join(codes) if len(codes) < 4 else f"{codes[0]} … {codes[-1]} ({len(codes):,})"
    return {
        "layout": f"{found.layout.kind}, a record is a {found.unit}",
        "codes": f"{shown}: {found.system}, at the level {found.level}",
        **found.layout.roles,
        "records": f"{found.records:,}",
        "features": f"{found.features:,}, {found.mentions / found.records:.1f} a record",
        "covariates": ", ".join(found.covariates) or "none",
    }
