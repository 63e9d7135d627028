"""Plan: how one table is read, and the reader of its layout that does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from comorb.errors import RecordsError
from comorb.records.codes.vocabulary import Raw, Vocabulary, build_vocabulary
from comorb.records.cohort import Cohort
from comorb.records.layouts.assembly import Assembly, Encode
from comorb.records.layouts.columns import Columns
from comorb.records.layouts.covariates import settled, weights_of
from comorb.records.layouts.layout import Layout
from comorb.records.sources.duck import OpenedSource, SourceTable
from comorb.records.values import Meanings

C = TypeVar("C", bound=Cohort)


@dataclass(frozen=True)
class Plan:
    """How a table is read.

    Attributes
    ----------
    reader : Reader
        What reads this layout.
    table : SourceTable
        The table, already joined and filtered.
    layout : Layout
        Which of its columns hold what.
    unit : str
        What a record is, 'visit' or 'patient'.
    removed : mapping of str to int
        The rows that were left out of the table, by the reason.
    titles : mapping of str to str
        Names of codes that the source brings along.
    system : str, optional
        The coding system, where the source says it.
    meanings : mapping of str to Meanings, optional
        What the texts of the covariates mean, where that was decided before reading.
    notes : tuple of str
        What the ledger says of how the table was understood.
    keep_empty : bool
        Whether records without a usable code are kept.
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
    keep_empty: bool = False

    @property
    def by_code(self) -> bool:
        """Whether a row is one code of a record, and not a record."""
        return self.reader.by_code

    @property
    def id_column(self) -> str | None:
        """The column that identifies a record of the unit, if there is one."""
        if self.unit == "patient" and self.layout.patient is None:
            raise RecordsError(
                f"{self.table.label} has no column that was recognised as the patient's id, which "
                "unit='patient' needs; name it."
            )
        patient = self.layout.patient
        return patient if self.unit == "patient" else self.layout.record or patient

    def settled(self, source: OpenedSource) -> Plan:
        """Return the plan with the types of the covariates decided over the whole table.

        Parts of a table have to be read so: what is decided by the values of a part may differ
        from what the whole says.
        """
        return replace(self, meanings=settled(source, self.table, self.layout))

    def vocabulary(
        self, raws: dict[Raw, int], system: str | None, levels: Sequence[str]
    ) -> Vocabulary:
        """Return the features that the codes of the source become."""
        return build_vocabulary(raws, system or self.system, levels, self.titles)

    def cohort(self, assembly: Assembly, levels: Sequence[str], kind: type[C]) -> C:
        """Return what was read as a cohort, or a kind of it."""
        vocabulary, covariates = assembly.vocabulary, assembly.covariates
        weights = None
        if self.layout.weight is not None:
            weights = weights_of(self.table.label, self.layout.weight, covariates["weight"])
            covariates = covariates.drop_columns(["weight"])
        notes = (*self.notes, *assembly.ledger.notes, *vocabulary.notes)
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
            least_codes=self.reader.least_codes,
        )

    def check_usable(self, records: int, vocabulary: Vocabulary) -> None:
        """Refuse a source without a usable code."""
        if not records:
            columns = ", ".join(map(repr, (self.layout.codes or ())[:12]))
            raise RecordsError(
                f"{self.table.label}: the columns {columns} hold no usable code of "
                f"{vocabulary.system}; check the columns and the coding system."
            )


@dataclass(frozen=True)
class Reader:
    """Reads the tables of one layout.

    Attributes
    ----------
    kind : str
        The name of the layout.
    understand : callable
        Returns the plan for a table, or None when it isn't laid out so.
    read, count : callable
        Return what a table holds, and how often each raw code is mentioned in it.
    unit : str
        What a record is when nothing is said.
    by_code : bool
        Whether a row is one code of a record, and not a record.
    of_json : bool
        Whether it reads JSON objects, and not rows and columns.
    least_codes : int
        How many codes a record must have to be kept, when nothing is said.
    """

    kind: str
    understand: Callable[[OpenedSource, SourceTable, Columns], Plan | None]
    read: Callable[[OpenedSource, Plan, Encode], Assembly]
    count: Callable[[OpenedSource, Plan], dict[Raw, int]]
    unit: str = "visit"
    by_code: bool = False
    of_json: bool = False
    least_codes: int = 3
