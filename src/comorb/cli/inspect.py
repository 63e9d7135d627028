"""``comorb inspect``: what a source of records holds, before anything is done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comorb.cli.options import (
    Chronic,
    Columns,
    Json,
    LayoutKind,
    Levels,
    Map,
    Memory,
    Records,
    Scores,
    System,
    Table,
    Unit,
    layout_of,
)

if TYPE_CHECKING:
    from rich.console import Console

    from comorb.records.reading import Inspection


def inspect(  # noqa: PLR0913 - one parameter for each option
    records: Records,
    table: Table = None,
    layout: LayoutKind = None,
    column: Columns = None,
    unit: Unit = None,
    system: System = None,
    level: Levels = ["category"],  # noqa: B006 - Typer copies it
    code_map: Map = None,
    chronic: Chronic = False,
    score: Scores = None,
    memory: Memory = None,
    as_json: Json = False,
) -> None:
    """Say what records hold: layout, coding system, counts and problems.

    Example: comorb inspect visits.csv
    """
    from rich.console import Console

    from comorb.cli.output import show_json, shown_progress
    from comorb.insight.runs.progress import Progress
    from comorb.records.reading import inspect_records

    with shown_progress() as tell:
        tell(Progress("reading", "Reading the records"))
        found = inspect_records(
            records,
            table=table,
            layout=layout_of(layout, column),
            unit=unit,
            system=system,
            level=level,
            code_map=code_map,
            chronic=chronic,
            scores=score or (),
            memory=memory,
        )
    if as_json:
        show_json(found.to_dict())
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
