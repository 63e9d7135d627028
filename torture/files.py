"""Files of comorb's own: models, profiles, keys, journals, cohorts and maps, whole and resealed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from comorb.engines import block_files
from comorb.engines.checkpoints import FileJournal
from comorb.profiles import codec
from comorb.profiles.profile import Profile
from comorb.records.codes.code_map import read_map
from comorb.records.cohort import Cohort
from comorb.records.cohort_file import CohortFile, as_table, load_cohort, save_cohort
from comorb.records.datasets import heart_failure
from comorb.records.read import read_records
from comorb.runs.folder import RunFolder, load_profile
from comorb.runs.run import Request, run
from comorb.storage import load_model, save_model
from comorb.views.report import report
from torture.commands import write_visits
from torture.mutation import json_text, mutated_bytes, mutated_json
from torture.target import Target, expect

_SEAL = ',"seal":"'
Seed = Callable[[bool], bytes]
Check = Callable[[bool, bytes, Path], None]
Mutate = Callable[[Random, Sequence[bytes]], bytes]
_SECRET = bytes(range(32))
_MAP = b"code;group;name\n428;1;Heart failure\n250*;2;Diabetes\nE11;2;Diabetes\n585-586;3;Kidney\n"


def targets() -> list[Target]:
    """Return a target for each file that comorb writes and reads again."""
    found = [one for mixed in (False, True) for one in _of_a_run(mixed)]
    return [
        *found,
        Target("journal", lambda _: [_journal()], _check_journal, 30_000),
        Target("map of codes", lambda _: [_MAP], _check_map, 20_000, guided=True),
    ]


def _of_a_run(mixed: bool) -> list[Target]:
    """Return the files of a run and of its cohort, of codes alone or mixed with features."""
    kind = " with features" if mixed else ""

    def target(name: str, seed: Seed, check: Check, weight: int, mutate: Mutate) -> Target:
        return Target(
            f"{name}{kind}",
            lambda _: [seed(mixed)],
            lambda data, folder: check(mixed, data, folder),
            weight // 2,
            mutate,
            guided=name == "model header",
        )

    return [
        target("model file", _model, _check_model_file, 100_000, _mutate_file),
        target("model header", _header, _check_header, 90_000, _mutate_header),
        target("profile file", _profile, _check_profile_file, 60_000, _mutate_file),
        target("profile document", _profile, _check_document, 30_000, _mutate_document),
        target("keys", _keys, _check_keys, 30_000, _mutate_text),
        target("cohort file", _cohort_file, _check_cohort_file, 30_000, _mutate_file),
        target("cohort header", _cohort_header, _check_cohort_header, 15_000, _mutate_text),
    ]


def _mutate_file(rng: Random, seeds: Sequence[bytes]) -> bytes:
    return mutated_bytes(rng, rng.choice(seeds))


class _Files:
    """The files of one small run."""

    def __init__(self, folder: RunFolder) -> None:
        self.model = folder.model.read_bytes()
        self.profile = folder.profile.read_bytes()
        self.keys = folder.keys.read_bytes()
        self.loaded = load_profile(folder.path)


@cache
def small_cohort(mixed: bool = False) -> Cohort:
    """Return some records with their common codes, or of codes mixed with features."""
    with TemporaryDirectory() as folder:
        if mixed:
            write_visits(Path(folder, "visits.csv"), 120)
            return read_records(f"{folder}/visits.csv", features=("age", "sex"))
        save_cohort(heart_failure(), f"{folder}/whole.parquet")
        cohort = load_cohort(f"{folder}/whole.parquet", 120).drop_rare(15)
    return replace(cohort, left_out=cohort.left_out[:3])


@cache
def _run(mixed: bool) -> _Files:
    with TemporaryDirectory() as folder:
        request = Request(3, repeats=0, secret=_SECRET, title="torture")
        run(small_cohort(mixed), request, f"{folder}/run")
        return _Files(RunFolder(f"{folder}/run"))


def _model(mixed: bool) -> bytes:
    return _run(mixed).model


def _profile(mixed: bool) -> bytes:
    return _run(mixed).profile


def _keys(mixed: bool) -> bytes:
    return _run(mixed).keys


def _check_model_file(mixed: bool, data: bytes, folder: Path) -> None:
    path = folder / "model.comorb"
    path.write_bytes(data)
    load_model(path)
    expect(data == _run(mixed).model, "an altered model file was taken")


def _header(mixed: bool) -> bytes:
    return _run(mixed).model[:-32].partition(b"\n")[2]


def _mutate_header(rng: Random, seeds: Sequence[bytes]) -> bytes:
    text, _, numbers = seeds[0].partition(b"\n")
    if rng.random() < 0.2:
        return mutated_bytes(rng, seeds[0])
    if rng.random() < 0.1:
        return text + b"\n" + mutated_bytes(rng, numbers)
    return json_text(mutated_json(rng, json.loads(text))) + b"\n" + numbers


def _check_header(mixed: bool, data: bytes, folder: Path) -> None:
    """See that a resealed model is refused, or written and read again the same."""
    body = b"comorb model %d\n" % (2 if mixed else 1) + data
    path = folder / "model.comorb"
    path.write_bytes(body + hashlib.sha256(body).digest())
    model = load_model(path)
    expect(all(isinstance(code, str) for code in model.codes), "a code is no text")
    save_model(model, path)
    again = load_model(path)
    expect(again.codes == model.codes and again.run == model.run, "it reads otherwise again")


def _check_profile_file(mixed: bool, data: bytes, folder: Path) -> None:
    path = folder / "profile.json"
    path.write_bytes(data)
    load_profile(path)
    expect(data == _run(mixed).profile, "an altered profile was taken")


def _mutate_document(rng: Random, seeds: Sequence[bytes]) -> bytes:
    plain = json.loads(seeds[0])
    del plain["seal"]
    return json_text(mutated_json(rng, plain))


def _check_document(mixed: bool, data: bytes, _: Path) -> None:
    """See that a resealed profile is refused, or can be written and shown."""
    text = data.decode("utf-8", "replace").rstrip()
    sealed = text.rpartition(_SEAL)[0] or text.removesuffix("}")
    profile = Profile.from_json(f'{sealed}{_SEAL}{hashlib.sha256(sealed.encode()).hexdigest()}"}}')
    Profile.from_json(profile.to_json())
    report(profile)


def _mutate_text(rng: Random, seeds: Sequence[bytes]) -> bytes:
    if rng.random() < 0.3:
        return mutated_bytes(rng, rng.choice(seeds))
    return json_text(mutated_json(rng, json.loads(rng.choice(seeds))))


def _check_keys(mixed: bool, data: bytes, _: Path) -> None:
    """Keys are refused, or the profile can be protected with them."""
    codec.attach(_run(mixed).loaded, data.decode("utf-8", "replace")).protected(11)


@cache
def _journal() -> bytes:
    with TemporaryDirectory() as folder:
        journal = FileJournal(f"{folder}/journal", "data")
        for number in range(4):
            journal.keep(bytes([number]) * 32, np.arange(5.0) + number)
        return Path(folder, "journal").read_bytes()


def _check_journal(data: bytes, folder: Path) -> None:
    """Whole entries at the beginning are known, and no other."""
    path = folder / "journal"
    path.write_bytes(data)
    journal = FileJournal(path, "data")
    for number in range(4):
        sums = journal.recall(bytes([number]) * 32)
        expect(sums is None or sums.tolist() == [number + i for i in range(5)], "an altered E-step")
    kept = path.read_bytes()
    expect(kept == data[: len(kept)] or not data, "more than an end was cut off")


@cache
def _cohort_file(mixed: bool) -> bytes:
    with TemporaryDirectory() as folder:
        save_cohort(small_cohort(mixed), f"{folder}/cohort.parquet")
        return Path(folder, "cohort.parquet").read_bytes()


def contents(cohort: Cohort) -> list[Any]:
    """Return all that a cohort holds, to compare it with another."""
    return [
        cohort.matrix.indptr.tolist(),
        cohort.matrix.indices.tolist(),
        cohort.ids.to_pylist(),
        (cohort.codes, cohort.names, cohort.system, cohort.level, cohort.left_out),
        cohort.covariates.to_pydict(),
        cohort.ledger.to_dict(),
        None if cohort.weights is None else cohort.weights.tolist(),
        cohort.least_codes,
        None if cohort.features is None else repr(cohort.features.columns()),
    ]


@cache
def _contents(mixed: bool) -> list[Any]:
    return contents(small_cohort(mixed))


def _check_cohort_file(mixed: bool, data: bytes, folder: Path) -> None:
    """See that a damaged cohort is refused, or nothing of what it holds has changed."""
    path = folder / "cohort.parquet"
    path.write_bytes(data)
    same = contents(load_cohort(path)) == _contents(mixed)
    expect(same, "a damaged cohort file was read as another cohort")


@cache
def _cohort_header(mixed: bool) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, "cohort.parquet")
        path.write_bytes(_cohort_file(mixed))
        return bytes(pq.read_metadata(path).metadata[block_files.HEADER])


def _check_cohort_header(mixed: bool, data: bytes, folder: Path) -> None:
    """See that a cohort file with an odd header is refused, or can be read to its end."""
    path = folder / "cohort.parquet"
    table = as_table(small_cohort(mixed))
    with pq.ParquetWriter(path, table.schema, write_page_checksum=True) as writer:
        writer.write_table(table)
        seal = hashlib.sha256(data).hexdigest().encode()
        writer.add_key_value_metadata({block_files.HEADER: data, block_files.SEAL: seal})
    file = CohortFile.open(path)
    file.load()
    file.blocks()
    file.digest()


def _check_map(data: bytes, folder: Path) -> None:
    path = folder / "map.csv"
    path.write_bytes(data)
    found = read_map(path)
    expect(len(found.titles) > 0, "a map without groups was taken")
