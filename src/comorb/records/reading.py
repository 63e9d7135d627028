"""Reading: all records of a source as a cohort, or what they would give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from comorb.records.asked import as_asked
from comorb.records.beside import MAIN
from comorb.records.codes.own_map import CodeMap, opened_map
from comorb.records.cohort import Cohort
from comorb.records.layouts.description import Layout
from comorb.records.layouts.roles import LEAST, ColumnRole
from comorb.records.ledger import Ledger
from comorb.records.preparation import Preparation


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

    def to_dict(self) -> dict[str, Any]:
        """Return the inspection as plain lists and dictionaries, for JSON."""
        return asdict(self)


def read_records(  # noqa: PLR0913 - one parameter for each option
    source: Any,
    *,
    kinds: str | Sequence[str] = (),
    table: str | None = None,
    layout: Layout | str | Mapping[str, Layout] | None = None,
    unit: str | None = None,
    system: str | None = None,
    level: str | Sequence[str] = "category",
    code_map: CodeMap | str | Path | None = None,
    chronic: bool = False,
    scores: str | Sequence[str] = (),
    features: Mapping[str, str] | Sequence[str] = (),
    memory: str | None = None,
) -> Cohort:
    """Read records into a cohort.

    Parameters
    ----------
    source : path, str, or a pandas, polars or Arrow table, or a mapping of kinds to such
        Of kinds, 'diagnosis' has the records, 'visit' and 'patient' covariates, others more codes.
    kinds : str or sequence of str
        Tables of the source to read together: 'diagnosis', 'drug', 'procedure', 'visit', 'patient'.
    table : str, optional
        Which table of a database or a folder to read, or a query that selects.
    layout : Layout, str or mapping, optional
        What is known about the layout, or those of several kinds; the rest is recognised.
    unit : 'visit' or 'patient', optional
        What a record is: a visit where nothing is said, a patient, united, in OMOP and FHIR.
    system : str, optional
        The coding system, such as 'icd10cm', or 'icd10cm drug:atc' of two kinds; else recognised.
    level : str or sequence of str, default 'category'
        'category', 'full', 'group', 'chapter' or 'common', or several of them.
    code_map : CodeMap, path or str, optional
        A map of your own from codes to groups, which are then the features; see `read_map`.
    chronic : bool, default False
        Whether codes of chronic conditions alone become features.
    scores : str or sequence of str
        'charlson', 'charlson2011' and 'elixhauser' become covariates, from the full codes.
    features : mapping or sequence of str
        Covariates that the model learns from too, as ``{"age": "number"}`` or ``["age", "sex"]``.
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
    preparation = preparing(kinds, table, layout, unit, system, level, code_map, chronic, scores)
    preparation = replace(preparation, features=as_asked(features))
    return preparation.featured(preparation.read(source, memory))


def inspect_records(  # noqa: PLR0913 - one parameter for each option
    source: Any,
    *,
    kinds: str | Sequence[str] = (),
    table: str | None = None,
    layout: Layout | str | Mapping[str, Layout] | None = None,
    unit: str | None = None,
    system: str | None = None,
    level: str | Sequence[str] = "category",
    code_map: CodeMap | str | Path | None = None,
    chronic: bool = False,
    scores: str | Sequence[str] = (),
    features: Mapping[str, str] | Sequence[str] = (),
    memory: str | None = None,
) -> Inspection:
    """Say what `read_records` would make of a source; the parameters are the same.

    Returns
    -------
    Inspection
        The layout, what each column is, the coding system, counts and problems.
    """
    preparation = preparing(kinds, table, layout, unit, system, level, code_map, chronic, scores)
    preparation = replace(preparation, features=as_asked(features))
    read = preparation.open(source, memory, LEAST)
    cohort = preparation.featured(read.cohort)
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
        read.columns,
    )


def preparing(  # noqa: PLR0913 - one parameter for each option
    kinds: str | Sequence[str],
    table: str | None,
    layout: Layout | str | Mapping[str, Layout] | None,
    unit: str | None,
    system: str | None,
    level: str | Sequence[str],
    code_map: CodeMap | str | Path | None,
    chronic: bool,
    scores: str | Sequence[str],
) -> Preparation:
    """Return how records are read that these options describe."""
    layouts = dict(layout) if isinstance(layout, Mapping) else {}
    own = layouts.pop(MAIN, Layout()) if isinstance(layout, Mapping) else layout
    return Preparation(
        table,
        own if isinstance(own, Layout) else Layout(kind=own),
        unit,
        system,
        (level,) if isinstance(level, str) else tuple(level),
        code_map=opened_map(code_map),
        chronic=chronic,
        scores=(scores,) if isinstance(scores, str) else tuple(scores),
        kinds=(kinds,) if isinstance(kinds, str) else tuple(kinds),
        layouts=tuple(layouts.items()),
    )
