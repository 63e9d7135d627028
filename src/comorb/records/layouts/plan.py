"""Plan: how one table is read, and the reader of its layout that does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from comorb.errors import RecordsError
from comorb.records.asked import Asked
from comorb.records.codes.coding import Coding
from comorb.records.codes.editions import PROBABLY
from comorb.records.codes.systems import PROCEDURES, edition
from comorb.records.codes.vocabulary import Raw, Vocabulary, build_vocabulary
from comorb.records.cohort import Cohort
from comorb.records.layouts.assembly import Assembly, Encode
from comorb.records.layouts.columns import Columns
from comorb.records.layouts.covariates import shown_names, weights_of
from comorb.records.layouts.description import Layout
from comorb.records.sources.duck import OpenedSource, SourceTable
from comorb.records.values import Meanings

C = TypeVar("C", bound=Cohort)


@dataclass(frozen=True)
class Plan:
    """How a table, already joined and filtered, is read.

    ``removed`` are the rows that were left out of it, by the reason; ``titles`` and ``system`` are
    what the source says of its codes; ``meanings`` are given where what the texts of covariates
    mean was decided before reading; ``notes`` are for the ledger; ``holds`` says what the codes
    are of when they aren't diagnoses. Records without a usable code are left out unless
    ``keep_empty``. ``stored`` is the table with the columns and rows of its source; ``asked`` are
    items that become features. ``keys`` are the columns of the source with the ids of patient and
    record, where the table has others; ``beside`` are the columns that other tables are read by,
    their keys first.
    """

    reader: Reader
    table: SourceTable
    layout: Layout
    unit: str = "visit"
    removed: Mapping[str, int] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    system: str | None = None
    meanings: Mapping[str, Meanings] | None = None
    notes: tuple[str, ...] = ()
    holds: str = ""
    keep_empty: bool = False
    stored: SourceTable | None = None
    asked: tuple[Asked, ...] = ()
    keys: tuple[str | None, str | None] | None = None
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def id_column(self) -> str | None:
        """The column that identifies a record of the unit; a row a code needs one."""
        patient = self.layout.patient
        if self.unit == "patient" and patient is None:
            raise RecordsError(
                f"{self.table.label} has no column that was recognised as the patient's id, which "
                "unit='patient' needs; name it."
            )
        column = patient if self.unit == "patient" else self.layout.record or patient
        if column is None and self.reader.by_code:
            raise RecordsError(
                f"{self.table.label} has no column that was recognised as the id of a visit or a "
                "patient, which a long layout needs; name it."
            )
        return column

    def without_ids(self) -> RecordsError:
        """Return the error of a table in which no row says of which record it is."""
        united = "read with unit='patient', or " if self.unit == "visit" else ""
        return RecordsError(
            f"{self.table.label} holds no row with an id of a {self.unit}; {united}name the column "
            "that has it."
        )

    def doubts(self, source: OpenedSource) -> tuple[str, ...]:
        """Return what is doubtful about the codes because of how their source stores them."""
        columns = source.stored_as_numbers(self.table, self.layout.codes or ())
        if self.reader.kind == "binary" or not columns:
            return ()
        names = ", ".join(map(repr, columns[:12]))
        return (
            f"the codes of {names} are stored as numbers, which lose zeros: 250.10 can't be told "
            "from 250.1, nor 038 from 38",
        )

    def vocabulary(self, raws: dict[Raw, int], system: str | None, coding: Coding) -> Vocabulary:
        """Return the features that the codes of the source become."""
        vocabulary = build_vocabulary(raws, system or self.system, coding, self.titles)
        notes = []
        if self.of_procedures and not system:
            notes.append(
                f"the codes of {self.table.label} are procedures, by their names or their values, "
                f"and were read as {vocabulary.system}; name the coding system where they are "
                "diagnoses"
            )
        in_a_cell = self.reader.by_code and self.layout.separator is not None
        if in_a_cell and "+" in vocabulary.system and "common" not in coding.levels:
            notes.append(
                "a cell may hold codes of two systems for one condition, which are two features; "
                "the level 'common' counts them once"
            )
        return replace(vocabulary, notes=(*notes, *vocabulary.notes))

    @property
    def of_procedures(self) -> bool:
        """Whether the codes are known to be procedures."""
        return self.system in PROCEDURES.values()

    def edition(self, text: str | None) -> str | None:
        """Return the coding system that a text of the version column means, if it says one."""
        if text and text.endswith(PROBABLY):
            return text
        key = edition(text) if text else None
        return PROCEDURES.get(key, key) if key and self.of_procedures else key

    def cohort(self, assembly: Assembly, coding: Coding, kind: type[C]) -> C:
        """Return what was read as a cohort, or a kind of it."""
        vocabulary = assembly.vocabulary
        matrix, covariates = vocabulary.split(assembly.matrix, assembly.covariates)
        weights = None
        if self.layout.weight is not None:
            weights = weights_of(self.table.label, self.layout.weight, covariates["weight"])
            covariates = covariates.drop_columns(["weight"])
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
            asked=self.asked,
            patient=self._patient(covariates.column_names),
        )

    def _patient(self, covariates: Sequence[str]) -> str | None:
        """Return the covariate with the ids of patients, where records are visits."""
        names = shown_names([self.layout.patient], self.layout) if self.layout.patient else {}
        return next((name for name in names.values() if name in covariates), None)

    def check_usable(self, assembly: Assembly) -> None:
        """Refuse a source without a usable code."""
        without = not assembly.vocabulary.codes and not (self.asked or self.layout.features)
        if not len(assembly.ids) or without:
            columns = ", ".join(map(repr, (self.layout.codes or ())[:12]))
            raise RecordsError(
                f"{self.table.label}: the columns {columns} hold no usable code of "
                f"{assembly.vocabulary.system}; check the columns and the coding system."
            )


@dataclass(frozen=True)
class Reader:
    """Reads the tables of one layout.

    ``understand`` returns the plan for a table, or None when it isn't laid out so; ``count`` how
    often each raw code is mentioned. ``unit`` is what a record is when nothing is said; with
    ``by_code``, a row is one code and not a record; ``of_json`` is for objects, not for columns.
    ``least_codes`` is how many codes a record needs to be of use.
    """

    kind: str
    understand: Callable[[OpenedSource, SourceTable, Columns], Plan | None]
    read: Callable[[OpenedSource, Plan, Encode], Assembly]
    count: Callable[[OpenedSource, Plan], dict[Raw, int]]
    unit: str = "visit"
    by_code: bool = False
    of_json: bool = False
    least_codes: int = 3
