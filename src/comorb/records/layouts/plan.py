"""Plan: which table of a source is read, as which layout, and how it becomes a cohort."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TypeVar

import pyarrow as pa

from comorb.errors import ComorbWarning, RecordsError
from comorb.records.codes.vocabulary import Raw, Vocabulary, build_vocabulary
from comorb.records.cohort import Cohort
from comorb.records.layouts.assembly import Assembly, Encode
from comorb.records.layouts.covariates import weights_of
from comorb.records.layouts.layout import Layout, Sample, recognise_layout
from comorb.records.layouts.longwise import read_long
from comorb.records.layouts.rowwise import read_rowwise
from comorb.records.layouts.standards import Standard, fhir, flatten, omop, resource_type
from comorb.records.sources.databases import is_query
from comorb.records.sources.duck import Source, Table, as_text, quoted

C = TypeVar("C", bound=Cohort)

_SAMPLE_ROWS = 1000


@dataclass(frozen=True)
class Plan:
    """How a source is read: the table with its layout, by the standard it follows, and the unit."""

    standard: Standard
    unit: str

    @property
    def table(self) -> Table:
        """The table that is read."""
        return self.standard.table

    @property
    def layout(self) -> Layout:
        """Which of its columns hold what."""
        return self.standard.layout

    @property
    def by_code(self) -> bool:
        """Whether a row is one code of a record, and not a record."""
        return self.layout.kind in ("long", "omop", "fhir")

    def vocabulary(
        self, raws: dict[Raw, int], system: str | None, levels: Sequence[str]
    ) -> Vocabulary:
        """Return the features that the codes of the source become."""
        return build_vocabulary(raws, system or self.standard.system, levels, self.standard.titles)

    def assemble(self, source: Source, encode: Encode) -> Assembly:
        """Read the table."""
        if self.by_code:
            removed = self.standard.removed
            return read_long(source, self.table, self.layout, self.unit, encode, removed)
        return read_rowwise(source, self.table, self.layout, self.unit, encode)

    def cohort(self, assembly: Assembly, levels: Sequence[str], kind: type[C]) -> C:
        """Return what was read as a cohort, or a kind of it."""
        vocabulary, covariates = assembly.vocabulary, assembly.covariates
        weights = None
        if self.layout.weight is not None:
            weights = weights_of(self.table.label, self.layout.weight, covariates["weight"])
            covariates = covariates.drop_columns(["weight"])
        notes = (*assembly.ledger.notes, *vocabulary.notes)
        return kind(
            assembly.matrix,
            assembly.ids,
            vocabulary.codes,
            vocabulary.names,
            vocabulary.system,
            "+".join(levels),
            covariates,
            replace(assembly.ledger, notes=notes),
            weights,
        )


def plan_reading(source: Source, table: str | None, layout: Layout, unit: str | None) -> Plan:
    """Find out how to read a source; what is said about it stands."""
    if unit not in (None, "visit", "patient"):
        raise RecordsError(f"Expected a unit of 'visit' or 'patient'; got {unit!r}.")
    standard = _understand(source, _choose(source, table), layout)
    by_patient = standard.layout.kind in ("omop", "fhir")
    return Plan(standard, unit or ("patient" if by_patient else "visit"))


def check_usable(plan: Plan, records: int, vocabulary: Vocabulary) -> None:
    """Refuse a source without a usable code, and warn when two coding systems are mixed."""
    label = plan.table.label
    if not records:
        columns = ", ".join(map(repr, (plan.layout.codes or ())[:12]))
        raise RecordsError(
            f"{label}: the columns {columns} hold no usable code of {vocabulary.system}; check the "
            "columns and the coding system."
        )
    if vocabulary.warning:
        warnings.warn(f"{label}: {vocabulary.warning}.", ComorbWarning, stacklevel=5)


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
