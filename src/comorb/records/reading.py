"""Reading: from any source, layout and coding system to a cohort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from comorb.records.codes.vocabulary import Raw, Vocabulary
from comorb.records.cohort import Cohort
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.readers import plan_reading
from comorb.records.ledger import Ledger
from comorb.records.sources.opening import open_source


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
class Reading:
    """A cohort and what its source was understood to be."""

    cohort: Cohort
    source: str
    table: str
    layout: Layout
    unit: str


def read_records(
    source: Any,
    *,
    table: str | None = None,
    layout: Layout | str | None = None,
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
        The most that DuckDB may hold, such as '2GB', before it uses the disk.

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
    return open_records(source, table, layout, unit, system, level, memory).cohort


def inspect_records(
    source: Any,
    *,
    table: str | None = None,
    layout: Layout | str | None = None,
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
    read = open_records(source, table, layout, unit, system, level, memory)
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


def open_records(  # noqa: PLR0913 - all that can be said of a source
    source: Any,
    table: str | None = None,
    layout: Layout | str | None = None,
    unit: str | None = None,
    system: str | None = None,
    level: str | Sequence[str] = "category",
    memory: str | None = None,
    keep_empty: bool = False,
) -> Reading:
    """Read records into a cohort, with what was understood; the parameters of `read_records`."""
    given = layout if isinstance(layout, Layout) else Layout(kind=layout)
    levels = (level,) if isinstance(level, str) else tuple(level)
    with open_source(source, memory) as opened:
        plan = plan_reading(opened, table, given, unit, whole=True, keep_empty=keep_empty)

        def encode(raws: dict[Raw, int]) -> Vocabulary:
            return plan.vocabulary(raws, system, levels)

        assembly = plan.reader.read(opened, plan, encode)
        plan.check_usable(assembly.matrix.shape[0], assembly.vocabulary)
        cohort = plan.cohort(assembly, levels, Cohort)
        return Reading(cohort, opened.label, plan.table.label, plan.layout, plan.unit)
