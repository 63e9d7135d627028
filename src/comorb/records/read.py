"""Read: all records of a source as a cohort, and inspection and counts without one."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from comorb.errors import EmptyCohortError, RecordsError
from comorb.fields import take_options
from comorb.model.arrays import Ints, Mask
from comorb.records.cohort import Cohort, follow_rules
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.plan import MIN_CELL, ColumnRole
from comorb.records.ledger import Ledger, relaxed_note
from comorb.records.spec import READING, CohortSpec

FIRST_RECORDS = 1 << 17  # which have most codes


@dataclass(frozen=True, eq=False)
class MarkedCohort(Cohort):
    """A cohort in which rules mark the records that they leave, and take out none.

    ``left`` marks them, all where it is None; ``marked_ledger`` has a line for each rule.
    """

    left: Mask | None = None
    marked_ledger: Ledger = field(default_factory=Ledger)

    @classmethod
    def of(cls, cohort: Cohort) -> MarkedCohort:
        """Return a cohort with every record marked."""
        return cls(**vars(cohort), marked_ledger=cohort.ledger)

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

    def present(self) -> Mask:
        """Return which codes any of the records that are left has."""
        if self.left is None:
            return self.counts() > 0
        # Most codes are among the first records; only the others are looked for in all.
        matrix = self.matrix
        first = int(matrix.indptr[min(FIRST_RECORDS, len(self))])
        sizes = np.diff(matrix.indptr[: FIRST_RECORDS + 1])
        early = matrix.indices[:first][np.repeat(self.left[:FIRST_RECORDS], sizes)]
        found = np.bincount(early, minlength=len(self.codes)) > 0
        places = np.flatnonzero(~found[matrix.indices])
        rows = np.searchsorted(matrix.indptr, places, side="right") - 1
        found[matrix.indices[places[self.left[rows]]]] = True
        return found

    def _code_counts(self) -> Ints:
        counts = super()._code_counts()
        return counts if self.left is None else counts[self.left]

    def _with_least(self, least: int) -> Cohort:
        ledger = self.marked_ledger.noted(relaxed_note(least))
        return replace(self, least_codes=least, marked_ledger=ledger)

    def _keep(self, mask: Mask, rule: str) -> Cohort:
        both = self.marked & mask
        if not both.any():
            raise EmptyCohortError("cohort.empty", rule=rule)
        counts = int(self.marked.sum()), int(both.sum())
        ledger = self.marked_ledger.add("records", rule, *counts)
        return replace(self, left=both, marked_ledger=ledger)


def count_left(cohort: Cohort, spec: CohortSpec) -> tuple[int, int, Ledger]:
    """Return how many records and codes the rules leave, and the ledger.

    >>> from comorb.records.datasets import heart_failure
    >>> count_left(heart_failure(), CohortSpec(having=("250",), drop_rare=2000))[:2]
    (8777, 8)
    """
    if spec.feature_specs(cohort):
        made = spec.apply(cohort)
        return len(made), len(made.codes), made.ledger
    cohort.check_codes(*spec.having, *spec.without, *spec.drop_codes)
    selected = spec.select(MarkedCohort.of(cohort))
    assert isinstance(selected, MarkedCohort)  # noqa: S101 - no rule makes another cohort of it
    rules = spec.drop_rules(selected, selected.counts)
    left, ledger = follow_rules(rules, selected.present(), selected.marked_ledger)
    if not (left.any() or cohort.features):
        raise RecordsError("cohort.no_code_left")
    return ledger.left("records") or 0, int(left.sum()), ledger


@dataclass(frozen=True)
class Inspection:
    """How a source is read, and its cohort in figures.

    ``records``, ``features`` and ``mentions`` are the rows, columns and ones of the cohort;
    ``most_common`` are the ten most common codes, each with its name and its records; ``columns``
    has the role of each column.
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
        """Read a source by a specification, and return what came of it."""
        read = spec.open(source, memory, MIN_CELL)
        cohort = spec.add_features(read.cohort)
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
    return spec.add_features(spec.read(source, memory))


@take_options(CohortSpec, *READING)
def inspect_records(source: Any, *, memory: str | None = None, **options: Any) -> Inspection:
    """Inspect what `read_records` makes of a source.

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
