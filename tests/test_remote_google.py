"""A store of Google's: the same bits, and what it can't do told by its own cause."""

from __future__ import annotations

from datetime import timedelta
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb import read_records, remote
from comorb.engines import FileJournal, open_blocks
from comorb.engines.block_files import identity
from comorb.errors import RecordsError, StorageError
from comorb.model.estimators import BernoulliMixture
from comorb.records.datasets import region
from comorb.records.distributed.read import distribute_cohort
from comorb.remote import Remote, removed
from comorb.runs.assign import assign_records
from comorb.runs.run import Request, fit_records
from comorb.storage import load_model
from tests.stores import store


@pytest.fixture(autouse=True)
def fresh():
    remote._store.cache_clear()
    yield
    remote._store.cache_clear()


@pytest.fixture(scope="module")
def address():
    with store(kind="google") as address:
        yield address


@pytest.fixture
def health(address, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
    return Remote("gs://health")


@pytest.fixture
def claims(health, tmp_path):
    table = pa.Table.from_batches(region(1500, "wide"))
    for number in range(3):
        file = tmp_path / "claims" / f"year={2015 + number}" / "part.parquet"
        file.parent.mkdir(parents=True)
        pq.write_table(table.slice(number * 500, 500), file)
        with file.open("rb") as content:
            (health / file.relative_to(tmp_path).as_posix()).send(content)
    return tmp_path / "claims"


def test_a_bucket_for_everyone_is_named_as_such():
    assert remote._find_system("gs://anonymous@health/a/b")[1] == "health/a/b"


def test_files_are_written_read_moved_and_removed(health):
    content = bytes(range(256)) * 40_000  # more than Arrow sends at once
    (health / "a/b").send(BytesIO(content))
    assert (health / "a/b").read_bytes() == content
    (health / "a/b").move(health / "a/c/d")
    assert [one.uri for one in (health / "a").below()] == ["gs://health/a/c/d"]
    assert not (health / "a/b").exists()
    removed(health / "a")
    removed(health / "a")
    assert not (health / "a").exists()


def test_a_run_has_the_bits_of_one_on_the_disk(health, claims, tmp_path):
    request = Request(3, repeats=0)
    fit_records(claims, tmp_path / "run", request)
    fit_records("gs://health/claims", "gs://health/run", request, engine="threads")
    own, other = (
        load_model(run / "model.comorb").mixture for run in (tmp_path / "run", health / "run")
    )
    assert own.means.tobytes() == other.means.tobytes()
    assert not [one for one in health.below() if "unfinished" in one.uri]
    assign_records(tmp_path / "run", claims, tmp_path / "here.csv")
    assign_records("gs://health/run", "gs://health/claims", "gs://health/there.csv")
    assert (health / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()


def test_a_cohort_and_its_journal_lie_there(health, claims):
    where = health / "kept/cohort"
    distribute_cohort("gs://health/claims/**/*.parquet", where)
    first = FileJournal(health / "kept/journal", identity(where))
    model = BernoulliMixture(3).fit_blocks(open_blocks(where, first))
    assert model.means_.tobytes() == BernoulliMixture(3).fit(read_records(claims)).means_.tobytes()
    again = FileJournal("gs://health/kept/journal", identity(where))
    BernoulliMixture(3).fit_blocks(open_blocks(where, again))
    assert again.recalled >= first.passes - 1 > 0


def test_what_is_not_there_or_not_ours_is_told(health):
    with pytest.raises(RecordsError, match="There are no records at gs://health/none; check the"):
        read_records("gs://health/none")
    with pytest.raises(StorageError, match="There is no gs://health/none; check the address"):
        Remote("gs://health/none").read_bytes()
    with pytest.raises(StorageError) as error:
        Remote("gs://locked/claims").send(BytesIO(b"rows"))
    assert str(error.value) == (
        "gs://locked/claims can't be read or written: PERMISSION_DENIED: you may not look at this"
    )


def test_a_store_that_is_lost_is_told_before_long(monkeypatch):
    monkeypatch.setattr(remote, "_PATIENCE", timedelta(seconds=1))
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "127.0.0.1:1")
    with pytest.raises(
        StorageError, match=r"gs://health/claims can't be .*: UNAVAILABLE: .*connect"
    ):
        read_records("gs://health/claims")
