"""Cohorts of the explorer: read once, kept in memory and as files; what was understood."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import EmptyCohortError, RecordsError, StorageError
from comorb.insight.profile.keys import FILE, own_secret, record_keys, secret_in
from comorb.insight.profile.labels import label
from comorb.insight.profile.noise import WIDE, noise
from comorb.insight.profile.rough import rough
from comorb.insight.runs.folder import RunFolder
from comorb.insight.views.diagnoses import in_languages
from comorb.model.arrays import Keys
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
    CountProtected,
    Data,
    DescribeColumns,
    Inside,
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
_COUNTERS = np.uint64(0x2545F4914F6CDD1D)  # sets the noise of counters apart from that of profiles


@lru_cache(maxsize=1)
def secret_of(workspace: str) -> bytes:
    """Return the secret that a workspace keeps: at first one's own, as commands take it.

    Where the home folder can't keep one, the workspace has its own.
    """
    made = None
    if not (Path(workspace) / FILE).exists():
        with suppress(StorageError):
            made = own_secret()
    return secret_in(Path(workspace), made)


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
    """Return the records that a run is on, with the codes that its rules leave.

    Too few are refused before codes are left out, in the same words whether there are any or none.
    """
    prepared = preparation(run.data, run.rules)
    whole = whole_cohort(run.data, run.rules)
    prepared.check(whole)
    try:
        cohort = prepared.select(_inside(whole, run.within))
    except EmptyCohortError:
        raise _too_few(run.min_cell) from None
    check_size(cohort, run.min_cell)
    return prepared.drop(cohort)


def _inside(cohort: Cohort, within: Inside | None) -> Cohort:
    """Return the records of a cluster of another run, or all."""
    if within is None:
        return cohort
    folder, cluster = RunFolder(within.folder), within.cluster
    if not folder.assignments.exists():
        raise RecordsError("The run that this one builds on was deleted; start from another.")
    table = folder.load_assignments()
    inside = table.filter(pc.equal(table["cluster"], cluster))["id"].combine_chunks()
    return cohort.among(inside, f"inside cluster {cluster}")


def asked_outcomes(data: Data, rules: Rules) -> list[str] | None:
    """Return the columns that were asked for, with the scores; None for all."""
    return None if data.outcomes is None else [*data.outcomes, *rules.get("scores", ())]


def outcomes(data: Data, rules: Rules, cohort: Cohort) -> tuple[str, ...]:
    """Return the columns to sum up per cluster: those that were asked for, or all.

    Features of the clusters are shown by themselves.
    """
    asked = asked_outcomes(data, rules)
    names = cohort.covariates.column_names
    own = {one.name for one in cohort.features.features} if cohort.features else set()
    free = [name for name in names if name != _TRUTH and name not in own]
    return tuple(name for name in free if asked is None or name in asked)


def check_size(cohort: Cohort, least: int) -> None:
    """Refuse so few records that nothing of them could be shown."""
    if len(cohort) < max(least, 2):
        raise _too_few(least)


def _too_few(least: int) -> RecordsError:
    return RecordsError(
        f"These are too few records; the least that can be shown is {max(least, 2)}."
    )


def understand(task: Understand) -> Plain:
    """Say what some data were understood to be, in full."""
    data, least = task.data, task.min_cell
    if data.kind == "builtin":
        read = Reading(whole_cohort(data, {}), "", "", Layout(kind="binary"), "visit")
    else:
        read = preparation(data, {}).open(data.source, least=least)
        reading = json.dumps(_reading(data, {}), sort_keys=True)
        save_cohort(read.cohort, _cohort_file(data.source, data.folder, reading))
    cohort = read.cohort
    check_size(cohort, least)
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
                "names": in_languages(cohort.codes[i], cohort.system),
                "records": int(counts[i]),
            }
            for i in top
        ],
        "covariates": names,
        "items": [one.name for one in cohort.asked],
        "sexes": _sexes(cohort, least),
        "age": "age" in names,
        "dates": "date" in names and pa.types.is_date(cohort.covariates["date"].type),
        "lines": [vars(line) for line in cohort.ledger.lines],
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
    """Return each code of some data with its records and its names, most common first.

    The names are a label, the title, and labels in other languages.
    """
    cohort = whole_cohort(task.data, task.rules)
    counts = cohort.counts()
    return [
        [
            cohort.codes[i],
            label(cohort.codes[i], cohort.names[i], cohort.system),
            cohort.names[i],
            int(counts[i]),
            in_languages(cohort.codes[i], cohort.system),
        ]
        for i in sorted(range(len(counts)), key=lambda i: (-counts[i], cohort.codes[i]))
    ]


def count_cohort(task: CountCohort) -> Plain:
    """Say how many records and codes the rules leave, and what each rule left out."""
    whole = whole_cohort(task.data, task.rules)
    try:
        cohort = preparation(task.data, task.rules).apply(whole)
    except EmptyCohortError:
        return {"records": 0, "features": 0, "lines": []}
    lines = [vars(line) for line in cohort.ledger.lines]
    return {"records": len(cohort), "features": len(cohort.codes), "lines": lines}


def count_protected(task: CountProtected) -> Plain:
    """Say about how many records the rules leave; fewer than the least are one answer.

    Rules that leave out codes and no records don't matter.
    """
    prepared, least = preparation(task.data, task.rules), task.min_cell
    whole = whole_cohort(task.data, task.rules)
    prepared.check(whole)
    few: Plain = {"records": None, "features": None, "lines": []}
    try:
        cohort = prepared.select(whole)
    except EmptyCohortError:
        return few
    records = told_size(record_keys(cohort, secret_of(task.workspace)), least)
    return few if records is None else few | {"records": records}


def told_size(keys: Keys, least: int) -> int | None:
    """Return about how many records there are, by their keys; None for fewer than the least."""
    key = keys.sum(dtype=np.uint64) ^ _COUNTERS
    noisy = keys.size + int(noise(np.array([key]), WIDE)[0])
    return None if keys.size < least else rough(noisy, least)


def _sexes(cohort: Cohort, least: int) -> list[str]:
    if "sex" not in cohort.covariates.column_names:
        return []
    counted = pc.value_counts(pc.cast(cohort.covariates["sex"], pa.string()).drop_null())
    return sorted(row["values"] for row in counted.to_pylist() if row["counts"] >= least)
