"""Every engine reads records where they are, from files and from frames of its own, alike.

Tasks go by `mapping`, and `places` tells which file holds which row group.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb import read_dask, read_spark
from comorb.engines import open_blocks
from comorb.errors import EngineError
from comorb.model.estimators import BernoulliMixture
from comorb.records.cohort_file import CohortFile
from comorb.records.datasets import region
from comorb.records.distributed import shuffle
from comorb.records.distributed.read import distribute_cohort
from comorb.records.read import read_records
from comorb.records.spec import CohortSpec
from comorb.records.stream import write_cohort
from tests.records.distributed.test_read import differing, rare
from tests.records.distributed.test_read import save as save_parts
from tests.records.distributed.test_read_omop import cdm, save

FILES = 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("region") / "claims"
    folder.mkdir()
    table = pa.Table.from_batches(region(2000, "long"))
    for number in range(FILES):
        rows = table.take(np.arange(number, len(table), FILES))
        pq.write_table(rows, folder / f"part-{number}.parquet")
    return folder


@pytest.fixture(scope="module")
def whole(folder):
    return CohortSpec(having=("585",), drop_rare=5).cohort(folder)


@pytest.fixture(scope="module")
def every(folder):
    return read_records(folder)


def fits_as(whole, path):
    """Tell whether a fit from a folder of parts has the bits of one in memory."""
    inside = BernoulliMixture(3).fit(whole.matrix)
    outside = BernoulliMixture(3).fit_blocks(open_blocks(path))
    return inside.means_.tobytes() == outside.means_.tobytes()


def test_files_are_read_by_the_workers(engine, folder, whole, tmp_path):
    distribute_cohort(folder, tmp_path / "c", CohortSpec(having=("585",), drop_rare=5), engine)
    read = CohortFile.open(tmp_path / "c")
    assert (read.digest(), read.codes) == (whole.digest(), whole.codes)
    assert read.ledger.notes == whole.ledger.notes
    assert fits_as(whole, tmp_path / "c")


def test_codes_that_a_single_part_has_are_read_by_the_workers(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(shuffle, "PARTITION_ROWS", 1000)
    folder, asked = save_parts(rare(bed=differing), tmp_path / "visits"), CohortSpec(drop_rare=2)
    distribute_cohort(folder, tmp_path / "c", asked, engine)
    write_cohort(folder, tmp_path / "limited.parquet", asked, "1GB")
    whole, read = asked.cohort(folder), CohortFile.open(tmp_path / "c")
    assert len(list((tmp_path / "c").glob("part-*"))) > 1
    assert holds_the_same(read, whole)
    assert holds_the_same(CohortFile.open(tmp_path / "limited.parquet"), whole)
    assert fits_as(whole, tmp_path / "c")


def test_a_sample_is_picked_by_the_workers(engine, folder, tmp_path):
    distribute_cohort(folder, tmp_path / "c", executor=engine)
    read = CohortFile.open(tmp_path / "c")
    for most in (300, 70):
        (one, step), (two, same) = read.sample(most, engine), read.sample(most)
        assert step == same > 1
        assert one.ids.to_pylist() == two.ids.to_pylist()
        assert (one.digest(), one.ledger) == (two.digest(), two.ledger)
    assert {file.name for file in tmp_path.iterdir()} == {"c"}


def test_frames_are_read_where_they_are(engine, folder, every, tmp_path):
    kind = type(engine).__name__
    if kind == "DaskEngine":
        import dask.dataframe as dd

        read = read_dask(dd.read_parquet(folder), tmp_path / "c")
    elif kind == "SparkEngine":
        frame = engine.session.read.parquet(str(folder))
        read = read_spark(frame, tmp_path / "c")
        frame.createOrReplaceTempView("claims")
        named = read_spark("claims", tmp_path / "named")
        assert named.digest() == every.digest()
        with pytest.raises(EngineError, match="Spark has no table 'claim'"):
            read_spark("claim", tmp_path / "none")
    else:
        pytest.skip("this engine has no frames")
    assert (read.digest(), read.codes) == (every.digest(), every.codes)
    assert read.ledger.chain("rows") == every.ledger.chain("rows")
    assert sorted(read.load().ids.to_pylist()) == sorted(every.ids.to_pylist())


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return save(cdm(), tmp_path_factory.mktemp("omop") / "cdm")


def holds_the_same(read, whole):
    """Tell whether a cohort on the disk has the records, names, covariates and counts of one."""
    one = read.load()
    pairs = [
        dict(zip(cohort.ids.to_pylist(), cohort.covariates.to_pylist(), strict=True))
        for cohort in (one, whole)
    ]
    chains = [
        [cohort.ledger.chain(unit) for unit in ("rows", "records")] for cohort in (one, whole)
    ]
    return (
        (read.digest(), read.codes, read.names) == (whole.digest(), whole.codes, whole.names)
        and pairs[0] == pairs[1]
        and chains[0] == chains[1]
        and read.ledger.notes == whole.ledger.notes
    )


@pytest.mark.parametrize("unit", ["patient", "visit"])
def test_tables_of_omop_are_read_by_the_workers(engine, database, unit, tmp_path):
    asked = CohortSpec(unit=unit, at_least=1)
    distribute_cohort(database, tmp_path / "c", asked, engine)
    assert holds_the_same(CohortFile.open(tmp_path / "c"), asked.cohort(database))


def test_frames_of_omop_are_read_where_they_are(engine, database, tmp_path):
    kind, names = type(engine).__name__, ("condition_occurrence", "person", "concept")
    if kind == "DaskEngine":
        import dask.dataframe as dd

        frames = {name.upper(): dd.read_parquet(database / name) for name in names}
        read = read_dask(frames, tmp_path / "c")
    elif kind == "SparkEngine":
        frames = {name: engine.session.read.parquet(str(database / name)) for name in names}
        read = read_spark(frames, tmp_path / "c", table="condition_occurrence")
        for name in names:
            frames[name].createOrReplaceTempView(name)
        found = read_spark("condition_occurrence", tmp_path / "found")
        assert holds_the_same(found, read_records(database))
        alone = read_spark({"condition_occurrence": "condition_occurrence"}, tmp_path / "alone")
        assert alone.load().covariates.column_names == ["date"]
    else:
        pytest.skip("this engine has no frames")
    assert holds_the_same(read, read_records(database))


def test_frames_without_their_engine_are_refused(folder, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    with pytest.raises(EngineError, match="Records of Dask are read where they are; name the eng"):
        distribute_cohort(dd.read_parquet(folder), tmp_path / "c")
    with pytest.raises(EngineError, match=r"table:claims is a table of Spark; name the engine"):
        distribute_cohort("table:claims", tmp_path / "c")
