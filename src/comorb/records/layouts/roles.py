"""Roles: what each column of a table is, what it holds, and why it isn't used."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from comorb.records.layouts.columns import FEW
from comorb.records.layouts.covariates import DAY, NUMBER, WHOLE, shown_names
from comorb.records.layouts.description import COVARIATES, LISTS, VISITS, Layout
from comorb.records.layouts.names import WEIGHT, plain, role_of
from comorb.records.sources.duck import OpenedSource, SourceTable, as_text, literal
from comorb.records.values import MARKS

LEAST = 11  # patients or records that have a value which is shown, at least
_VALUES = 5
_MANY = 100
_LONG = 40
_AT_ONCE = 100
_LOOKED_AT = 100_000
_DATE = (
    rf"{DAY}|^([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}|[0-9]{{1,2}}([./-])[0-9]{{1,2}}[./-][0-9]{{4}}).*$"
)
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DOUBLE", "FLOAT")
_SHOWN = ("codes", "age", "date", "los", "part", "version")
_COVARIATES = {*COVARIATES, *VISITS, "category", "number"} - {"weight"}


@dataclass(frozen=True)
class ColumnRole:
    """What a column is.

    Attributes
    ----------
    name : str
        The column.
    role : str
        'id', 'patient', 'codes', 'part', 'version', 'age', 'sex', 'date', 'los', 'died',
        'readmitted', 'cost', 'site', 'weight', 'discharged', 'disposition', 'category', 'number'
        or 'ignored'.
    values : tuple of str
        Some of its common values; none of an id, of a text of many values, and none that fewer than
        eleven patients or records have.
    missing : float
        The share of its cells that hold nothing, in whole percent.
    reason : str
        Why it isn't used, or what to know about it.
    """

    name: str
    role: str
    values: tuple[str, ...] = ()
    missing: float = 0.0
    reason: str = ""


@dataclass(frozen=True)
class _Figures:
    """A column in figures: cells of the whole table, and distinct values of the first rows."""

    rows: int
    present: int
    constant: bool
    numbers: int
    wholes: int
    dates: int
    distinct: int = 0
    length: float = 0.0
    most: tuple[str, ...] = ()

    @property
    def are_labels(self) -> bool:
        """Whether values are too few for their rows to be ids of patients that aren't known."""
        return self.distinct <= max(FEW, min(_MANY, min(self.rows, _LOOKED_AT) // 100))

    @property
    def missing(self) -> float:
        """The share of missing cells; neither none nor all when it is nearly so."""
        share = 1 - self.present / self.rows
        return min(max(round(share, 2), 0.01), 0.99) if 0 < share < 1 else share


def column_roles(
    source: OpenedSource,
    table: SourceTable,
    layout: Layout,
    covariates: Collection[str] | None = None,
    least: int = LEAST,
) -> tuple[ColumnRole, ...]:
    """Return what each column of a table is, in the order of the table.

    ``covariates`` are those of the records, where the table was read: a column that isn't among
    them differs within a record. Values of fewer than ``least`` patients are never shown.
    """
    known = {name: "id" if role == "record" else role for role, name in layout.roles.items()}
    known |= dict.fromkeys(layout.codes or (), "codes")
    known |= {name: role for role in LISTS for name in getattr(layout, role)}
    names = shown_names(list(table.columns), layout)
    described = []
    for name, figures in _figures(source, table, layout, max(least, LEAST)):
        role, reason = _role(name, known.get(name), figures, layout)
        if covariates is not None and role in _COVARIATES and names[name] not in covariates:
            role, reason = "ignored", "it differs within a record"
        shown = role in _SHOWN or (role in _COVARIATES and figures.are_labels)
        values = figures.most if shown and (role, layout.kind) != ("codes", "binary") else ()
        described.append(ColumnRole(name, role, values, figures.missing, reason))
    return tuple(described)


def _role(name: str, known: str | None, figures: _Figures, layout: Layout) -> tuple[str, str]:
    """Return the role of a column, and what to know about it."""
    if known is not None:
        return known, "as you said" if known == "ignored" else ""
    if not figures.present:
        return "ignored", "it holds nothing"
    is_number = figures.numbers == figures.present
    if figures.constant:
        return "number" if is_number else "category", "one value only"
    if figures.dates > 0.9 * figures.present:
        return "ignored", "a date beside that of the record"
    if is_number and figures.wholes == figures.present and figures.distinct <= FEW:
        return "category", ""
    if is_number:
        may_be = layout.weight is None and WEIGHT.fullmatch(plain(name)) is not None
        return "number", "it may be a weight: say so if it is" if may_be else ""
    if figures.length > _LONG:
        return "ignored", "a long text"
    if figures.distinct > max(0.95 * min(figures.present, _LOOKED_AT), FEW):
        return "ignored", "every value differs"
    if figures.distinct <= FEW:
        return "category", ""
    if layout.site is None and role_of(name) == "site":
        return "category", "it may be the hospital: say so if it is"
    return "category", f"more than {FEW} different values: the most common are shown"


def _figures(
    source: OpenedSource, table: SourceTable, layout: Layout, least: int
) -> Iterator[tuple[str, _Figures]]:
    """Yield each column in figures, for which the table is read twice."""
    names = list(table.columns)
    marks = ", ".join(map(literal, sorted(MARKS)))
    texts = (f"trim({as_text(name, table.columns[name])})" for name in names)
    cells = [f"CASE WHEN upper({text}) NOT IN ({marks}) THEN {text} END" for text in texts]
    listed = ", ".join(f"{cell} AS c{i}" for i, cell in enumerate(cells))
    view = source.view(table.label, f"SELECT {listed} FROM {table.sql}")
    first = f"SELECT * FROM {view.sql} LIMIT {_LOOKED_AT}"
    source.rows(view, f"CREATE OR REPLACE TEMP TABLE first_rows AS {first}")
    key = layout.patient or layout.record
    of = f"count(DISTINCT c{names.index(key)})" if key in names else "count(*)"
    for place, name in enumerate(names):
        cell = f"c{place}"
        if place % _AT_ONCE == 0:
            whole = _cells(source, view, range(place, min(place + _AT_ONCE, len(names))))
        ((distinct, length),) = source.rows(
            view, f"SELECT count(DISTINCT {cell}), coalesce(avg(length({cell})), 0) FROM first_rows"
        )
        most = source.rows(
            view,
            f"SELECT {cell}, {of} AS n FROM first_rows WHERE {cell} IS NOT NULL GROUP BY 1 "
            f"HAVING n >= {least} ORDER BY n DESC, 1 LIMIT {_VALUES}",
        )
        values = tuple(value for value, _ in most)
        found = replace(whole[place], distinct=distinct, length=length, most=values)
        yield name, found if table.columns[name] not in _NUMBERS else replace(found, dates=0)


def _cells(source: OpenedSource, view: SourceTable, places: Sequence[int]) -> dict[int, _Figures]:
    """Return the cells of some columns in figures, from one look through the table."""
    picks = ", ".join(
        f"count(c{i}), coalesce(min(c{i}) = max(c{i}), false), "
        f"count(*) FILTER (regexp_matches(c{i}, '{NUMBER}')), "
        f"count(*) FILTER (regexp_matches(c{i}, '{WHOLE}')), "
        f"count(*) FILTER (regexp_matches(c{i}, '{_DATE}'))"
        for i in places
    )
    ((rows, *found),) = source.rows(view, f"SELECT count(*), {picks} FROM {view.sql}")
    return {
        place: _Figures(rows, *found[5 * number : 5 * number + 5])
        for number, place in enumerate(places)
    }
