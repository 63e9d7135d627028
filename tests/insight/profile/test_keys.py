"""The keys of records: the same patient, the same key, wherever the record stands."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from comorb.errors import StorageError
from comorb.insight.profile.keys import FILE, HOME, own_secret, record_keys, secret_in
from comorb.records.cohort import Cohort
from comorb.records.ledger import NO_UNIQUE_ID
from comorb.records.reading import read_records
from comorb.storage import mixed
from tests.insight.conftest import SECRET, make_cohort


def shuffled(cohort: Cohort, seed: int) -> tuple[Cohort, np.ndarray]:
    order = np.random.default_rng(seed).permutation(len(cohort))
    rows = pa.array(order)
    moved = replace(
        cohort,
        matrix=cohort.matrix[order],
        ids=cohort.ids.take(rows),
        covariates=cohort.covariates.take(rows),
    )
    return moved, order


def without_ids(cohort: Cohort) -> Cohort:
    numbers = pa.array([str(i) for i in range(1, len(cohort) + 1)])
    return replace(cohort, ids=numbers, ledger=cohort.ledger.noted(NO_UNIQUE_ID))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_record_keeps_its_key_in_another_order_and_among_others(seed: int) -> None:
    cohort = make_cohort()
    keys = record_keys(cohort, SECRET)
    moved, order = shuffled(cohort, seed)
    np.testing.assert_array_equal(record_keys(moved, SECRET), keys[order])
    fewer = cohort.having("585").drop_codes("250")
    kept = np.isin(cohort.ids.to_pylist(), fewer.ids.to_pylist())
    np.testing.assert_array_equal(record_keys(fewer, SECRET), keys[kept])
    assert len(set(keys.tolist())) == len(cohort)
    assert not np.any(record_keys(cohort, bytes(32)) == keys)


@pytest.mark.parametrize("covariates", [True, False])
def test_without_ids_what_a_record_holds_makes_its_key(covariates: bool) -> None:
    cohort = make_cohort()
    if not covariates:
        cohort = replace(cohort, covariates=pa.table({}))
    moved, order = shuffled(cohort, 3)
    one, two = without_ids(cohort), without_ids(moved)
    assert one.numbered
    keys = record_keys(one, SECRET)
    np.testing.assert_array_equal(record_keys(two, SECRET), keys[order])
    assert len(set(keys.tolist())) > 20
    if covariates:
        np.testing.assert_array_equal(record_keys(one.drop_codes("250"), SECRET), keys)


def test_a_file_without_ids_is_known_as_one(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("age,dx1,dx2\n70,4280,5859\n71,4280,25000\n")
    assert read_records(path).numbered
    path.write_text("visit_id,age,dx1,dx2\n8,70,4280,5859\n9,71,4280,25000\n")
    assert not read_records(path).numbered


def test_a_secret_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(lambda _: secret_in(folder), range(32)))
    assert len(made) == 1
    assert [path.name for path in folder.iterdir()] == [FILE]
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600
    assert secret_in(tmp_path / "copy", made.pop()) == secret_in(folder)


def test_ones_own_secret_is_in_the_folder_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME, str(tmp_path))
    assert own_secret() == bytes.fromhex((tmp_path / FILE).read_text())
    monkeypatch.delenv(HOME)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert own_secret() != secret_in(tmp_path)
    assert (tmp_path / ".config" / "comorb" / FILE).exists()


def test_a_secret_that_cannot_be_kept_or_is_damaged_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"can't be kept in .* Name a folder of yours in"):
        secret_in(tmp_path / "file")
    for wrong in ("abc", "zz" * 32, ""):
        (tmp_path / FILE).write_text(wrong)
        with pytest.raises(StorageError, match="is damaged; put back the file that was there"):
            secret_in(tmp_path)


def test_every_bit_of_a_mixed_key_depends_on_the_key() -> None:
    keys = np.random.default_rng(1).integers(0, 2**63, 4000, dtype=np.uint64)
    flipped = mixed(keys) ^ mixed(keys ^ np.uint64(1))
    shares = [np.mean((flipped >> np.uint64(bit)) & np.uint64(1)) for bit in range(64)]
    assert min(shares) > 0.45
    assert max(shares) < 0.55
