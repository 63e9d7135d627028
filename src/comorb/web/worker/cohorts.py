"""Reading, in the worker: data to cohorts, kept in memory and as files; what was understood."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from comorb.errors import RecordsError
from comorb.insight.profile.labels import label
from comorb.insight.profile.suppression import merge_lines
from comorb.records import datasets
from comorb.records.archive import load_cohort, save_cohort
from comorb.records.cohort import Cohort
from comorb.records.layouts.layout import Layout
from comorb.records.preparation import Preparation
from comorb.records.reading import inspect_records

Plain = dict[str, Any]
BUILT_IN = {"heart_failure": datasets.heart_failure, "tertiary": datasets.tertiary}
_TRUTH = "true_cluster"


def preparation(data: Plain, rules: Plain) -> Preparation:
    """Return how data are read and which of their records are kept."""
    return Preparation.from_dict({**data["reading"], **rules})


def whole_cohort(data: Plain, rules: Plain) -> Cohort:
    """Return all records of some data at the level that the rules ask for."""
    if data["kind"] == "builtin":
        return BUILT_IN[data["source"]]()
    reading = {**data["reading"], "level": rules.get("level", ["category"])}
    return _read(data["source"], data["folder"], json.dumps(reading, sort_keys=True))


@lru_cache(maxsize=2)
def _read(source: str, folder: str, reading: str) -> Cohort:
    name = hashlib.sha256(f"{source}\n{reading}".encode()).hexdigest()[:16]
    path = Path(folder) / f"cohort-{name}.parquet"
    if path.exists() and path.stat().st_mtime >= Path(source).stat().st_mtime:
        return load_cohort(path)
    cohort = Preparation.from_dict(json.loads(reading)).read(source)
    save_cohort(cohort, path)
    return cohort


def chosen_cohort(task: Plain) -> Cohort:
    """Return the records that a run is on, still with all their codes."""
    cohort = whole_cohort(task["data"], task["rules"])
    within = task.get("within")
    if not within:
        return cohort
    table = assignments(Path(within["folder"]))
    number = within["cluster"]
    inside = table.filter(pc.equal(table["cluster"], number))
    return cohort.among(inside["id"].combine_chunks(), f"inside cluster {number}")


def assignments(folder: Path) -> pa.Table:
    """Return the number of the cluster of each record of a run."""
    path = folder / "assignments.csv"
    if not path.exists():
        raise RecordsError("The run that this one builds on was deleted; start from another.")
    types = {"id": pa.string(), "cluster": pa.int64(), "confidence": pa.float64()}
    return pa_csv.read_csv(path, convert_options=pa_csv.ConvertOptions(column_types=types))


def outcomes(data: Plain, cohort: Cohort) -> list[str]:
    """Return the columns to sum up per cluster: those that were asked for, or all."""
    asked = data.get("outcomes")
    return [
        name
        for name in cohort.covariates.column_names
        if name != _TRUTH and (asked is None or name in asked)
    ]


def check_size(records: int, least: int) -> None:
    """Refuse so few records that nothing of them could be shown."""
    if records < max(least, 2):
        raise RecordsError(
            f"These are too few records: {max(least, 2)} is the least that can be shown."
        )


def understand(task: Plain) -> Plain:
    """Say what some data were understood to be, without small counts."""
    data, least = task["data"], task["min_cell"]
    if data["kind"] == "builtin":
        cohort = whole_cohort(data, {})
        layout, unit = Layout(kind="binary"), "visit"
    else:
        found = inspect_records(data["source"], **_reading(data))
        cohort, layout, unit = whole_cohort(data, {}), found.layout, found.unit
    check_size(len(cohort), least)
    counts = cohort.counts()
    top = sorted(range(len(counts)), key=lambda i: -counts[i])[:10]
    columns = [*(layout.codes or ()), *layout.roles.values()]
    names = [name for name in cohort.covariates.column_names if name != _TRUTH]
    return {
        "layout": layout.kind,
        "roles": layout.roles,
        "code_columns": list(layout.codes or ()),
        "columns": sorted({*columns, *(set(names) - set(layout.roles))}),
        "unit": unit,
        "system": cohort.system,
        "records": len(cohort),
        "features": len(cohort.codes),
        "mentions": int(cohort.matrix.nnz),
        "common": [
            {
                "code": cohort.codes[i],
                "name": label(cohort.codes[i], cohort.names[i], cohort.system),
                "records": int(counts[i]) if counts[i] >= least else None,
            }
            for i in top
        ],
        "covariates": names,
        "sexes": _values(cohort, "sex", least),
        "age": "age" in names,
        "dates": "date" in names and pa.types.is_date(cohort.covariates["date"].type),
        "lines": _lines(cohort, least),
        "notes": list(cohort.ledger.notes),
        "problems": [
            {"row": problem.row, "column": problem.column, "reason": problem.reason}
            for problem in cohort.ledger.problems[:20]
        ],
    }


def list_codes(task: Plain) -> list[list[Any]]:
    """Return each code of some data with its names and its records, most common first."""
    cohort = whole_cohort(task["data"], task["rules"])
    counts = cohort.counts()
    return [
        [
            cohort.codes[i],
            label(cohort.codes[i], cohort.names[i], cohort.system),
            cohort.names[i],
            int(counts[i]) if counts[i] >= task["min_cell"] else None,
        ]
        for i in sorted(range(len(counts)), key=lambda i: (-counts[i], cohort.codes[i]))
    ]


def measure_size(task: Plain) -> Plain:
    """Say how many records and codes the rules leave, and what each rule left out."""
    rules = preparation(task["data"], task["rules"])
    cohort = rules.drop(rules.select(chosen_cohort(task)))
    least = task["min_cell"]
    return {
        "records": len(cohort) if len(cohort) >= least else None,
        "features": len(cohort.codes),
        "lines": _lines(cohort, least),
    }


def _reading(data: Plain) -> Plain:
    asked = preparation(data, {})
    return {
        "table": asked.table,
        "layout": asked.layout,
        "unit": asked.unit,
        "system": asked.system,
    }


def _lines(cohort: Cohort, least: int) -> list[Plain]:
    return [
        {"unit": line.unit, "rule": line.rule, "before": line.before, "after": line.after}
        for line in merge_lines(cohort.ledger.lines, least)
    ]


def _values(cohort: Cohort, name: str, least: int) -> list[str]:
    if name not in cohort.covariates.column_names:
        return []
    counted = pc.value_counts(pc.cast(cohort.covariates[name], pa.string()).drop_null())
    return sorted(row["values"] for row in counted.to_pylist() if row["counts"] >= least)
