"""Records, cohorts, journals and clusters in a store, read and written by workers: the same bits.

The store is a small one of our own; its settings must be there when workers start, and so this is
tried with clusters alone. What is told of a store here is in `tests/test_remote.py`.
"""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.engines import FileJournal, open_blocks
from comorb.engines.block_files import identity
from comorb.errors import ComorbError
from comorb.model.estimators import BernoulliMixture
from comorb.records.cohort_file import CohortFile
from comorb.records.datasets import region
from comorb.records.distributed import shuffle
from comorb.records.distributed.read import distribute_cohort
from comorb.records.read import read_records
from comorb.records.spec import CohortSpec
from comorb.remote import Remote
from comorb.runs.assign import Scorer, write_assignments
from comorb.runs.run import Request, fit_records
from tests.engines import clusters
from tests.engines.conftest import AFAR
from tests.engines.deaths import Doomed
from tests.engines.test_contract import same_bits
from tests.records.sources.test_delta import Lake
from tests.stores import SECRET, settings, store

pytestmark = pytest.mark.skipif(
    not os.environ.get(clusters.CLUSTERS), reason="no cluster is wanted"
)

ALWAYS = {f"{call} {number}" for call in ("pass", "round") for number in range(1, 100)}


def sent(folder, place):
    """Copy all files of a folder to a store."""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            with file.open("rb") as content:
                (place / file.relative_to(folder).as_posix()).send(content)


@pytest.fixture(scope="module")
def claims(wards, tmp_path_factory):
    """Return a folder of files by year, which are in the store too."""
    folder = tmp_path_factory.mktemp("claims")
    table = pa.Table.from_batches(region(1500, "wide"))
    for number in range(4):
        path = folder / f"year={2015 + number}" / f"part-{number}.parquet"
        path.parent.mkdir()
        pq.write_table(table.slice(number * 375, 375), path, write_page_checksum=True)
    sent(folder, wards / "claims")
    return folder


@pytest.mark.parametrize("engine", AFAR, indirect=True)
def test_workers_that_die_in_a_store_do_not_change_a_bit(
    engine, claims, wards, tmp_path, monkeypatch
):
    monkeypatch.setattr(shuffle, "PARTITION_ROWS", 300)
    distribute_cohort(claims, tmp_path / "here")
    there = wards / type(engine).__name__ / tmp_path.name
    doomed = Doomed(engine, tmp_path / "died", ALWAYS)
    distribute_cohort(wards / "claims", there / "cohort", executor=doomed)
    here, cohort = CohortFile.open(tmp_path / "here"), CohortFile.open(there / "cohort")
    assert identity(cohort.path) == identity(here.path)
    assert set(cohort.load().covariates["year"].to_pylist()) == {2015, 2016, 2017, 2018}

    whole = BernoulliMixture(3).fit_blocks(here.blocks())
    doomed.at = {"pass 1", "pass 3", f"round {doomed.rounds + 1}"}
    journal = FileJournal(there / "journal", identity(cohort.path))
    model = BernoulliMixture(3).fit_blocks(open_blocks(cohort.path, journal), doomed)
    assert same_bits(model, whole)
    again = FileJournal(there / "journal", identity(cohort.path))
    BernoulliMixture(3).fit_blocks(open_blocks(cohort.path, again), engine)
    assert again.recalled >= journal.passes - 1 > 0

    scorer = Scorer(model.mixture_, 1.0, (1, 2, 3))
    doomed.at = ALWAYS
    write_assignments(here, scorer, tmp_path / "here.csv", None)
    write_assignments(cohort, scorer, there / "all.csv", doomed)
    assert (there / "all.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    write_assignments(cohort, scorer, there / "parts", doomed)
    assert sum(len(pq.read_table(one.source())) for one in (there / "parts").below()) == 1500
    assert len(doomed.markers) > 5
    names = {one.uri[len(there.uri) + 1 :].partition("/")[0] for one in there.below()}
    assert names == {"cohort", "journal", "all.csv", "parts"}
    assert not any(SECRET.encode() in one.read_bytes() for one in there.below())


@pytest.mark.parametrize("engine", AFAR, indirect=True)
def test_patterns_lists_and_lakes_are_read_on_an_engine(engine, claims, wards, tmp_path):
    digest = read_records(claims).digest()
    files = [str(one) for one in (wards / "claims").below()]
    for number, source in enumerate(["s3://wards/claims/**/*.parquet", files, files[:2]]):
        distribute_cohort(source, tmp_path / str(number), executor=engine)
        same = CohortFile.open(tmp_path / str(number)).digest() == digest
        assert same == (number < 2)
    lake = Lake(tmp_path / "table")
    first = lake.write("a.parquet", [("1", "4280"), ("2", "25000")])
    lake.commit(first)
    second = lake.write("b.parquet", [("3", "5859"), ("4", "4280"), ("5", "4019")])
    lake.commit({"remove": {"path": first["add"]["path"], "dataChange": True}}, second)
    sent(tmp_path / "table", wards / "table")
    distribute_cohort(wards / "table", tmp_path / "lake", CohortSpec(at_least=1), engine)
    assert CohortFile.open(tmp_path / "lake").load().ids.to_pylist() == ["3", "4", "5"]


@pytest.mark.parametrize("requests", [20, 50, 80, 110, 140])
def test_a_store_that_is_lost_on_the_way_is_told(claims, monkeypatch, requests):
    bucket = Remote(f"s3://lost{requests}")  # a bucket is looked up once in a process
    with store(requests) as address:
        for name, value in settings(address).items():
            monkeypatch.setenv(name, value)
        sent(claims, bucket / "claims")
        with pytest.raises(ComorbError) as error:
            fit_records(bucket / "claims", bucket / "run", Request(3, repeats=0), engine="threads")
    assert bucket.uri in str(error.value)
    assert "\n" not in str(error.value)
    assert SECRET not in str(error.value)


def test_the_secrets_of_a_store_are_nowhere_in_a_run(claims, wards):
    fit_records(wards / "claims", wards / "run", Request(3, repeats=0), engine="threads")
    files = [one.read_bytes() for one in (wards / "run").below()]
    assert len(files) > 3
    assert not any(SECRET.encode() in one or b"someone" in one for one in files)
