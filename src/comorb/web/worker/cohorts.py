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
from comorb.insight.profile import pooling
from comorb.insight.profile.keys import FILE, own_secret, record_keys, secret_in
from comorb.insight.profile.labels import label
from comorb.insight.profile.noise import WIDE, noise
from comorb.insight.profile.rough import rough
from comorb.insight.runs.cohorts import AnyCohort
from comorb.insight.runs.folder import RunFolder, load_profile
from comorb.insight.runs.patient_map import draw_map, layout_of, mark_of, records_inside
from comorb.insight.views.diagnoses import in_languages
from comorb.model.arrays import Keys
from comorb.records import datasets
from comorb.records.archive import CohortFile, load_cohort, save_cohort
from comorb.records.codes.everyday import everyday_words
from comorb.records.codes.own_map import CodeMap, read_map
from comorb.records.codes.scores import SCORES
from comorb.records.codes.systems import SYSTEMS
from comorb.records.cohort import Cohort
from comorb.records.counting import Counted, count_left
from comorb.records.layouts.readers import READERS
from comorb.records.layouts.roles import ColumnRole
from comorb.records.preparation import Preparation
from comorb.web.worker.large import (
    code_counts,
    column_values,
    covariate_types,
    large_file,
    looks_large,
    selected_file,
    understood_layout,
    write_all,
)
from comorb.web.worker.messages import (
    CountCohort,
    CountProtected,
    Data,
    DescribeColumns,
    DrawMap,
    Inside,
    ListCodes,
    MakeRun,
    MatchCodes,
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
    return load_cohort(_whole_file(source, folder, reading))


def _whole_file(source: str, folder: str, reading: str) -> Path:
    """Return the file with all records of some data, which is made where there is none."""
    path = _cohort_file(source, folder, reading)
    if not path.exists() or path.stat().st_mtime < Path(source).stat().st_mtime:
        prepared = _prepared(folder, json.loads(reading))
        if looks_large(source):
            write_all(source, prepared, path)
        else:
            save_cohort(prepared.read(source), path)
    return path


def _cohort_file(source: str, folder: str, reading: str) -> Path:
    name = hashlib.sha256(f"{source}\n{reading}".encode()).hexdigest()[:16]
    return Path(folder) / f"cohort-{name}.parquet"


def chosen_cohort(run: MakeRun) -> AnyCohort:
    """Return the records that a run is on, with the codes that its rules leave.

    Too few are refused before codes are left out, in the same words whether there are any or none.
    Very many are in a file.
    """
    prepared = preparation(run.data, run.rules)
    if run.data.kind != "builtin" and run.within is None:
        reading = json.dumps(_reading(run.data, run.rules), sort_keys=True)
        file = large_file(_whole_file(run.data.source, run.data.folder, reading))
        if file is not None:
            return _chosen_file(file, prepared, run.min_cell)
    whole = whole_cohort(run.data, run.rules)
    prepared.check(whole)
    try:
        cohort = prepared.select(_inside(whole, run.within))
    except EmptyCohortError:
        raise _too_few(run.min_cell) from None
    check_size(cohort, run.min_cell)
    return prepared.drop(cohort)


def _chosen_file(file: CohortFile, prepared: Preparation, least: int) -> CohortFile:
    try:
        chosen = selected_file(file, prepared)
    except EmptyCohortError:
        raise _too_few(least) from None
    check_size(chosen, least)
    return chosen


def _inside(cohort: Cohort, within: Inside | None) -> Cohort:
    """Return the records of a cluster of another run, or all."""
    if within is None:
        return cohort
    folder, cluster = RunFolder(within.folder), within.cluster
    if not folder.assignments.exists():
        raise RecordsError("The run that this one builds on was deleted; start from another.")
    if within.region and within.of:
        own = chosen_cohort(within.of)
        layout = layout_of(folder, within.of.own_groups, len(own))
        found = records_inside(own, layout, np.array(within.region))
        return cohort.among(found, "in a region of the map")
    table = folder.load_assignments()
    inside = table.filter(pc.equal(table["cluster"], cluster))["id"].combine_chunks()
    return cohort.among(inside, f"inside cluster {cluster}")


def asked_outcomes(data: Data, rules: Rules) -> list[str] | None:
    """Return the columns that were asked for, with the scores; None for all."""
    return None if data.outcomes is None else [*data.outcomes, *rules.get("scores", ())]


def outcomes(data: Data, rules: Rules, cohort: AnyCohort) -> tuple[str, ...]:
    """Return the columns to sum up per cluster: those that were asked for, or all.

    Features of the clusters are shown by themselves.
    """
    asked = asked_outcomes(data, rules)
    given = cohort.features.features if isinstance(cohort, Cohort) and cohort.features else ()
    own = {one.name for one in (cohort.features if isinstance(cohort, CohortFile) else given)}
    free = [name for name in covariate_types(cohort) if name != _TRUTH and name not in own]
    return tuple(name for name in free if asked is None or name in asked)


def splits(cohort: Cohort) -> list[str]:
    """Return what the records of a run can be split by on its page."""
    features = tuple(one.name for one in cohort.features.features) if cohort.features else ()
    return [name for name in pooling.splits(cohort.covariates, features) if name != _TRUTH]


def check_size(cohort: AnyCohort, least: int) -> None:
    """Refuse so few records that nothing of them could be shown."""
    if len(cohort) < max(least, 2):
        raise _too_few(least)


def _too_few(least: int) -> RecordsError:
    return RecordsError(
        f"These are too few records; the least that can be shown is {max(least, 2)}."
    )


def understand(task: Understand) -> Plain:
    """Say what some data were understood to be, in full."""
    least = task.min_cell
    cohort, layout, unit, columns = _read_whole(task.data, least)
    check_size(cohort, least)
    counts, kinds = code_counts(cohort), covariate_types(cohort)
    top = sorted(range(len(counts)), key=lambda i: -counts[i])[:10]
    names = [name for name in kinds if name != _TRUTH]
    return {
        "layout": layout,
        "columns": [vars(column) for column in columns],
        **_choices(),
        "unit": unit,
        "system": cohort.system,
        "records": len(cohort),
        "features": len(cohort.codes),
        "mentions": int(counts.sum()),
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
        "dates": "date" in names and pa.types.is_date(kinds["date"]),
        "lines": [vars(line) for line in cohort.ledger.lines],
        "notes": list(cohort.ledger.notes),
        "problems": [vars(problem) for problem in cohort.ledger.problems[:20]],
    }


def _read_whole(
    data: Data, least: int
) -> tuple[Cohort | CohortFile, str | None, str, tuple[ColumnRole, ...]]:
    """Read all records of some data and keep them: the cohort, its layout, unit and columns."""
    if data.kind == "builtin":
        return whole_cohort(data, {}), "binary", "visit", ()
    prepared = preparation(data, {})
    path = _cohort_file(data.source, data.folder, json.dumps(_reading(data, {}), sort_keys=True))
    if looks_large(data.source):
        write_all(data.source, prepared, path)
        file = CohortFile.open(path)
        return file, *understood_layout(data.source, prepared, list(covariate_types(file)), least)
    read = prepared.open(data.source, least=least)
    save_cohort(read.cohort, path)
    return read.cohort, read.layout.kind, read.unit, read.columns


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
    """Return each code of some data, most common first.

    With it come a label, the title, its records, what people call it, and labels in other
    languages.
    """
    cohort = whole_cohort(task.data, task.rules)
    counts = cohort.counts()
    words = everyday_words(cohort.codes, cohort.names, cohort.system)
    return [
        [
            cohort.codes[i],
            label(cohort.codes[i], cohort.names[i], cohort.system),
            cohort.names[i],
            int(counts[i]),
            words[i],
            in_languages(cohort.codes[i], cohort.system),
        ]
        for i in sorted(range(len(counts)), key=lambda i: (-counts[i], cohort.codes[i]))
    ]


def match_codes(task: MatchCodes) -> list[Plain]:
    """Say of each part of a list how many codes it stands for, with the name of a single one."""
    cohort = whole_cohort(task.data, task.rules)
    names = dict(zip(cohort.codes, cohort.names, strict=True))
    parts = {part: codes for text in task.texts for part, codes in cohort.matched(text).items()}
    return [
        {
            "code": part,
            "codes": len(codes),
            "label": label(codes[0], names[codes[0]], cohort.system) if len(codes) == 1 else "",
        }
        for part, codes in parts.items()
    ]


def count_cohort(task: CountCohort) -> Plain:
    """Say how many records and codes the rules leave, and what each rule left out."""
    whole = whole_cohort(task.data, task.rules)
    try:
        records, codes, ledger = count_left(whole, preparation(task.data, task.rules))
    except EmptyCohortError:
        return {"records": 0, "features": 0, "lines": []}
    return {"records": records, "features": codes, "lines": [vars(line) for line in ledger.lines]}


def count_protected(task: CountProtected) -> Plain:
    """Say about how many records the rules leave; fewer than the least are one answer.

    Rules that leave out codes and no records don't matter.
    """
    prepared, least = preparation(task.data, task.rules), task.min_cell
    whole = whole_cohort(task.data, task.rules)
    counter = Counted.of(whole)
    prepared.check(counter)
    few: Plain = {"records": None, "features": None, "lines": []}
    try:
        selected = prepared.select(counter)
    except EmptyCohortError:
        return few
    keys = _keys_of(whole, secret_of(task.workspace))
    left = selected.marked if isinstance(selected, Counted) else slice(None)
    records = told_size(keys[left], least)
    return few if records is None else few | {"records": records}


@lru_cache(maxsize=1)
def _keys_of(whole: Cohort, secret: bytes) -> Keys:
    return record_keys(whole, secret)


def told_size(keys: Keys, least: int) -> int | None:
    """Return about how many records there are, by their keys; None for fewer than the least."""
    key = keys.sum(dtype=np.uint64) ^ _COUNTERS
    noisy = keys.size + int(noise(np.array([key]), WIDE)[0])
    return None if keys.size < least else rough(noisy, least)


def map_of_run(task: DrawMap) -> Plain:
    """Return the map of a run: counts of cells, protected where they are to be."""
    folder = RunFolder(task.run.folder)
    shown = load_profile(folder.path)
    shown = shown.protected(task.min_cell) if task.min_cell else shown
    cohort = chosen_cohort(task.run)
    layout = layout_of(folder, task.run.own_groups, len(cohort))
    secret = secret_of(task.run.workspace)
    return draw_map(cohort, layout, mark_of(shown, task.by), secret, task.min_cell)


def _sexes(cohort: AnyCohort, least: int) -> list[str]:
    if "sex" not in covariate_types(cohort):
        return []
    counted = pc.value_counts(pc.cast(column_values(cohort, "sex"), pa.string()).drop_null())
    return sorted(row["values"] for row in counted.to_pylist() if row["counts"] >= least)
