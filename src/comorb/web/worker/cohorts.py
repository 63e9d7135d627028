"""Cohorts of the explorer: read once, kept in memory and in files, described and counted."""

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
from comorb.records.codes.code_map import read_map
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
from comorb.web.worker.requests import Data, RunPart, RunRequest

LARGE = 1_000_000  # records from which on they are not held in memory to be clustered
BYTES = 200_000_000  # of a text file that is assumed to have as many
MEMORY = "1GB"  # to read large data with
BUILT_IN = {"heart_failure": datasets.heart_failure, "tertiary": datasets.tertiary}
Plain = dict[str, Any]
_KEPT = 3  # cohorts that rules left, of the same data
_TRUTH = "true_cluster"
_CODING = tuple(rule.name for rule in rules_of(CohortSpec) if rule.part == "coding")
_COUNTERS = np.uint64(0x2545F4914F6CDD1D)  # sets the noise of counters apart from that of profiles


def looks_large(source: str) -> bool:
    """Whether a file of records is so large that it is read in parts."""
    path = Path(source)
    if not path.is_file():
        return False
    if path.suffix == ".parquet":
        try:
            return bool(pq.read_metadata(path).num_rows > LARGE)
        except (OSError, pa.ArrowException):
            return False  # reading it then raises the error that explains it
    return path.suffix in (".csv", ".tsv", ".txt") and path.stat().st_size > BYTES


def _write_large(source: str, prepared: CohortSpec, path: Path) -> None:
    """Write all records of a file as a cohort file, in bounded memory."""
    write_cohort(source, path, replace(prepared, at_least=1), MEMORY)


def _select_from_file(file: CohortFile, prepared: CohortSpec) -> CohortFile:
    """Return the cohort that rules leave of a file, kept next to it; all but the latest few go."""
    prepared.check(file.part(0, 0, 0))
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


@lru_cache(maxsize=1)
def secret_of(workspace: str) -> bytes:
    """Return the secret that a workspace keeps: at first the user's own, as commands use it.

    Where the home folder can't keep one, the workspace has its own.
    """
    made = None
    if not (Path(workspace) / SECRET_FILE).exists():
        with suppress(StorageError):
            made = own_secret()
    return secret_in(Path(workspace), made)


def make_secret(workspace: str) -> None:
    """Make the secret of a workspace that has none, and return nothing of it."""
    secret_of(workspace)


def preparation(data: Data, rules: Plain) -> CohortSpec:
    """Return how data are read and which of their records are kept."""
    return _prepared(data.folder, {**data.reading, **rules})


def _prepared(folder: str, plain: Plain) -> CohortSpec:
    """Return a cohort's specification; a map of codes is found by its key in the data's folder."""
    if "code_map" in plain:
        files = sorted((Path(folder) / "maps" / plain["code_map"]).glob("*"))
        if not files:
            raise RecordsError("run.map_gone")
        own = replace(read_map(files[0]), file=files[0].name)
        plain = plain | {"code_map": own.to_dict()}
    return CohortSpec.from_dict(plain)


def describe_map(path: str) -> Plain:
    """Return what a map of codes to groups holds."""
    found = read_map(path)
    groups, notes = len(found.titles), list(found.notes)
    return {"key": found.digest, "name": found.name, "groups": groups, "notes": notes}


def whole_cohort(data: Data, rules: Plain) -> Cohort:
    """Return all records of some data with the codes that rules ask for, read once and kept."""
    if data.kind == "builtin":
        return BUILT_IN[data.source]()
    reading = _reading(data, rules)
    return _load_whole(data.source, data.folder, reading, Path(data.source).stat().st_mtime_ns)


def _reading(data: Data, rules: Plain) -> str:
    """Return the part of the rules that decides how data are read, as JSON."""
    coding = {key: rules[key] for key in _CODING if rules.get(key)}
    return json.dumps({**data.reading, "level": ["category"], **coding}, sort_keys=True)


@lru_cache(maxsize=2)
def _load_whole(source: str, folder: str, reading: str, _: int) -> Cohort:
    return load_cohort(_whole_file(source, folder, reading))


def _whole_file(source: str, folder: str, reading: str) -> Path:
    """Return the file with all records of some data, which is made where there is none."""
    path = _cohort_file(source, folder, reading)
    if not path.exists() or path.stat().st_mtime < Path(source).stat().st_mtime:
        prepared = _prepared(folder, json.loads(reading))
        if looks_large(source):
            _write_large(source, prepared, path)
        else:
            save_cohort(prepared.read(source), path)
    return path


def _cohort_file(source: str, folder: str, reading: str) -> Path:
    name = hashlib.sha256(f"{source}\n{reading}".encode()).hexdigest()[:16]
    return Path(folder) / f"cohort-{name}.parquet"


def _large_file(run: RunRequest) -> CohortFile | None:
    """Return the file with all records of a run's data, where these are many."""
    if run.data.kind == "builtin" or run.within is not None:
        return None
    path = _whole_file(run.data.source, run.data.folder, _reading(run.data, run.rules))
    try:
        file = CohortFile.open(path)
    except (OSError, StorageError):
        return None
    return file if len(file) > LARGE else None


def chosen_cohort(run: RunRequest) -> AnyCohort:
    """Return the records that a run is on, with the codes that its rules leave.

    Too few are refused before codes are left out, in the same words whether there are any or none.
    Very many are in a file.
    """
    prepared = preparation(run.data, run.rules)
    whole: Cohort | CohortFile = _large_file(run) or whole_cohort(run.data, run.rules)
    if run.named_from:
        _check_named(whole, prepared, run.named_from)
    cohort: Cohort | CohortFile
    try:
        if isinstance(whole, CohortFile):
            cohort = _select_from_file(whole, prepared)
        else:
            prepared.check(whole)
            cohort = prepared.select(_records_of_part(whole, run.within))
    except EmptyCohortError:
        raise _too_few(run.min_cell) from None
    _check_size(cohort, run.min_cell)
    return cohort if isinstance(cohort, CohortFile) else prepared.drop(cohort)


def _records_of_part(cohort: Cohort, within: RunPart | None) -> Cohort:
    """Return the records in a part of another run, or all."""
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


def chosen_outcomes(data: Data, rules: Plain) -> list[str] | None:
    """Return the columns that were chosen as outcomes, with the scores; None for all."""
    return None if data.outcomes is None else [*data.outcomes, *rules.get("scores", ())]


def outcomes(data: Data, rules: Plain, cohort: AnyCohort) -> tuple[str, ...]:
    """Return the columns to sum up per cluster, chosen or all, but not the clusters' features."""
    chosen = chosen_outcomes(data, rules)
    own = (_TRUTH, *cohort.feature_names)
    free = [name for name in cohort.schema().names if name not in own]
    return tuple(name for name in free if chosen is None or name in chosen)


def splits(cohort: Cohort) -> list[str]:
    """Return what the records of a run can be split by on its page."""
    named = slices.splits(cohort.covariates, cohort.feature_names)
    return [name for name in named if name != _TRUTH]


def _check_size(cohort: AnyCohort, least: int) -> None:
    """Refuse so few records that nothing of them could be shown."""
    if len(cohort) < max(least, 2):
        raise _too_few(least)


def _too_few(least: int) -> RecordsError:
    return RecordsError("run.too_few_records", least=max(least, 2))


def describe_data(data: Data, least: int) -> Plain:
    """Return how some data were read, in full."""
    cohort, layout, unit, columns = _read_whole(data, least)
    _check_size(cohort, least)
    counts, schema = cohort.counts(), cohort.schema()
    top = sorted(range(len(counts)), key=lambda i: -counts[i])[:10]
    names = [name for name in schema.names if name != _TRUTH]
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
        "dates": "date" in names and pa.types.is_date(schema.field("date").type),
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
    path = _cohort_file(data.source, data.folder, _reading(data, {}))
    if not looks_large(data.source):
        read = prepared.open(data.source, least=least)
        save_cohort(read.cohort, path)
        return read.cohort, read.layout.kind, read.unit, read.columns
    _write_large(data.source, prepared, path)
    file = CohortFile.open(path)
    kind, records, _ = prepared.sources(data.source)
    with open_source(records, MEMORY) as opened:
        plan = prepared.plan(opened, kind)
        stored, names = prepared.as_stored(plan), file.schema().names
        roles = column_roles(opened, plan.stored or plan.table, stored, names, least)
        return file, plan.layout.kind or next(iter(READERS)), plan.unit, roles


def describe_columns(data: Data, least: int) -> Plain:
    """Return what each column is of data that couldn't be read; nothing of fewer rows."""
    columns = preparation(data, {}).columns(data.source, least)
    return {"columns": [vars(column) for column in columns], **_choices()}


def _choices() -> Plain:
    """Return the coding systems, layouts and scores that can be chosen."""
    return {
        "systems": {key: system.title for key, system in SYSTEMS.items()},
        "layouts": [kind for kind, reader in READERS.items() if reader.unit == "visit"],
        "scores": list(SCORES),
    }


def list_codes(data: Data, rules: Plain) -> list[list[Any]]:
    """Return each code of some data, most common first.

    Each has a code, its label, title, records, everyday words, and labels in other languages.
    """
    cohort = whole_cohort(data, rules)
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


def match_codes(data: Data, rules: Plain, texts: list[str], least: int = 0) -> list[Plain]:
    """Return how many codes each part of some texts matches, with the name of a single one.

    Codes of fewer records than ``least`` match nothing.
    """
    cohort = whole_cohort(data, rules)
    names = dict(zip(cohort.codes, cohort.names, strict=True))
    common = _common(cohort, least)
    parts = {
        part: [code for code in codes if code in common]
        for text in texts
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
    counted = zip(cohort.codes, cohort.counts().tolist(), strict=True)
    return {code for code, records in counted if records >= least}


def _check_named(whole: AnyCohort, prepared: CohortSpec, least: int) -> None:
    """Refuse rules that name a code of fewer than ``least`` records, in the same way as of none."""
    common, known = _common(whole, least), whole.part(0, 0, 0)
    for text in (*prepared.having, *prepared.without, *prepared.drop_codes):
        for part, codes in known.matched(text).items():
            if not common.intersection(codes):
                raise RecordsError("run.rare_code", code=part, least=least)


def count_cohort(data: Data, rules: Plain) -> Plain:
    """Count the records and codes that rules leave, and what each rule left out."""
    whole = whole_cohort(data, rules)
    try:
        records, codes, ledger = count_left(whole, preparation(data, rules))
    except EmptyCohortError:
        return {"records": 0, "features": 0, "lines": []}
    return {"records": records, "features": codes, "lines": [vars(line) for line in ledger.lines]}


def count_protected(data: Data, rules: Plain, workspace: str, least: int) -> Plain:
    """Count about how many records the rules leave; all counts below ``least`` give one answer.

    Rules that leave out codes and no records don't matter.
    """
    prepared, whole = preparation(data, rules), whole_cohort(data, rules)
    counter = MarkedCohort.of(whole)
    _check_named(whole, prepared, least)
    prepared.check(counter)
    few: Plain = {"records": None, "features": None, "lines": []}
    try:
        selected = prepared.select(counter)
    except EmptyCohortError:
        return few
    keys = _keys_of(whole, secret_of(workspace))
    left = selected.marked if isinstance(selected, MarkedCohort) else slice(None)
    return few | {"records": protected_size(keys[left], least)}


@lru_cache(maxsize=1)
def _keys_of(whole: Cohort, secret: bytes) -> Keys:
    return record_keys(whole, secret)


def protected_size(keys: Keys, least: int) -> int | None:
    """Return about how many records there are, by their keys; None for fewer than ``least``."""
    key = keys.sum(dtype=np.uint64) ^ _COUNTERS
    noisy = keys.size + int(noise(np.array([key]), MAX_ANSWER_NOISE)[0])
    return None if keys.size < least else round_count(noisy, least)


def count_map(run: RunRequest, by: str, least: int) -> Plain:
    """Count the records in each cell of a run's map, by cluster or something else.

    Counts below ``least`` are suppressed, none with 0.
    """
    folder = RunFolder(run.folder)
    shown = load_profile(folder.path)
    shown = shown.protected(least) if least else shown
    cohort = chosen_cohort(run)
    layout = layout_of(folder, run.own_groups, len(cohort))
    return draw_map(cohort, layout, mark_of(shown, by), secret_of(run.workspace), least)


def _sexes(cohort: AnyCohort, least: int) -> list[str]:
    if "sex" not in cohort.schema().names:
        return []
    texts = [pc.cast(part, pa.string()).combine_chunks() for part in cohort.covariate("sex")]
    counted = pc.value_counts(pa.chunked_array(texts, pa.string()).drop_null())
    return sorted(row["values"] for row in counted.to_pylist() if row["counts"] >= least)
