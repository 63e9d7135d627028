"""What is gathered block by block is what the whole tells, also of a file."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from comorb.insight.profile.assignment import Assignment
from comorb.insight.profile.gathering import Gathering, gathered
from comorb.insight.profile.keys import record_keys
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.profiling import profile
from comorb.insight.runs.assigning import Gatherer, Picks
from comorb.insight.runs.scoring import Totals
from comorb.model.blocks import folded
from comorb.records.archive import CohortFile, save_cohort
from comorb.records.cohort import Cohort
from tests.insight.conftest import MODEL, SECRET, make_cohort


@pytest.fixture(scope="module")
def labels() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2, 600)


def told(gathering: Gathering) -> list[bytes]:
    burden = gathering.burden(())
    assert burden is not None
    arrays = [burden.records, burden.share, burden.rate, burden.low]
    for one in gathering.slices():
        arrays += [one.counts, one.share, one.p, one.standardised]
    return [array.tobytes() for array in arrays]


def test_blocks_of_a_file_tell_what_the_whole_does(
    labels: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort = make_cohort(weighted=True)
    monkeypatch.setattr("comorb.engines.blockfile.ROWS_A_GROUP", 170)
    save_cohort(cohort, tmp_path / "cohort.parquet")
    file = CohortFile.open(tmp_path / "cohort.parquet")
    parts, start = Gathering(2, SECRET), 0
    for number, size in enumerate((170, 170, 170, 90)):
        part = file.part(number, start, size)
        assert len(part) == size
        parts.add(part, labels[start : start + size])
        start += size
    assert told(parts) == told(gathered(cohort, labels, 2, SECRET))
    assert [one.by for one in parts.slices()] == ["age", "sex"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sites", [5, 40])
@pytest.mark.parametrize("days", [200, 900, 3000])
def test_what_is_gathered_apart_tells_what_the_whole_does(
    labels: np.ndarray, weighted: bool, sites: int, days: int, tmp_path: Path
) -> None:
    rng, n = np.random.default_rng(days + sites), 600
    ages = rng.integers(0, 99, n) + (days == 900) * rng.integers(0, 2, n) * 0.25
    table = pa.table(
        {
            "age": pa.array(ages, mask=rng.random(n) < 0.1),
            "sex": rng.choice(["f", "m"], n),
            "site": rng.integers(0, sites, n),
            "date": pa.array(18_000 + rng.integers(0, days, n), pa.int32()).cast(pa.date32()),
            "los": rng.integers(0, 30, n),
            "died": rng.choice(["yes", "no"], n),
            "patient": rng.integers(0, 80, n).astype(str),
        }
    )
    cohort = replace(make_cohort(weighted=weighted), covariates=table, patient="patient")
    whole = gathered(cohort, labels, 2, SECRET)
    picks = Picks(str(tmp_path), 7, np.array([0, 200, 400]))
    gatherer = Gatherer(cohort, 2, SECRET, None, picks)
    found: list[list[Any]] = []
    for start in (400, 0, 200):
        part = assigned(labels[start : start + 200])
        one_block = replace(gatherer, cohort=Only(cohort.part(0, start, 200)))
        sent = pickle.dumps(one_block.of(start // 200, part))
        assert SECRET not in sent
        found.append(pickle.loads(sent))
    some = picks.read(Totals(np.zeros(2), np.zeros(2), np.array([7.0, 14.0]), np.eye(2)))
    assert (some.labels.tolist(), some.soft.tolist()) == (labels[::7].tolist(), [1.0, 2.0])
    assert some.second.tolist() == (1 - labels[::7]).tolist()
    assert some.keys.tolist() == record_keys(cohort, SECRET)[::7].tolist()
    back, *people = map(gatherer.finish, folded(found))
    first = Gathering(2, SECRET, narrow=True)
    first += back
    assert repr(SECRET)[2:-1] not in repr(gatherer)
    assert weighted or sum(table.num_rows for table in first._tables) < n + (days == 3000)
    first.sums.counted = tuple(np.sum(some, axis=0) for some in zip(*people, strict=True))
    if not weighted:
        assert told(first) == told(whole)
    one, two = first.burden(()), whole.burden(())
    assert one.patients.tolist() == two.patients.tolist()
    assert one.totals.tobytes() == two.totals.tobytes()
    for name in ("records", "patients", "known", "rate_known", "rate_counts", "largest"):
        assert getattr(one.cells, name).tobytes() == getattr(two.cells, name).tobytes()
    for some, every in zip(first.slices(), whole.slices(), strict=True):
        assert (some.by, some.labels, some.notes) == (every.by, every.labels, every.notes)
        assert some.counts.tobytes() == every.counts.tobytes()
        assert some.cells.counts.tobytes() == every.cells.counts.tobytes()
        assert some.cells.strata_keys.tobytes() == every.cells.strata_keys.tobytes()


class Only:
    """A cohort that is one block."""

    def __init__(self, cohort: Cohort) -> None:
        self.cohort = cohort

    def part(self, block: int, start: int, size: int) -> Cohort:
        return self.cohort


def assigned(labels: np.ndarray) -> Assignment:
    nothing = np.zeros(labels.size)
    sums = np.zeros(2), np.zeros((2, 2))
    return Assignment(labels, nothing, nothing, nothing, *sums, second=1 - labels)


def test_a_part_of_a_cohort_is_those_rows(cohort: Cohort) -> None:
    part = cohort.part(1, 100, 50)
    assert part.ids.to_pylist() == cohort.ids.to_pylist()[100:150]
    assert part.matrix.toarray().tolist() == cohort.matrix[100:150].toarray().tolist()
    assert not part.numbered


def test_nothing_gathered_tells_nothing() -> None:
    empty = Gathering(2, None)
    assert empty.burden(()) is None
    assert empty.slices() == ()


def test_a_profile_has_all_three_parts(full: Profile) -> None:
    assert full.burden is not None
    assert full.burden.rates == ("died",)
    assert [one.by for one in full.slices] == ["age", "sex"]
    assert len(full.rules) == full.k


def test_records_without_covariates_have_a_burden_of_counts_alone(cohort: Cohort) -> None:
    bare = replace(cohort, covariates=pa.table({}))
    made = profile(MODEL, bare, secret=SECRET)
    assert made.burden is not None
    assert (made.burden.columns, made.burden.rates, made.slices) == ((), (), ())
    assert made.protected().burden is not None
