"""Cohorts of the explorer: read once, kept in memory and as files; what was understood."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import RecordsError
from comorb.insight.profile.labels import label
from comorb.insight.profile.suppression import merge_lines
from comorb.insight.runs.folder import RunFolder
from comorb.records import datasets
from comorb.records.archive import load_cohort, save_cohort
from comorb.records.codes.own_map import CodeMap, read_map
from comorb.records.codes.scores import SCORES
from comorb.records.codes.systems import SYSTEMS
from comorb.records.cohort import Cohort
from comorb.records.layouts.description import Layout
from comorb.records.layouts.readers import READERS
from comorb.records.preparation import Preparation, Reading
from comorb.web.worker.messages import (
    CountCohort,
    Data,
    DescribeColumns,
    ListCodes,
    MakeRun,
    ReadMap,
    Rules,
    Understand,
)

Plain = dict[str, Any]

BUILT_IN = {"heart_failure": datasets.heart_failure, "tertiary": datasets.tertiary}
_TRUTH = "true_cluster"
_CODING = ("level", "code_map", "chronic", "scores")


def preparation(data: Data, rules: Rules) -> Preparation:
    """Return how data are read and which of their records are kept."""
    return _prepared(data.folder, {**data.reading, **rules})


def _prepared(folder: str, plain: Plain) -> Preparation:
    if "code_map" in plain:
        plain = plain | {"code_map": _own_map(folder, plain["code_map"]).to_dict()}
    return Preparation.from_dict(plain)


def _own_map(folder: str, key: str) -> CodeMap:
    """Return a map that was given, under the name that its file had."""
    files = sorted((Path(folder) / "maps" / key).glob("*"))
    if not files:
        raise RecordsError("The map of codes isn't there any more; give it again.")
    return replace(read_map(files[0]), file=files[0].name)


def read_own_map(task: ReadMap) -> Plain:
    """Say what a map holds."""
    found = read_map(task.path)
    groups, notes = len(found.titles), list(found.notes)
    return {"key": found.digest, "name": found.name, "groups": groups, "notes": notes}


def whole_cohort(data: Data, rules: Rules) -> Cohort:
    """Return all records of some data with the codes that rules ask for, read once and kept."""
    if data.kind == "builtin":
        return BUILT_IN[data.source]()
    reading = json.dumps(_reading(data, rules), sort_keys=True)
    return _kept(data.source, data.folder, reading, Path(data.source).stat().st_mtime_ns)


def _reading(data: Data, rules: Rules) -> Plain:
    """Return what of the rules decides how data are read."""
    coding = {key: rules[key] for key in _CODING if rules.get(key)}
    return {**data.reading, "level": ["category"], **coding}


@lru_cache(maxsize=2)
def _kept(source: str, folder: str, reading: str, _: int) -> Cohort:
    path = _cohort_file(source, folder, reading)
    if not path.exists() or path.stat().st_mtime < Path(source).stat().st_mtime:
        save_cohort(_prepared(folder, json.loads(reading)).read(source), path)
    return load_cohort(path)


def _cohort_file(source: str, folder: str, reading: str) -> Path:
    name = hashlib.sha256(f"{source}\n{reading}".encode()).hexdigest()[:16]
    return Path(folder) / f"cohort-{name}.parquet"


def chosen_cohort(run: MakeRun) -> Cohort:
    """Return the records that a run is on, with the codes that its rules leave."""
    cohort = whole_cohort(run.data, run.rules)
    if run.within is not None:
        folder, cluster = RunFolder(run.within.folder), run.within.cluster
        if not folder.assignments.exists():
            raise RecordsError("The run that this one builds on was deleted; start from another.")
        table = folder.load_assignments()
        inside = table.filter(pc.equal(table["cluster"], cluster))["id"].combine_chunks()
        cohort = cohort.among(inside, f"inside cluster {cluster}")
    return preparation(run.data, run.rules).apply(cohort)


def asked_outcomes(data: Data, rules: Rules) -> list[str] | None:
    """Return the columns that were asked for, with the scores; None for all."""
    return None if data.outcomes is None else [*data.outcomes, *rules.get("scores", ())]


def outcomes(data: Data, rules: Rules, cohort: Cohort) -> tuple[str, ...]:
    """Return the columns to sum up per cluster: those that were asked for, or all."""
    asked = asked_outcomes(data, rules)
    names = cohort.covariates.column_names
    return tuple(name for name in names if name != _TRUTH and (asked is None or name in asked))


def check_size(records: int, least: int) -> None:
    """Refuse so few records that nothing of them could be shown."""
    if records < max(least, 2):
        raise RecordsError(
            f"These are too few records: {max(least, 2)} is the least that can be shown."
        )


def understand(task: Understand) -> Plain:
    """Say what some data were understood to be, without small counts."""
    data, least = task.data, task.min_cell
    if data.kind == "builtin":
        read = Reading(whole_cohort(data, {}), "", "", Layout(kind="binary"), "visit")
    else:
        read = preparation(data, {}).open(data.source, least=least)
        reading = json.dumps(_reading(data, {}), sort_keys=True)
        save_cohort(read.cohort, _cohort_file(data.source, data.folder, reading))
    cohort = read.cohort
    check_size(len(cohort), least)
    counts = cohort.counts()
    top = sorted(range(len(counts)), key=lambda i: -counts[i])[:10]
    names = [name for name in cohort.covariates.column_names if name != _TRUTH]
    return {
        "layout": read.layout.kind,
        "columns": [vars(column) for column in read.columns],
        **_choices(),
        "unit": read.unit,
        "system": cohort.system,
        "records": len(cohort),
        "features": len(cohort.codes),
        "mentions": int(cohort.matrix.nnz),
        "least_codes": cohort.least_codes,
        "common": [
            {
                "code": cohort.codes[i],
                "name": label(cohort.codes[i], cohort.names[i], cohort.system),
                "records": int(counts[i]) if counts[i] >= least else None,
            }
            for i in top
        ],
        "covariates": names,
        "sexes": _sexes(cohort, least),
        "age": "age" in names,
        "dates": "date" in names and pa.types.is_date(cohort.covariates["date"].type),
        "lines": _lines(cohort, least),
        "notes": list(cohort.ledger.notes),
        "problems": [vars(problem) for problem in cohort.ledger.problems[:20]],
    }


def describe_columns(task: DescribeColumns) -> Plain:
    """Say what each column is of data that couldn't be read; none are told of few rows."""
    columns = preparation(task.data, {}).columns(task.data.source, task.min_cell)
    return {"columns": [vars(column) for column in columns], **_choices()}


def _choices() -> Plain:
    """Return the coding systems, layouts and scores that can be chosen."""
    return {
        "systems": {key: system.title for key, system in SYSTEMS.items()},
        "layouts": [kind for kind, reader in READERS.items() if reader.unit == "visit"],
        "scores": list(SCORES),
    }


def list_codes(task: ListCodes) -> list[list[Any]]:
    """Return each code of some data with its names and its records, most common first."""
    cohort = whole_cohort(task.data, task.rules)
    counts = cohort.counts()
    return [
        [
            cohort.codes[i],
            label(cohort.codes[i], cohort.names[i], cohort.system),
            cohort.names[i],
            int(counts[i]) if counts[i] >= task.min_cell else None,
        ]
        for i in sorted(range(len(counts)), key=lambda i: (-counts[i], cohort.codes[i]))
    ]


def count_cohort(task: CountCohort) -> Plain:
    """Say how many records and codes the rules leave, and what each rule left out."""
    whole = whole_cohort(task.data, task.rules)
    cohort = preparation(task.data, task.rules).apply(whole)
    return {
        "records": len(cohort) if len(cohort) >= task.min_cell else None,
        "features": len(cohort.codes),
        "lines": _lines(cohort, task.min_cell),
    }


def _lines(cohort: Cohort, least: int) -> list[Plain]:
    return [vars(line) for line in merge_lines(cohort.ledger.lines, least)]


def _sexes(cohort: Cohort, least: int) -> list[str]:
    if "sex" not in cohort.covariates.column_names:
        return []
    counted = pc.value_counts(pc.cast(cohort.covariates["sex"], pa.string()).drop_null())
    return sorted(row["values"] for row in counted.to_pylist() if row["counts"] >= least)
