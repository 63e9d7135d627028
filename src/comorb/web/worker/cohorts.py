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
import pyarrow.parquet as pq

from comorb.errors import EmptyCohortError, RecordsError, StorageError
from comorb.fields import rules_of
from comorb.messages import Message
from comorb.model.arrays import Keys
from comorb.profiles import slices
from comorb.profiles.labels import label
from comorb.profiles.noise import (
    MAX_ANSWER_NOISE,
    SECRET_FILE,
    noise,
    own_secret,
    record_keys,
    secret_in,
)
from comorb.profiles.rounded import round_count
from comorb.records import datasets
from comorb.records.codes.code_map import CodeMap, read_map
from comorb.records.codes.scores import SCORES
from comorb.records.codes.search import everyday_words
from comorb.records.codes.systems import SYSTEMS
from comorb.records.cohort import Cohort
from comorb.records.cohort_file import CohortFile, load_cohort, save_cohort
from comorb.records.layouts.plan import ColumnRole, column_roles
from comorb.records.layouts.readers import READERS
from comorb.records.read import MarkedCohort, count_left
from comorb.records.sources.open import open_source
from comorb.records.spec import CohortSpec
from comorb.records.stream import select_cohort, write_cohort
from comorb.runs.cohorts import AnyCohort
from comorb.runs.folder import RunFolder, load_profile
from comorb.runs.patient_map import draw_map, layout_of, mark_of, records_inside
from comorb.views.words import in_languages
from comorb.web.worker.requests import (
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


def write_all(source: str, prepared: CohortSpec, path: Path) -> None:
    """Write all records of a file as a cohort file, in bounded memory."""
    write_cohort(source, path, replace(prepared, at_least=1), MEMORY)


def large_file(path: Path) -> CohortFile | None:
    """Return the file that is kept of all records, where these are many."""
    try:
        file = CohortFile.open(path)
    except (OSError, StorageError):
        return None
    return file if len(file) > LARGE else None


def selected_file(file: CohortFile, prepared: CohortSpec) -> CohortFile:
    """Return the cohort that rules leave of a file, kept beside it; all but the latest few go."""
    first = file.part(0, 0, 0)
    prepared.check(first)
    own = Path(str(file.path))
    digest = hashlib.sha256(f"{own.name} {prepared.fingerprint()}".encode()).hexdigest()[:16]
    path = own.with_name(f"left-{digest}.parquet")
    if not path.exists() or path.stat().st_mtime < own.stat().st_mtime:
        select_cohort(file, path, prepared)
    path.touch()
    old = sorted(path.parent.glob("left-*.parquet"), key=lambda one: one.stat().st_mtime)
    for one in old[:-_KEPT]:
        one.unlink(missing_ok=True)
    return CohortFile.open(path)


def understood_layout(
    source: Any, prepared: CohortSpec, names: list[str], least: int
) -> tuple[str, str, tuple[ColumnRole, ...]]:
    """Return the layout of records, what one is, and what each column is."""
    kind, records, _ = prepared.sources(source)
    with open_source(records, MEMORY) as opened:
        plan = prepared.plan(opened, kind)
        roles = column_roles(
            opened, plan.stored or plan.table, prepared.as_stored(plan), names, least
        )
        return plan.layout.kind or next(iter(READERS)), plan.unit, roles


Plain = dict[str, Any]

BUILT_IN = {"heart_failure": datasets.heart_failure, "tertiary": datasets.tertiary}
_TRUTH = "true_cluster"
_CODING = tuple(rule.name for rule in rules_of(CohortSpec) if rule.part == "coding")
_COUNTERS = np.uint64(0x2545F4914F6CDD1D)  # sets the noise of counters apart from that of profiles


@lru_cache(maxsize=1)
def secret_of(workspace: str) -> bytes:
    """Return the secret that a workspace keeps: at first one's own, as commands take it.

    Where the home folder can't keep one, the workspace has its own.
    """
    made = None
    if not (Path(workspace) / SECRET_FILE).exists():
        with suppress(StorageError):
            made = own_secret()
    return secret_in(Path(workspace), made)


def preparation(data: Data, rules: Rules) -> CohortSpec:
    """Return how data are read and which of their records are kept."""
    return _prepared(data.folder, {**data.reading, **rules})


def _prepared(folder: str, plain: Plain) -> CohortSpec:
    if "code_map" in plain:
        plain = plain | {"code_map": _own_map(folder, plain["code_map"]).to_dict()}
    return CohortSpec.from_dict(plain)


def _own_map(folder: str, key: str) -> CodeMap:
    """Return a map that was given, under the name that its file had."""
    files = sorted((Path(folder) / "maps" / key).glob("*"))
    if not files:
        raise RecordsError("run.map_gone")
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
            if run.named_from:
                check_named(file, prepared, run.named_from)
            return _chosen_file(file, prepared, run.min_cell)
    whole = whole_cohort(run.data, run.rules)
    if run.named_from:
        check_named(whole, prepared, run.named_from)
    prepared.check(whole)
    try:
        cohort = prepared.select(_inside(whole, run.within))
    except EmptyCohortError:
        raise _too_few(run.min_cell) from None
    check_size(cohort, run.min_cell)
    return prepared.drop(cohort)


def _chosen_file(file: CohortFile, prepared: CohortSpec, least: int) -> CohortFile:
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
        raise RecordsError("run.parent_deleted")
    if within.region and within.of:
        own = chosen_cohort(within.of)
        layout = layout_of(folder, within.of.own_groups, len(own))
        found = records_inside(own, layout, np.array(within.region))
        return cohort.among(found, Message("ledger.region"))
    table = folder.load_assignments()
    inside = table.filter(pc.equal(table["cluster"], cluster))["id"].combine_chunks()
    return cohort.among(inside, Message("ledger.inside", cluster=cluster))


def asked_outcomes(data: Data, rules: Rules) -> list[str] | None:
    """Return the columns that were asked for, with the scores; None for all."""
    return None if data.outcomes is None else [*data.outcomes, *rules.get("scores", ())]


def outcomes(data: Data, rules: Rules, cohort: AnyCohort) -> tuple[str, ...]:
    """Return the columns to sum up per cluster: those that were asked for, or all.

    Features of the clusters are shown by themselves.
    """
    asked = asked_outcomes(data, rules)
    own = (_TRUTH, *cohort.feature_names)
    free = [name for name in cohort.schema().names if name not in own]
    return tuple(name for name in free if asked is None or name in asked)


def splits(cohort: Cohort) -> list[str]:
    """Return what the records of a run can be split by on its page."""
    named = slices.splits(cohort.covariates, cohort.feature_names)
    return [name for name in named if name != _TRUTH]


def check_size(cohort: AnyCohort, least: int) -> None:
    """Refuse so few records that nothing of them could be shown."""
    if len(cohort) < max(least, 2):
        raise _too_few(least)


def _too_few(least: int) -> RecordsError:
    return RecordsError("run.too_few_records", least=max(least, 2))


def understand(task: Understand) -> Plain:
    """Say what some data were understood to be, in full."""
    least = task.min_cell
    cohort, layout, unit, columns = _read_whole(task.data, least)
    check_size(cohort, least)
    counts, kinds = cohort.counts(), cohort.schema()
    top = sorted(range(len(counts)), key=lambda i: -counts[i])[:10]
    names = [name for name in kinds.names if name != _TRUTH]
    return {
        "layout": layout,
        "columns": [vars(column) for column in columns],
        **_choices(),
        "unit": unit,
        "system": cohort.system,
        "records": len(cohort),
        "features": len(cohort.codes),
        "listed": int(np.sum(counts >= least)),
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
        "items": [one.name for one in cohort.items],
        "sexes": _sexes(cohort, least),
        "age": "age" in names,
        "dates": "date" in names and pa.types.is_date(kinds.field("date").type),
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
        return file, *understood_layout(data.source, prepared, file.schema().names, least)
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
    common = _common(cohort, task.least)
    parts = {
        part: [code for code in codes if code in common]
        for text in task.texts
        for part, codes in cohort.matched(text).items()
    }
    return [
        {
            "code": part,
            "codes": len(codes),
            "label": label(codes[0], names[codes[0]], cohort.system) if len(codes) == 1 else "",
        }
        for part, codes in parts.items()
    ]


def _common(cohort: AnyCohort, least: int) -> set[str]:
    """Return the codes that ``least`` records or more have."""
    return {
        code
        for code, records in zip(cohort.codes, cohort.counts().tolist(), strict=True)
        if records >= least
    }


def check_named(whole: AnyCohort, prepared: CohortSpec, least: int) -> None:
    """Refuse rules that name a code of fewer than ``least`` records, in one way down to none."""
    common = _common(whole, least)
    known = whole.part(0, 0, 0)
    for text in (*prepared.having, *prepared.without, *prepared.drop_codes):
        for part, codes in known.matched(text).items():
            if not common.intersection(codes):
                raise RecordsError("run.rare_code", code=part, least=least)


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
    counter = MarkedCohort.of(whole)
    check_named(whole, prepared, least)
    prepared.check(counter)
    few: Plain = {"records": None, "features": None, "lines": []}
    try:
        selected = prepared.select(counter)
    except EmptyCohortError:
        return few
    keys = _keys_of(whole, secret_of(task.workspace))
    left = selected.marked if isinstance(selected, MarkedCohort) else slice(None)
    records = told_size(keys[left], least)
    return few if records is None else few | {"records": records}


@lru_cache(maxsize=1)
def _keys_of(whole: Cohort, secret: bytes) -> Keys:
    return record_keys(whole, secret)


def told_size(keys: Keys, least: int) -> int | None:
    """Return about how many records there are, by their keys; None for fewer than the least."""
    key = keys.sum(dtype=np.uint64) ^ _COUNTERS
    noisy = keys.size + int(noise(np.array([key]), MAX_ANSWER_NOISE)[0])
    return None if keys.size < least else round_count(noisy, least)


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
    if "sex" not in cohort.schema().names:
        return []
    texts = [pc.cast(part, pa.string()).combine_chunks() for part in cohort.covariate("sex")]
    counted = pc.value_counts(pa.chunked_array(texts, pa.string()).drop_null())
    return sorted(row["values"] for row in counted.to_pylist() if row["counts"] >= least)
