"""Plan: how a table is read, and the role of each column or why it isn't used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TypeVar

import pyarrow as pa

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.records.codes.recognition import PROBABLE_MARK
from comorb.records.codes.systems import PROCEDURES, system_by_edition
from comorb.records.codes.vocabulary import Coding, Raw, Vocabulary, build_vocabulary
from comorb.records.cohort import Cohort
from comorb.records.features import FeatureSpec
from comorb.records.layouts.assembly import Assembly, Encode
from comorb.records.layouts.columns import MAX_VALUES, Columns
from comorb.records.layouts.covariates import (
    DAY_PATTERN,
    INTEGER_PATTERN,
    NUMBER_PATTERN,
    count_texts,
    covariate_names,
    read_weights,
)
from comorb.records.layouts.layout import COVARIATE_ROLES, LIST_ROLES, VISIT_ROLES, Layout
from comorb.records.layouts.names import WEIGHT_NAME, find_role, normalise_name
from comorb.records.sources.duck import (
    OpenedSource,
    SourceTable,
    is_number_type,
    literal,
    literals,
    quote,
)
from comorb.records.values import MARKS, TIME, Meanings, read_dates

C = TypeVar("C", bound=Cohort)


@dataclass(frozen=True)
class Plan:
    """How a table, already joined and filtered, is read.

    ``removed`` counts the rows that were left out of it, by the reason; ``titles`` and ``system``
    are those that the source has for its codes. ``meanings`` of the texts of covariates, and the
    columns ``varying`` within records, are set where they were found before reading. ``holds`` is
    'drugs', 'procedures' and so on where the codes aren't diagnoses. Records without a usable code
    are left out unless ``keep_empty``; with ``lines``, the rows of an id are lines of one stay.
    ``stored`` is the table with the columns and rows of its
    source; ``asked`` are items that become features. ``keys`` are the columns of the source with
    the ids of patient and record, where the table has others; ``joined`` are the columns that are
    read of other tables, their keys first.
    """

    reader: Reader
    table: SourceTable
    layout: Layout
    unit: str = "visit"
    removed: Mapping[str, int] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    system: str | None = None
    meanings: Mapping[str, Meanings] | None = None
    varying: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    holds: str = ""
    keep_empty: bool = False
    lines: bool = False
    stored: SourceTable | None = None
    asked: tuple[FeatureSpec, ...] = ()
    keys: tuple[str | None, str | None] | None = None
    joined: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def id_column(self) -> str | None:
        """The column that identifies a record of the unit; a table of codes needs one."""
        patient = self.layout.patient
        if self.unit == "patient" and patient is None:
            raise RecordsError("layout.no_patient_id", table=self.table.label)
        column = patient if self.unit == "patient" else self.layout.record or patient
        if column is None and self.reader.by_code:
            raise RecordsError("layout.no_visit_id", table=self.table.label)
        return column

    @property
    def has_several_rows(self) -> bool:
        """Whether a record may have several rows, anywhere in the table."""
        parts = self.layout.part is not None or self.lines
        return self.reader.by_code or self.unit == "patient" or parts

    @property
    def stay_columns(self) -> list[str]:
        """The columns that are the same in all lines of a stay: two or more, or none."""
        roles = self.layout.roles
        found = [roles[one] for one in ("patient", "sex", "date", "site") if one in roles]
        return found if len(found) > 1 else []

    def missing_ids_error(self) -> RecordsError:
        """Return the error of a table in which no row has the id of its record."""
        key = "layout.no_visit_ids" if self.unit == "visit" else "layout.no_patient_ids"
        return RecordsError(key, table=self.table.label)

    def storage_notes(self, source: OpenedSource) -> tuple[str, ...]:
        """Return the note on codes that their source stores as numbers."""
        columns = source.stored_as_numbers(self.table, self.layout.codes or ())
        if self.reader.kind == "binary" or not columns:
            return ()
        names = ", ".join(map(repr, columns[:12]))
        return (Message("note.codes_as_numbers", names=names),)

    def vocabulary(self, raws: dict[Raw, int], system: str | None, coding: Coding) -> Vocabulary:
        """Return the features that the codes of the source become."""
        vocabulary = build_vocabulary(raws, system or self.system, coding, self.titles)
        notes, label = [], self.table.label
        if self.holds_procedures and not system:
            notes.append(Message("note.procedures", table=label, system=vocabulary.system))
        in_a_cell = self.reader.by_code and self.layout.separator is not None
        if in_a_cell and "+" in vocabulary.system and "common" not in coding.levels:
            notes.append(Message("note.two_systems_cell"))
        return replace(vocabulary, notes=(*notes, *vocabulary.notes))

    @property
    def holds_procedures(self) -> bool:
        """Whether the codes are known to be procedures."""
        return self.system in PROCEDURES.values()

    def edition(self, text: str | None) -> str | None:
        """Return the coding system of a text of the version column, if it is one."""
        if text and text.endswith(PROBABLE_MARK):
            return text
        key = system_by_edition(text) if text else None
        return PROCEDURES.get(key, key) if key and self.holds_procedures else key

    def cohort(self, assembly: Assembly, coding: Coding, kind: type[C]) -> C:
        """Return an assembly as a cohort of some kind."""
        vocabulary, layout = assembly.vocabulary, self.layout
        matrix, covariates = vocabulary.split(assembly.matrix, assembly.covariates)
        weights = None
        if layout.weight is not None:
            weights = read_weights(self.table.label, layout.weight, covariates["weight"])
            covariates = covariates.drop_columns(["weight"])
        # The covariate with the ids of patients, where records are visits.
        patient = covariate_names(layout.ids, layout).get(layout.patient or "")
        return kind(
            matrix,
            assembly.ids,
            vocabulary.codes,
            vocabulary.names,
            vocabulary.system,
            coding.level,
            covariates,
            assembly.ledger.noted(*vocabulary.notes),
            weights,
            least_codes=self.reader.least_codes,
            items=self.asked,
            patient=patient if patient in covariates.column_names else None,
        )

    def check_usable(self, assembly: Assembly) -> None:
        """Refuse a source without a usable code."""
        vocabulary, label = assembly.vocabulary, self.table.label
        without = not vocabulary.codes and not (self.asked or self.layout.features)
        if not len(assembly.ids) or without:
            columns = ", ".join(map(repr, (self.layout.codes or ())[:12]))
            key, system = "layout.no_usable_code", vocabulary.system
            raise RecordsError(key, table=label, columns=columns, system=system)


@dataclass(frozen=True)
class Reader:
    """Reads the tables of one layout.

    ``plan`` returns the plan for a table, or None when it has another layout; ``count`` returns
    the number of mentions of each raw code. ``unit`` is what a record is by default; with
    ``by_code``, a row is one code and not a record; ``of_json`` is for objects, not for columns.
    ``least_codes`` is how many codes a record needs to be of use.
    """

    kind: str
    plan: Callable[[OpenedSource, SourceTable, Columns], Plan | None]
    read: Callable[[OpenedSource, Plan, Encode], Assembly]
    count: Callable[[OpenedSource, Plan], dict[Raw, int]]
    unit: str = "visit"
    by_code: bool = False
    of_json: bool = False
    least_codes: int = 3


_ICD10_START = date(2015, 10, 1)  # when ICD-10-CM replaced ICD-9-CM in the United States
_EDITION, _TEXT, _ROW = " edition", " day", " row"


def plan_by_date(source: OpenedSource, plan: Plan) -> Plan | None:
    """Return the plan with an edition for each row that has a day, None where there are no days."""
    table, day = plan.table, plan.layout.date
    if day is None or plan.system or plan.layout.version or plan.reader.of_json:
        return None
    text = f"{table.text_sql(day)} AS {quote(_TEXT)}"
    rows = f"row_number() OVER () AS {quote(_ROW)}"
    numbered = source.derive(table, f"SELECT *, {text}, {rows} FROM {table.sql}")
    days = read_dates(count_texts(source, numbered, _TEXT), day).of or {}
    known = {one: when for one, when in days.items() if when}
    if not known:
        return None
    keys = ["icd9cm" if when < _ICD10_START else "icd10cm" for when in known.values()]
    editions = {"text": list(known), "edition": [f"{key}{PROBABLE_MARK}" for key in keys]}
    source.register("edition_days", pa.table(editions))
    view = source.derive(
        table,
        f"SELECT numbered.* EXCLUDE ({quote(_TEXT)}, {quote(_ROW)}), "
        f"edition_days.edition AS {quote(_EDITION)} FROM {numbered.sql} AS numbered "
        f"LEFT JOIN edition_days ON edition_days.text = "
        f"regexp_replace({quote(_TEXT)}, {literal(TIME)}, '') ORDER BY {quote(_ROW)}",
    )
    return replace(plan, table=view, layout=replace(plan.layout, version=_EDITION))


MIN_CELL = 11  # the fewest patients or records with a value that is shown
_N_SHOWN_VALUES = 5
_MAX_LABELS = 100
_MAX_LENGTH = 40
_COLUMNS_PER_QUERY = 100
_MAX_SAMPLE_ROWS = 100_000
_DATE_PATTERN = rf"{DAY_PATTERN}|" + (
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}([./-])[0-9]{1,2}[./-][0-9]{4}).*$"
)
_SHOWN_ROLES = ("codes", "age", "date", "los", "part", "version")
_COVARIATE_ROLES = {*COVARIATE_ROLES, *VISIT_ROLES, "category", "number"} - {"weight"}


@dataclass(frozen=True)
class ColumnRole:
    """The role of a column.

    Attributes
    ----------
    name : str
        The column.
    role : str
        'id', 'patient', 'codes', 'part', 'version', 'age', 'sex', 'date', 'los', 'died',
        'readmitted', 'cost', 'site', 'weight', 'discharged', 'disposition', 'category', 'number'
        or 'ignored'.
    values : tuple of str
        Some of its common values; none of an id or of a text of many values, and none that fewer
        than eleven patients or records have.
    missing : float
        The share of its missing cells, in whole percent.
    reason : str
        Why it isn't used, or a remark on it.
    """

    name: str
    role: str
    values: tuple[str, ...] = ()
    missing: float = 0.0
    reason: str = ""


@dataclass(frozen=True)
class _ColumnFigures:
    """A column in figures: cells of the whole table, and distinct values of the first rows."""

    rows: int
    present: int
    constant: bool
    numbers: int
    wholes: int
    dates: int
    distinct: int
    length: float
    most: tuple[str, ...]

    @property
    def are_labels(self) -> bool:
        """Whether there are too few values for the rows to be unknown ids of patients."""
        limit = min(_MAX_LABELS, min(self.rows, _MAX_SAMPLE_ROWS) // 100)
        return self.distinct <= max(MAX_VALUES, limit)

    @property
    def missing(self) -> float:
        """The share of missing cells; 0 and 1 only if it is exactly none or all."""
        share = 1 - self.present / self.rows
        return min(max(round(share, 2), 0.01), 0.99) if 0 < share < 1 else share


def column_roles(
    source: OpenedSource,
    table: SourceTable,
    layout: Layout,
    covariates: Collection[str] | None = None,
    least: int = MIN_CELL,
) -> tuple[ColumnRole, ...]:
    """Return the role of each column of a table, in the order of the table.

    ``covariates`` are those of the records, if the table was read: a column that isn't among them
    differs within a record. Values of fewer than ``least`` patients are never shown.
    """
    known = {name: "id" if role == "record" else role for role, name in layout.roles.items()}
    known |= dict.fromkeys(layout.codes or (), "codes")
    known |= {name: role for role in LIST_ROLES for name in getattr(layout, role)}
    names = covariate_names(list(table.columns), layout)
    described = []
    for name, figures in _measure_columns(source, table, layout, max(least, MIN_CELL)):
        role, reason = _decide_role(name, known.get(name), figures, layout)
        if covariates is not None and role in _COVARIATE_ROLES and names[name] not in covariates:
            role, reason = "ignored", Message("column.differs_within")
        shown = role in _SHOWN_ROLES or (role in _COVARIATE_ROLES and figures.are_labels)
        values = figures.most if shown and (role, layout.kind) != ("codes", "binary") else ()
        described.append(ColumnRole(name, role, values, figures.missing, reason))
    return tuple(described)


def _decide_role(
    name: str, known: str | None, figures: _ColumnFigures, layout: Layout
) -> tuple[str, str]:
    """Return the role of a column, and a remark on it."""
    if known is not None:
        return known, Message("column.as_said") if known == "ignored" else ""
    if not figures.present:
        return "ignored", Message("column.empty")
    is_number = figures.numbers == figures.present
    if figures.constant:
        return "number" if is_number else "category", Message("column.one_value")
    if figures.dates > 0.9 * figures.present:
        return "ignored", Message("column.other_date")
    if is_number and figures.wholes == figures.present and figures.distinct <= MAX_VALUES:
        return "category", ""
    if is_number:
        may_be = layout.weight is None and WEIGHT_NAME.fullmatch(normalise_name(name)) is not None
        return "number", Message("column.maybe_weight") if may_be else ""
    if figures.length > _MAX_LENGTH:
        return "ignored", Message("column.long_text")
    if figures.distinct > max(0.95 * min(figures.present, _MAX_SAMPLE_ROWS), MAX_VALUES):
        return "ignored", Message("column.all_differ")
    if figures.distinct <= MAX_VALUES:
        return "category", ""
    if layout.site is None and find_role(name) == "site":
        return "category", Message("column.maybe_site")
    return "category", Message("column.many", limit=MAX_VALUES)


def _measure_columns(
    source: OpenedSource, table: SourceTable, layout: Layout, least: int
) -> Iterator[tuple[str, _ColumnFigures]]:
    """Yield each column in figures; the table is read twice."""
    names, marks = list(table.columns), literals(sorted(MARKS))
    texts = (f"trim({table.text_sql(name)})" for name in names)
    cells = (f"CASE WHEN upper({text}) NOT IN ({marks}) THEN {text} END" for text in texts)
    picks = ", ".join(f"{cell} AS c{i}" for i, cell in enumerate(cells))
    view = source.view(table.label, f"SELECT {picks} FROM {table.sql}")
    first = f"SELECT * FROM {view.sql} LIMIT {_MAX_SAMPLE_ROWS}"
    source.rows(view, f"CREATE OR REPLACE TEMP TABLE first_rows AS {first}")
    key = layout.patient or layout.record
    of = f"count(DISTINCT c{names.index(key)})" if key in names else "count(*)"
    for place, name in enumerate(names):
        cell = f"c{place}"
        if place % _COLUMNS_PER_QUERY == 0:
            picks = ", ".join(
                f"count(c{i}), coalesce(min(c{i}) = max(c{i}), false), "
                f"count(*) FILTER (regexp_matches(c{i}, '{NUMBER_PATTERN}')), "
                f"count(*) FILTER (regexp_matches(c{i}, '{INTEGER_PATTERN}')), "
                f"count(*) FILTER (regexp_matches(c{i}, '{_DATE_PATTERN}'))"
                for i in range(place, min(place + _COLUMNS_PER_QUERY, len(names)))
            )
            ((rows, *counts),) = source.rows(view, f"SELECT count(*), {picks} FROM {view.sql}")
        own, counts = counts[:5], counts[5:]
        ((distinct, length),) = source.rows(
            view, f"SELECT count(DISTINCT {cell}), coalesce(avg(length({cell})), 0) FROM first_rows"
        )
        most = source.rows(
            view,
            f"SELECT {cell}, {of} AS n FROM first_rows WHERE {cell} IS NOT NULL GROUP BY 1 "
            f"HAVING n >= {least} ORDER BY n DESC, 1 LIMIT {_N_SHOWN_VALUES}",
        )
        values = tuple(value for value, _ in most)
        if is_number_type(table.columns[name]):
            own[-1] = 0  # dates
        figures = [rows, *own, distinct, length, values]
        yield name, _ColumnFigures(*figures)
