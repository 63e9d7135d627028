"""Read: all records of a source as a cohort, or what they would give."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from comorb.errors import EmptyCohortError, RecordsError
from comorb.fields import take_options
from comorb.messages import Message
from comorb.model.arrays import Ints, Mask
from comorb.records.cohort import Cohort, follow_rules
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.plan import MIN_CELL, ColumnRole
from comorb.records.ledger import Ledger
from comorb.records.spec import READING, CohortSpec

FIRST = 1 << 17  # records among which most codes are met


@dataclass(frozen=True, eq=False)
class Counted(Cohort):
    """A cohort of which rules mark the records that they leave, and take none."""

    left: Mask | None = None  # which records are; all where it is None
    told: Ledger = field(default_factory=Ledger)  # what each rule left out

    @classmethod
    def of(cls, cohort: Cohort) -> Counted:
        """Return a cohort to count in."""
        fields: dict[str, Any] = {name: getattr(cohort, name) for name in vars(cohort)}
        return cls(**fields, told=cohort.ledger)

    @property
    def marked(self) -> Mask:
        """Which records are left."""
        return np.ones(len(self), dtype=bool) if self.left is None else self.left

    def counts(self) -> Ints:
        """Return how many of the records that are left have each code."""
        if self.left is None:
            return super().counts()
        own = self.matrix.indices[np.repeat(self.left, np.diff(self.matrix.indptr))]
        return np.bincount(own, minlength=len(self.codes))

    def carried(self) -> Mask:
        """Return which codes any of the records that are left has.

        Most are met among the first records; the others are looked for in all.
        """
        if self.left is None:
            return self.counts() > 0
        matrix, width = self.matrix, len(self.codes)
        first = int(matrix.indptr[min(FIRST, len(self))])
        early = np.repeat(self.left[:FIRST], np.diff(matrix.indptr[: FIRST + 1]))
        met = np.bincount(matrix.indices[:first][early], minlength=width) > 0
        places = np.flatnonzero(~met[matrix.indices])
        rows = np.searchsorted(matrix.indptr, places, side="right") - 1
        met[matrix.indices[places[self.left[rows]]]] = True
        return met

    def _keep(self, mask: Mask, rule: str) -> Cohort:
        before = len(self) if self.left is None else int(self.left.sum())
        both = mask if self.left is None else self.left & mask
        if not both.any():
            raise EmptyCohortError("cohort.empty", rule=rule)
        told = self.told.add("records", rule, before, int(both.sum()))
        return replace(self, left=both, told=told)


def count_left(cohort: Cohort, spec: CohortSpec) -> tuple[int, int, Ledger]:
    """Return how many records and codes the rules leave, and what each rule left out.

    >>> from comorb.records.datasets import heart_failure
    >>> count_left(heart_failure(), CohortSpec(having=("250",), drop_rare=2000))[:2]
    (8777, 8)
    """
    if spec.asked(cohort):
        made = spec.apply(cohort)
        return len(made), len(made.codes), made.ledger
    counter = Counted.of(cohort)
    counter.check_codes(*spec.having, *spec.without, *spec.drop_codes)
    selected = spec.select(counter)
    assert isinstance(selected, Counted)  # noqa: S101 - no rule makes another cohort of it
    left = selected.carried()
    told = selected.told.less("features", Message("ledger.in_no_record"), int((~left).sum()))
    left, told = follow_rules(spec.dropped(selected, selected.counts), left, told)
    if not (left.any() or cohort.features):
        raise RecordsError("cohort.no_code_left")
    return told.left("records") or 0, int(left.sum()), told


@dataclass(frozen=True)
class Inspection:
    """What reading a source would give: how it is understood, and the cohort in figures.

    ``records``, ``features`` and ``mentions`` are the rows, columns and ones of the cohort;
    ``most_common`` are the ten most common codes, each with its name and its records; ``columns``
    says of each column what it is.
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
    columns: tuple[ColumnRole, ...] = ()

    @classmethod
    def of(cls, source: Any, spec: CohortSpec, memory: str | None = None) -> Inspection:
        """Say what reading a source as a specification asks would give."""
        read = spec.open(source, memory, MIN_CELL)
        cohort = spec.featured(read.cohort)
        counts = cohort.counts()
        top = sorted(range(len(counts)), key=lambda i: (-counts[i], cohort.codes[i]))[:10]
        return cls(
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
            read.columns,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the inspection as plain lists and dictionaries, for JSON."""
        return asdict(self)


@take_options(CohortSpec, *READING)
def read_records(source: Any, *, memory: str | None = None, **options: Any) -> Cohort:
    """Read records into a cohort.

    Parameters
    ----------
    source : path, str, or a pandas, polars or Arrow table, or a mapping of kinds to such
        Of kinds, 'diagnosis' has the records, 'visit' and 'patient' covariates, others more codes.
    {options}
    memory : str, optional
        The most that DuckDB may hold, such as '2GB', before it uses the disk.

    Returns
    -------
    Cohort
        The records that have at least one usable code. The ledger accounts for the others. A source
        that can't be read whole is a `RecordsError`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows = pa.table({"id": ["a", "a", "b"], "icd_code": ["428.0", "250.00", "428.1"]})
    >>> read_records(rows).codes
    ('250', '428')
    """
    spec = CohortSpec.of(**options)
    return spec.featured(spec.read(source, memory))


@take_options(CohortSpec, *READING)
def inspect_records(source: Any, *, memory: str | None = None, **options: Any) -> Inspection:
    """Say what `read_records` would make of a source.

    Parameters
    ----------
    source : path, str, or a pandas, polars or Arrow table, or a mapping of kinds to such
        As in `read_records`.
    {options}
    memory : str, optional
        As in `read_records`.

    Returns
    -------
    Inspection
        The layout, what each column is, the coding system, counts and problems.
    """
    return Inspection.of(source, CohortSpec.of(**options), memory)
