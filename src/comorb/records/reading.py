"""Reading: from any source, layout and coding system to a cohort."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from typing import Any

import pyarrow as pa

from comorb.errors import ComorbWarning, RecordsError
from comorb.records.assembly import Assembly
from comorb.records.cohort import Cohort
from comorb.records.covariates import weights_of
from comorb.records.databases import is_query
from comorb.records.engine import Source, Table, as_text, quoted
from comorb.records.layouts import KINDS, Kind, Layout, Sample, recognise_layout
from comorb.records.ledger import Ledger
from comorb.records.longwise import read_long
from comorb.records.rowwise import read_rowwise
from comorb.records.sources import open_source
from comorb.records.standards import Standard, fhir, flatten, omop, resource_type
from comorb.records.vocabulary import Raw, Vocabulary, build_vocabulary

_SAMPLE_ROWS = 1000


@dataclass(frozen=True)
class Inspection:
    """What reading a source would give.

    Attributes
    ----------
    source, table : str
        What was looked at.
    layout : Layout
        Which columns hold what.
    unit : str
        'visit' or 'patient'.
    system, level : str
        The coding system and the level of the features.
    records, features, mentions : int
        The size of the cohort: its rows, columns and ones.
    most_common : tuple of (code, name, records)
        The ten most common features.
    covariates : tuple of str
        The columns that come along.
    ledger : Ledger
        What became of every row, with the problems.
    """

    source: str
    table: str
    layout: Layout
    unit: str
    system: str
    level: str
    records: int
    features: int
    mentions: int
    most_common: tuple[tuple[str, str, int], ...]
    covariates: tuple[str, ...]
    ledger: Ledger

    def to_dict(self) -> dict[str, Any]:
        """Return the inspection as plain lists and dictionaries, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class _Read:
    cohort: Cohort
    source: str
    table: str
    layout: Layout
    unit: str


def read_records(
    source: Any,
    *,
    table: str | None = None,
    layout: Layout | Kind | None = None,
    unit: str | None = None,
    system: str | None = None,
    level: str | Sequence[str] = "category",
    memory: str | None = None,
) -> Cohort:
    """Read records into a cohort.

    Parameters
    ----------
    source : path, str, pandas.DataFrame, polars.DataFrame or pyarrow.Table
        A CSV, Parquet, Arrow, NDJSON, DuckDB or SQLite file, a folder, a glob of Parquet files, a
        ``postgresql://`` URL, or a table in memory.
    table : str, optional
        Which table of a database or a folder to read, or a query that selects.
    layout : Layout or str, optional
        What is known about the layout; the rest is recognised.
    unit : 'visit' or 'patient', optional
        What a record is; the codes of a patient are united. A visit where nothing is said, a
        patient in OMOP and FHIR.
    system : str, optional
        The coding system ('icd9cm', 'icd10cm', 'icd10' or 'opaque'); recognised where nothing is
        said.
    level : str or sequence of str, default 'category'
        'category', 'full', 'group' or 'chapter', or several of them.
    memory : str, optional
        The most that the engine may hold, such as '2GB', before it uses the disk.

    Returns
    -------
    Cohort
        The records that have at least one usable code. The ledger accounts for the others.

    Raises
    ------
    RecordsError
        When the source can't be read whole.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows = pa.table({"id": ["a", "a", "b"], "icd_code": ["428.0", "250.00", "428.1"]})
    >>> read_records(rows).codes
    ('250', '428')
    """
    return _read(source, table, _as_layout(layout), unit, system, level, memory).cohort


def inspect_records(
    source: Any,
    *,
    table: str | None = None,
    layout: Layout | Kind | None = None,
    unit: str | None = None,
    system: str | None = None,
    level: str | Sequence[str] = "category",
    memory: str | None = None,
) -> Inspection:
    """Say what `read_records` would make of a source; the parameters are the same.

    Returns
    -------
    Inspection
        The layout, the coding system, counts and problems.
    """
    read = _read(source, table, _as_layout(layout), unit, system, level, memory)
    cohort = read.cohort
    counts = cohort.counts()
    top = sorted(range(len(counts)), key=lambda i: (-counts[i], cohort.codes[i]))[:10]
    return Inspection(
        read.source,
        read.table,
        read.layout,
        read.unit,
        cohort.system,
        cohort.level,
        len(cohort),
        len(cohort.codes),
        int(cohort.matrix.nnz),
        tuple((cohort.codes[i], cohort.names[i], int(counts[i])) for i in top),
        tuple(cohort.covariates.column_names),
        cohort.ledger,
    )


def _as_layout(layout: Layout | Kind | None) -> Layout:
    asked = layout if isinstance(layout, Layout) else Layout(kind=layout)
    if asked.kind is not None and asked.kind not in KINDS:
        raise RecordsError(f"Expected a layout out of {', '.join(KINDS)}; got {asked.kind!r}.")
    return asked


def _read(
    source: Any,
    table: str | None,
    layout: Layout,
    unit: str | None,
    system: str | None,
    level: str | Sequence[str],
    memory: str | None,
) -> _Read:
    levels = (level,) if isinstance(level, str) else tuple(level)
    if unit not in (None, "visit", "patient"):
        raise RecordsError(f"Expected a unit of 'visit' or 'patient'; got {unit!r}.")
    with open_source(source, memory) as opened:
        standard = _understand(opened, _choose(opened, table), layout)
        layout, found = standard.layout, standard.table
        by_code = layout.kind in ("long", "omop", "fhir")
        unit = unit or ("patient" if layout.kind in ("omop", "fhir") else "visit")

        def encode(raws: dict[Raw, int]) -> Vocabulary:
            return build_vocabulary(raws, system or standard.system, levels, standard.titles)

        if by_code:
            assembly = read_long(opened, found, layout, unit, encode, standard.removed)
        else:
            assembly = read_rowwise(opened, found, layout, unit, encode)
        cohort = _cohort(found, layout, "+".join(levels), assembly)
        return _Read(cohort, opened.label, found.label, layout, unit)


def _choose(source: Source, asked: str | None) -> Table:
    """Return the table that was asked for, or the one that must be meant."""
    names = list(source.openers)
    if asked is not None:
        if is_query(asked):
            if source.ask is None:
                raise RecordsError(f"{source.label} is no database, so it can't answer a query.")
            return source.ask(asked)
        if asked in names:
            return source.table(asked)
        near = get_close_matches(asked, names, 3, 0.5) or names
        raise RecordsError(
            f"{source.label} has no table {asked!r}; the nearest are {', '.join(near)}. A query "
            "must begin with SELECT or WITH."
        )
    for standard in ("condition_occurrence", "condition"):
        if standard in names:
            return source.table(standard)
    if len(names) == 1:
        return source.table(names[0])
    if not names:
        raise RecordsError(f"{source.label} holds no tables.")
    raise RecordsError(
        f"{source.label} holds {len(names)} tables: {', '.join(names[:12])}. Say which one to read."
    )


def _understand(source: Source, table: Table, given: Layout) -> Standard:
    """Return a table and its layout, whether it follows a standard or not."""
    if list(table.columns) == ["json"]:
        resource = resource_type(source, table)
        if resource == "Condition":
            return fhir(source, table)
        if resource is not None:
            raise RecordsError(
                f"{table.label} holds FHIR resources of type {resource}; records are read from "
                "Condition resources."
            )
        table = flatten(source, table)
    columns = {name.lower() for name in table.columns}
    if given.kind in (None, "omop") and {"person_id", "condition_concept_id"} <= columns:
        return omop(source, table, given)
    if given.kind in ("omop", "fhir"):
        raise RecordsError(f"{table.label} doesn't have the columns of the layout {given.kind!r}.")
    sample = _sample(source, table)
    return Standard(table, recognise_layout(table.label, list(table.columns), sample, given))


def _sample(source: Source, table: Table) -> Sample:
    names = list(table.columns)
    rows = min(_SAMPLE_ROWS, 50 + 500_000 // len(names))
    picks = ", ".join(f"{as_text(name, table.columns[name])} AS {quoted(name)}" for name in names)
    batches = list(source.batches(table, f"SELECT {picks} FROM {table.sql} LIMIT {rows}"))
    if not batches:
        raise RecordsError(f"{table.label} holds no rows; export it again.")
    whole = pa.Table.from_batches(batches)
    return {name: whole[name].drop_null().to_pylist() for name in names}


def _cohort(table: Table, layout: Layout, level: str, assembly: Assembly) -> Cohort:
    vocabulary, covariates = assembly.vocabulary, assembly.covariates
    if not assembly.matrix.shape[0]:
        raise RecordsError(
            f"{table.label}: the columns {', '.join(map(repr, (layout.codes or ())[:12]))} hold no "
            f"usable code of {vocabulary.system}; check the columns and the coding system."
        )
    if vocabulary.warning:
        warnings.warn(f"{table.label}: {vocabulary.warning}.", ComorbWarning, stacklevel=4)
    weights = None
    if layout.weight is not None:
        weights = weights_of(table.label, layout.weight, covariates["weight"])
        covariates = covariates.drop_columns(["weight"])
    notes = (*assembly.ledger.notes, *vocabulary.notes)
    return Cohort(
        assembly.matrix,
        assembly.ids,
        vocabulary.codes,
        vocabulary.names,
        vocabulary.system,
        level,
        covariates,
        replace(assembly.ledger, notes=notes),
        weights,
    )
