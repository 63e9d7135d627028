"""Dating: the edition that the day of a row speaks for, where nothing says of which a code is."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pyarrow as pa

from comorb.records.codes.editions import PROBABLY
from comorb.records.layouts.covariates import counted
from comorb.records.layouts.plan import Plan
from comorb.records.sources.duck import OpenedSource, as_text, literal, quoted
from comorb.records.values import TIME, read_dates

# The day on which ICD-10-CM took the place of ICD-9-CM in the United States.
_CHANGE = date(2015, 10, 1)
_EDITION, _TEXT, _ROW = " edition", " day", " row"


def dated(source: OpenedSource, plan: Plan) -> Plan | None:
    """Return the plan with an edition for each row that has a day, None where there are no days."""
    table, day = plan.table, plan.layout.date
    if day is None or plan.system or plan.layout.version or plan.reader.of_json:
        return None
    text = f"{as_text(day, table.columns[day])} AS {quoted(_TEXT)}"
    rows = f"row_number() OVER () AS {quoted(_ROW)}"
    numbered = source.view(table.label, f"SELECT *, {text}, {rows} FROM {table.sql}", table.text)
    days = read_dates(counted(source, numbered, _TEXT), day).of or {}
    known = {one: "icd9cm" if when < _CHANGE else "icd10cm" for one, when in days.items() if when}
    if not known:
        return None
    editions = {"text": list(known), "edition": [f"{key}{PROBABLY}" for key in known.values()]}
    source.register("edition_days", pa.table(editions))
    view = source.view(
        table.label,
        f"SELECT numbered.* EXCLUDE ({quoted(_TEXT)}, {quoted(_ROW)}), "
        f"edition_days.edition AS {quoted(_EDITION)} FROM {numbered.sql} AS numbered "
        f"LEFT JOIN edition_days ON edition_days.text = "
        f"regexp_replace({quoted(_TEXT)}, {literal(TIME)}, '') ORDER BY {quoted(_ROW)}",
        table.text,
    )
    return replace(plan, table=view, layout=replace(plan.layout, version=_EDITION))
