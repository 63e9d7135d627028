import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.errors import StorageError
from comorb.records.archive import load_cohort, save_cohort
from tests.records.helpers import make


@pytest.fixture
def saved(tmp_path):
    cohort = make([[1, 0, 1], [0, 0, 0], [1, 1, 1]], age=[70.0, None, 9.0], id=["a", "b", "c"])
    save_cohort(cohort, tmp_path / "cohort.parquet")
    return cohort, tmp_path / "cohort.parquet"


def test_a_cohort_comes_back_whole(saved):
    cohort, path = saved
    again = load_cohort(path)
    assert np.array_equal(again.matrix.toarray(), cohort.matrix.toarray())
    assert again.matrix.indices.dtype == np.int32
    assert again.matrix.data.dtype == np.uint8
    assert again.ids.equals(cohort.ids)
    assert again.covariates.equals(cohort.covariates)
    assert np.asarray(again.weights).tolist() == [1.0, 2.0, 3.0]
    for part in ("codes", "names", "system", "level", "ledger"):
        assert getattr(again, part) == getattr(cohort, part)


def test_a_part_of_a_cohort_comes_back_whole(saved, tmp_path):
    cohort = saved[0].at_least(1)
    save_cohort(cohort, tmp_path / "part.parquet")
    assert load_cohort(tmp_path / "part.parquet").ledger == cohort.ledger


def test_no_half_written_file_is_left(saved, monkeypatch, tmp_path):
    cohort, path = saved
    before = path.read_bytes()

    def fail(*_args, **_options):
        raise OSError("the disk is full")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    with pytest.raises(StorageError, match="can't be written: the disk is full; what was there"):
        save_cohort(cohort, path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["cohort.parquet"]


def rewrite(path, change):
    table = pq.read_table(path)
    about = json.loads(pq.read_metadata(path).metadata[b"comorb.cohort"])
    change(about)
    pq.write_table(
        table.replace_schema_metadata({b"comorb.cohort": json.dumps(about).encode()}), path
    )


def test_what_is_refused(saved, tmp_path):
    _, path = saved
    with pytest.raises(StorageError, match="There is no cohort file"):
        load_cohort(tmp_path / "other.parquet")
    rewrite(path, lambda about: about.update(ones=99))
    with pytest.raises(StorageError, match="is damaged: it doesn't hold the codes it says"):
        load_cohort(path)
    rewrite(path, lambda about: about.update(ones=5, codes=["250"], names=["n"]))
    with pytest.raises(StorageError, match="is damaged: it doesn't hold"):
        load_cohort(path)
    rewrite(path, lambda about: about.update(version=3))
    with pytest.raises(StorageError, match=r"has version 3 of the cohort format .* knows 2"):
        load_cohort(path)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(StorageError, match="Parquet file but no cohort"):
        load_cohort(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(StorageError, match="damaged or no Parquet file"):
        load_cohort(path)
