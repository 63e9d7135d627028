"""What is gathered block by block is what the whole tells, also of a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from comorb.insight.profile.gathering import Gathering, gathered
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.profiling import profile
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
