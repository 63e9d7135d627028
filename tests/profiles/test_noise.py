"""The noise of counts and the keys of records: the same patient, the same key, the same noise."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chisquare

from comorb.errors import StorageError
from comorb.profiles.noise import (
    HOME_VARIABLE,
    MAX_ANSWER_NOISE,
    MAX_HIDDEN_NOISE,
    MAX_NOISE,
    SECRET_FILE,
    CountProtector,
    append_whole,
    noise,
    own_secret,
    record_keys,
    round_two_digits,
    secret_in,
)
from comorb.records.cohort import Cohort
from comorb.records.ledger import NO_UNIQUE_ID
from comorb.records.read import read_records
from comorb.storage import mixed
from tests.small_cohort import SECRET, make_cohort

RNG = np.random.default_rng(11)
RECORDS = RNG.integers(0, 2**64, 20_000, dtype=np.uint64)


def sets(size: int, many: int) -> np.ndarray:
    """Return the keys of sets of so many records, drawn from the same ones."""
    drawn = np.array([RNG.choice(RECORDS, size, replace=False) for _ in range(many)])
    return drawn.sum(axis=1, dtype=np.uint64)


@pytest.mark.parametrize(
    ("most", "variance"), [(MAX_NOISE, 5.26), (MAX_HIDDEN_NOISE, 19.9), (MAX_ANSWER_NOISE, 488)]
)
def test_noise_has_mean_0_its_variance_and_bounds(most: int, variance: float) -> None:
    drawn = noise(RNG.integers(0, 2**64, 200_000, dtype=np.uint64), most)
    assert abs(drawn.mean()) < 4 * np.sqrt(variance / drawn.size)
    assert drawn.var() == pytest.approx(variance, rel=0.02)
    assert (drawn.min(), drawn.max()) == (-most, most)


def test_no_trace_of_a_small_count_is_in_the_noise() -> None:
    expected = np.bincount(noise(RNG.integers(0, 2**64, 400_000, dtype=np.uint64)) + MAX_NOISE)
    shares = expected / expected.sum()
    for count in range(1, 11):
        drawn = np.bincount(noise(sets(count, 3000)) + MAX_NOISE, minlength=11)
        assert chisquare(drawn, shares * drawn.sum()).pvalue > 1e-4, count


def test_nearly_equal_sets_have_unrelated_noise() -> None:
    wholes = sets(500, 4000)
    more = wholes + RNG.choice(RECORDS, 4000)
    one, two = noise(wholes), noise(more)
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.06
    assert (one - two).var() == pytest.approx(2 * 5.26, rel=0.1)


ONE = CountProtector(11, np.uint64(12345))


def keys(*shape: int) -> np.ndarray:
    return RNG.integers(0, 2**64, shape, dtype=np.uint64)


def test_few_and_none_are_not_told_and_others_are_near() -> None:
    counts = np.repeat(np.arange(41.0), 500)
    published = ONE.counts(counts, keys(counts.size))
    assert np.isnan(published[counts < 11]).all()
    many = counts >= 11
    assert np.nanmin(published[many]) == 11
    assert np.nanmax(np.abs(published - counts)[many]) == MAX_NOISE
    assert not np.isnan(published[counts >= 11 + MAX_NOISE]).any()
    assert np.isnan(published[counts == 11]).any()


def test_the_noise_of_a_set_is_another_in_another_cohort() -> None:
    counts, own = np.full(4000, 100.0), keys(4000)
    one, two = (CountProtector(11, np.uint64(c)).counts(counts, own) for c in (1, 2))
    np.testing.assert_array_equal(CountProtector(11, np.uint64(1)).counts(counts, own), one)
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.06


def test_the_noise_of_a_table_adds_up_and_stays_small() -> None:
    parts = RNG.integers(0, 200, (3000, 6)).astype(float)
    whole = keys(3000, 6)
    counts = np.column_stack([parts, parts.sum(axis=1)])
    own = np.column_stack([whole, whole.sum(axis=1, dtype=np.uint64)])
    drawn = ONE.table_noise(counts, own)
    np.testing.assert_array_equal(drawn[:, :-1].sum(axis=1), drawn[:, -1])
    np.testing.assert_array_equal(drawn[:, -1], noise(ONE.keys(own[:, -1])))
    many = np.column_stack([parts >= 11, np.zeros(3000, bool)])
    assert abs(drawn[many].mean()) < 0.1
    assert drawn[many].std() < 2.6
    published = ONE.table(counts, own)
    assert np.isnan(published[counts < 11]).all()
    fixed = ONE.table_noise(counts, own, counts[:, -1] + 3)
    assert (fixed[:, :-1].sum(axis=1) == 3).all()
    one = append_whole(parts[0], whole[0])
    np.testing.assert_array_equal(ONE.table(*one), published[0])


def test_the_noise_of_two_divisions_adds_up_to_that_of_either() -> None:
    counts, own = RNG.integers(20, 90, (4, 3)).astype(float), keys(4, 3)
    published = ONE.cross_table(counts, own)
    rows = ONE.table(*append_whole(counts.sum(axis=1), own.sum(axis=1, dtype=np.uint64)))
    columns = ONE.table(*append_whole(counts.sum(axis=0), own.sum(axis=0, dtype=np.uint64)))
    assert np.abs(published.sum(axis=1) - rows[:-1]).max() <= 1.5
    assert np.abs(published.sum(axis=0) - columns[:-1]).max() <= 2


def test_all_and_all_but_few_are_told_alike() -> None:
    wholes, own = np.full(2000, 500.0), keys(2, 2000)
    published = ONE.counts(wholes, own[0])
    for rest in (0, 4, 10):
        parts = ONE.part_counts(wholes - rest, own[1], published, wholes)
        np.testing.assert_array_equal(parts, published - 5)
        np.testing.assert_array_equal(
            ONE.part_counts(wholes - rest, own[1], published, wholes, 0), published
        )
    assert np.isnan(ONE.part_counts(wholes - 4, own[1], published * np.nan, wholes)).all()
    few = np.full(2000, 14.0)
    published = ONE.counts(few, own[0])
    assert np.isnan(ONE.part_counts(few - 1, own[1], np.fmin(published, 15), few)).all()


def test_shares_are_those_of_protected_counts_times_a_rounded_ratio_of_weights() -> None:
    parts, published = np.array([103.0, 50, np.nan]), np.array([103.0, 98, 100])
    counts, wholes = np.array([100.0, 48, 4]), np.full(3, 100.0)
    assert ONE.shares(parts, published, counts, wholes, None)[:2].tolist() == [1, 0.5102]
    weighted = np.array([1.0, 0.6129, 0.1])
    ratio = ONE.weight_ratio(weighted, counts, wholes, parts, published)
    assert ratio.tolist() == [1, 1.3, 1]
    shares = ONE.shares(parts, published, counts, wholes, weighted)
    assert shares[1] == round(1.3 * 50 / 98, 4)
    assert round_two_digits(np.array([[0.01234, 9876.0]])).tolist() == [[0.012, 9900.0]]


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


def test_without_ids_what_a_record_holds_beside_codes_makes_its_key() -> None:
    cohort = make_cohort()
    moved, order = shuffled(cohort, 3)
    one, two = without_ids(cohort), without_ids(moved)
    assert one.numbered
    keys = record_keys(one, SECRET)
    np.testing.assert_array_equal(record_keys(two, SECRET), keys[order])
    assert len(set(keys.tolist())) > 20


@pytest.mark.parametrize("covariates", [True, False])
def test_without_ids_other_codes_are_no_other_keys(covariates: bool) -> None:
    cohort = make_cohort()
    cohort = without_ids(cohort if covariates else replace(cohort, covariates=pa.table({})))
    keys = record_keys(cohort, SECRET)
    np.testing.assert_array_equal(record_keys(cohort.drop_codes("250"), SECRET), keys)
    renamed = replace(cohort, codes=tuple(f"{code}.0" for code in cohort.codes))
    np.testing.assert_array_equal(record_keys(renamed, SECRET), keys)


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
    assert [path.name for path in folder.iterdir()] == [SECRET_FILE]
    assert stat.S_IMODE((folder / SECRET_FILE).stat().st_mode) == 0o600
    assert secret_in(tmp_path / "copy", made.pop()) == secret_in(folder)


def test_ones_own_secret_is_in_the_folder_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    assert own_secret() == bytes.fromhex((tmp_path / SECRET_FILE).read_text())
    monkeypatch.delenv(HOME_VARIABLE)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert own_secret() != secret_in(tmp_path)
    assert (tmp_path / ".config" / "comorb" / SECRET_FILE).exists()


def test_a_secret_that_cannot_be_kept_or_is_damaged_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"can't be kept in .* Name a folder of yours in"):
        secret_in(tmp_path / "file")
    for wrong in ("abc", "zz" * 32, ""):
        (tmp_path / SECRET_FILE).write_text(wrong)
        with pytest.raises(StorageError, match="is damaged; put back the file that was there"):
            secret_in(tmp_path)


def test_every_bit_of_a_mixed_key_depends_on_the_key() -> None:
    keys = np.random.default_rng(1).integers(0, 2**63, 4000, dtype=np.uint64)
    flipped = mixed(keys) ^ mixed(keys ^ np.uint64(1))
    shares = [np.mean((flipped >> np.uint64(bit)) & np.uint64(1)) for bit in range(64)]
    assert min(shares) > 0.45
    assert max(shares) < 0.55
