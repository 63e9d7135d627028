"""Readers: every layout on tables with odd cells, and every kind of file with odd bytes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from comorb.records.codes.system import LEVELS
from comorb.records.codes.systems import SYSTEMS
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.readers import READERS
from comorb.records.read import read_records
from comorb.records.sources.arrow import check_arrow
from comorb.records.sources.statistics import read_statistics
from comorb.records.sources.workbooks import list_sheets, read_sheet
from tests.records.helpers import sets
from tests.records.layouts.test_omop import OMOP
from tests.records.sources.test_damage import APART, CHECKED, WRITERS
from tests.records.sources.test_fhir_files import EVERY
from tests.records.test_read import LAYOUTS, RECORDS
from torture.mutation import Rows, as_text, json_text, mutated_bytes, mutated_json, mutated_rows
from torture.target import Target, expect


def targets() -> list[Target]:
    """Return a target for each layout and one for each kind of file."""
    layouts = [
        Target(
            f"layout {kind}",
            lambda _, kind=kind: [kind.encode()],
            _check_layout,
            300,
            _mutate_layout,
            20,
        )
        for kind in READERS
    ]
    kinds = [
        Target(
            f"kind {kind}",
            lambda _, kind=kind: [_whole(kind)],
            _check_apart(kind) if kind in APART else _check_kind(kind),
            400 if kind in APART else 300,
            seconds=10 if kind in APART else 20,
            apart=kind in APART,
        )
        for kind in WRITERS
    ]
    return [*layouts, *kinds]


def _rows(table: pa.Table) -> Rows:
    columns = table.to_pydict()
    body = [["" if cell is None else str(cell) for cell in row] for row in zip(*columns.values())]  # noqa: B905
    return [list(columns), *body]


@cache
def _tables() -> dict[str, dict[str, Rows]]:
    """Return whole tables of every layout that has any; others are tried on all of these."""
    beside = {"age": "70", "sex": "F", "admission_date": "2010-02-03"}
    single = {}
    for kind, build in LAYOUTS.items():
        rows = _rows(build(RECORDS))
        rows[0] += list(beside)
        single[kind] = {"records.csv": [rows[0], *([*row, *beside.values()] for row in rows[1:])]}
    return {**single, "omop": {f"{name}.csv": _rows(table) for name, table in OMOP.items()}}


def _mutate_layout(rng: Random, seeds: Sequence[bytes]) -> bytes:
    """Return a source as JSON: its files, and how it is to be read."""
    kind = seeds[0].decode()
    if kind == "fhir" or (kind not in _tables() and rng.random() < 0.3):
        text = "".join(
            json_text(mutated_json(rng, resource) if rng.random() < 0.3 else resource).decode(
                "utf-8", "replace"
            )
            + "\n"
            for resource in EVERY
        )
        files = {"records.ndjson": text.encode()}
    else:
        files = {}
        whole = _tables().get(kind) or rng.choice(list(_tables().values()))
        changed = rng.choice(list(whole))
        for name, rows in whole.items():
            table = mutated_rows(rng, rows) if name == changed else rows
            files[name] = as_text(rng, table)
    if rng.random() < 0.2:
        name = rng.choice(list(files))
        files[name] = mutated_bytes(rng, files[name])
    options = {
        "layout": kind if kind not in _tables() or rng.random() < 0.3 else None,
        "unit": rng.choice((None, None, "visit", "patient")),
        "system": rng.choice((None, None, None, *SYSTEMS)),
        "level": rng.choice(LEVELS),
        "chronic": rng.random() < 0.1,
    }
    plain = {name: data.decode("latin-1") for name, data in files.items()}
    return json.dumps({"options": options, "files": plain}).encode()


def _check_layout(data: bytes, folder: Path) -> None:
    if not data.startswith(b"{"):
        return
    told: dict[str, Any] = json.loads(data)
    place = folder / "source"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name, text in told["files"].items():
        (place / name).write_bytes(text.encode("latin-1"))
    options = {name: value for name, value in told["options"].items() if value}
    if "layout" in options:
        options["layout"] = Layout(kind=options["layout"])
    only = next(place.iterdir()) if len(told["files"]) == 1 else place
    cohort = read_records(only, **options)
    expect(cohort.ledger.adds_up, "the ledger doesn't add up")
    expect(len(set(cohort.ids.to_pylist())) == len(cohort), "two records have one id")
    expect(cohort.matrix.nnz == 0 or cohort.matrix.data.max() == 1, "the matrix isn't of 0 and 1")


@cache
def _whole(kind: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, "whole")
        WRITERS[kind](path)
        return path.read_bytes()


def _check_kind(kind: str) -> Callable[[bytes, Path], None]:
    def check(data: bytes, folder: Path) -> None:
        path = folder / "file"
        path.write_bytes(data)
        cohort = read_records(path)
        expect(cohort.ledger.adds_up, "the ledger doesn't add up")
        if kind in CHECKED:
            expect(_records(cohort) == _records_of(kind), "a damaged file was read as another")

    return check


def _check_apart(kind: str) -> Callable[[bytes, Path], None]:
    """Call what reads a kind apart, in this process, which it may end."""
    module, what = APART[kind]

    def check(data: bytes, folder: Path) -> None:
        file, out = str(folder / "file"), str(folder / "file.out")
        Path(file).write_bytes(data)
        if module == "statistical":
            answer = read_statistics(file, what, out)
        elif module == "arrowfile":
            answer = check_arrow(file)
        else:
            answer = list_sheets(file)
            if answer.get("sheets"):
                answer = read_sheet(file, answer["sheets"][0], out)
        expect("\n" not in answer.get("refusal", ""), "a refusal of several lines")

    return check


def _records(cohort: Any) -> dict[str, Any]:
    return dict(sets(cohort))


@cache
def _records_of(kind: str) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(_whole(kind))
        return _records(read_records(path))
