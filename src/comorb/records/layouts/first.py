"""The first visit of a patient: by its day, and refused where the days can't be read."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import RecordsError
from comorb.records.sources.duck import OpenedSource, SourceTable, quoted
from comorb.records.sources.merging import either
from comorb.records.values import Meanings


def by_day(rows: pa.Table, label: str, column: str | None) -> pa.Array:
    """Return the order of rows by their days, which a column of the table ``label`` has."""
    if not pa.types.is_temporal(rows["date"].type):
        raise undated(label, column)
    return pc.sort_indices(rows, [("date", "ascending")])


def stay_text(meanings: Mapping[str, Meanings]) -> bool:
    """Tell dates that can't be read; as texts, 05.02.2018 would come before 12.01.2017."""
    return "date" in meanings and meanings["date"].of is None


def several_days(source: OpenedSource, table: SourceTable, key: str) -> bool:
    """Tell whether some record, by its key, has several values of the column 'date'."""
    sql = (
        f"SELECT 1 FROM {table.sql} WHERE {quoted(key)} IS NOT NULL GROUP BY {quoted(key)} "
        "HAVING min(date) < max(date) LIMIT 1"
    )
    return bool(source.ask_whole(table, sql, either))


def undated(label: str, column: str | None) -> RecordsError:
    """Return the error of a table in which the first visit isn't known."""
    return RecordsError(
        f"{label}: which visit of a patient is the first can't be told, because the dates of "
        f"column {column!r} can't be read for sure; write them as YYYY-MM-DD, or have the column "
        "ignored."
    )
