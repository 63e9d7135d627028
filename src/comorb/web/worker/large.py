"""Large data: records of which a file is kept instead of holding them, and runs on parts of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from comorb.errors import StorageError
from comorb.insight.runs.cohorts import AnyCohort
from comorb.model.arrays import Ints
from comorb.records.archive import CohortFile
from comorb.records.cohort import Cohort
from comorb.records.layouts.readers import READERS
from comorb.records.layouts.roles import ColumnRole, column_roles
from comorb.records.preparation import Preparation
from comorb.records.sources.opening import open_source
from comorb.records.streaming import select_cohort, write_cohort

LARGE = 1_000_000  # records from which on they are not held to be clustered
BYTES = 200_000_000  # of a text file that is taken for as many
MEMORY = "1GB"  # to read large data with
_KEPT = 3  # cohorts that rules left, of the same data


def looks_large(source: str) -> bool:
    """Tell whether a file of records is so large that it is read in parts."""
    path = Path(source)
    if not path.is_file():
        return False
    if path.suffix == ".parquet":
        try:
            return bool(pq.read_metadata(path).num_rows > LARGE)
        except (OSError, pa.ArrowException):
            return False  # whoever reads it says what is wrong
    return path.suffix in (".csv", ".tsv", ".txt") and path.stat().st_size > BYTES


def write_all(source: str, prepared: Preparation, path: Path) -> None:
    """Write all records of a file as a cohort file, in bounded memory."""
    write_cohort(source, path, replace(prepared, at_least=1), MEMORY)


def large_file(path: Path) -> CohortFile | None:
    """Return the file that is kept of all records, where these are many."""
    try:
        file = CohortFile.open(path)
    except (OSError, StorageError):
        return None
    return file if len(file) > LARGE else None


def selected_file(file: CohortFile, prepared: Preparation) -> CohortFile:
    """Return the cohort that rules leave of a file, kept beside it; all but the latest few go."""
    first = file.part(0, 0, 0)
    prepared.check(first)
    plain = json.dumps(prepared.to_dict(), sort_keys=True)
    own = Path(str(file.path))
    digest = hashlib.sha256(f"{own.name} {plain}".encode()).hexdigest()[:16]
    path = own.with_name(f"left-{digest}.parquet")
    if not path.exists() or path.stat().st_mtime < own.stat().st_mtime:
        select_cohort(file, path, prepared)
    path.touch()
    old = sorted(path.parent.glob("left-*.parquet"), key=lambda one: one.stat().st_mtime)
    for one in old[:-_KEPT]:
        one.unlink(missing_ok=True)
    return CohortFile.open(path)


def held(cohort: AnyCohort) -> Cohort:
    """Return a cohort in memory."""
    if isinstance(cohort, CohortFile):
        return cohort.load()
    assert isinstance(cohort, Cohort)  # noqa: S101 - there are no others
    return cohort


def code_counts(cohort: AnyCohort) -> Ints:
    """Return how many records have each code."""
    if isinstance(cohort, Cohort):
        return cohort.counts()
    counts = np.zeros(len(cohort.codes), dtype=np.int64)
    for load in cohort.blocks(()).loaders:
        counts += np.bincount(load().indices, minlength=len(cohort.codes))
    return counts


def covariate_types(cohort: AnyCohort) -> dict[str, pa.DataType]:
    """Return the type of each column beside the codes."""
    if isinstance(cohort, Cohort):
        schema = cohort.covariates.schema
    else:
        assert isinstance(cohort, CohortFile)  # noqa: S101 - there are no others
        schema = pq.read_schema(cohort.path)
    return {one.name: one.type for one in schema if not one.name.startswith("comorb.")}


def column_values(cohort: AnyCohort, name: str) -> pa.ChunkedArray:
    """Return a column beside the codes."""
    if isinstance(cohort, Cohort):
        return cohort.covariates[name]
    assert isinstance(cohort, CohortFile)  # noqa: S101 - there are no others
    return pq.read_table(cohort.path, columns=[name])[name]


def understood_layout(
    source: Any, prepared: Preparation, names: list[str], least: int
) -> tuple[str, str, tuple[ColumnRole, ...]]:
    """Return the layout of records, what one is, and what each column is."""
    kind, records, _ = prepared.sources(source)
    with open_source(records, MEMORY) as opened:
        plan = prepared.plan(opened, kind)
        roles = column_roles(opened, plan.stored or plan.table, plan.layout, names, least)
        return plan.layout.kind or next(iter(READERS)), plan.unit, roles
