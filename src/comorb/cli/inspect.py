"""``comorb inspect``: what a source of records holds, before anything is done with it."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from comorb.cli import options

if TYPE_CHECKING:
    from rich.table import Table

    from comorb.records.read import Inspection


@options.spec_options
def inspect(
    records: options.Records,
    *,
    cohort: options.Inspected,
    counts: options.Counts,
    work: options.InMemory,
    as_json: options.Json = False,
) -> None:
    """Say what records hold: layout, columns, coding system, counts and problems.

    Example: comorb inspect visits.csv
    """
    from comorb.cli.render import show, shown_progress
    from comorb.records.read import Inspection
    from comorb.runs.progress import Progress

    with shown_progress() as report:
        report(Progress("reading", "Reading the records"))
        inspection = Inspection.of(records, cohort, work.memory)
    if counts.least:
        inspection = _round_counts(inspection, counts.least)
    show(inspection.to_dict(), lambda _: _show(inspection), as_json)


def _round_counts(inspection: Inspection, least: int) -> Inspection:
    """Return an inspection in rounded numbers of records, without codes and values of few."""
    from comorb.profiles.rounded import round_count, round_lines, round_notes
    from comorb.records.ledger import Ledger

    common = [(code, name, round_count(n, least)) for code, name, n in inspection.most_common]
    ledger = inspection.ledger
    return replace(
        inspection,
        records=round_count(inspection.records, least) or 0,
        features=round_count(inspection.features, least) or 0,
        mentions=round_count(inspection.mentions, least) or 0,
        most_common=tuple((code, name, n) for code, name, n in common if n),
        ledger=Ledger(round_lines(ledger.lines, least), (), round_notes(ledger.notes, least)),
        columns=tuple(
            replace(one, values=(), missing=round(one.missing, 2), reason=reason)
            for one in inspection.columns
            for reason in round_notes([one.reason], least)
        ),
    )


def _show(inspection: Inspection) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    facts = Table(title=inspection.table, show_header=False, title_justify="left", box=None)
    codes = inspection.layout.codes or ()
    listed = ", ".join(codes) if len(codes) < 4 else f"{codes[0]} … {codes[-1]} ({len(codes):,})"
    codes_a_record = inspection.mentions / max(inspection.records, 1)
    rows = {
        "layout": f"{inspection.layout.kind}, a record is a {inspection.unit}",
        "codes": f"{listed}: {inspection.system}, at the level {inspection.level}",
        "records": f"{inspection.records:,}",
        "features": f"{inspection.features:,}, {codes_a_record:.1f} a record",
    }
    for key, value in rows.items():
        facts.add_row(key, value)
    ledger = Table("what", "rule", "removed", "left", title="Ledger", title_justify="left")
    for line in inspection.ledger.lines:
        ledger.add_row(line.unit, line.rule, f"{line.removed:,}", f"{line.after:,}")
    common = Table("code", "name", "records", title="Most common", title_justify="left")
    for code, name, count in inspection.most_common:
        common.add_row(code, name, f"{count:,}")
    for part in (facts, _columns(inspection), ledger, common):
        console.print(part)
    for problem in inspection.ledger.problems[:10]:
        console.print(f"row {problem.row:,}, column {problem.column}: {problem.reason}")
    for note in inspection.ledger.notes:
        console.print(f"note: {note}")


def _columns(inspection: Inspection) -> Table:
    """Return what each column is; code columns of the same kind are one line."""
    from rich.table import Table

    headers = ("column", "role", "values", "missing", "remark")
    table = Table(*headers, title="Columns", title_justify="left")
    for both, run in groupby(inspection.columns, key=lambda one: (one.role == "codes", one.reason)):
        columns = list(run)
        for one in columns[:1] if both[0] else columns:
            several = f" … {columns[-1].name} ({len(columns):,})" if both[0] and columns[1:] else ""
            missing = f"{one.missing:.0%}" if one.missing else ""
            table.add_row(one.name + several, one.role, ", ".join(one.values), missing, one.reason)
    return table
