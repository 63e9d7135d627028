import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.errors import StorageError
from comorb.records.cohort_file import load_cohort, save_cohort
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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda about: about.pop("codes"), "it doesn't say its codes"),
        (lambda about: about.pop("version"), "it doesn't say which version it has"),
        (lambda about: about.update(codes=["250", "250", "251"]), "a code stands there twice"),
        (lambda about: about.update(codes=["250", 7, "251"]), "a text is something else"),
        (lambda about: about.update(names="abc"), "its names are no list"),
        (lambda about: about.update(records="3"), "a number is something else"),
        (lambda about: about.update(ones=-1), "a number is something else"),
        (lambda about: about.update(ledger=[]), "its ledger is none"),
        (lambda about: about.update(ledger={"lines": [{}]}), "its ledger is none"),
        (lambda about: about["ledger"]["lines"][0].update(after="3"), "its ledger is none"),
        (lambda about: about["ledger"].update(notes=[7]), "its ledger is none"),
        (lambda about: about.update(columns=["a", "b"]), "its columns are not those that it says"),
        (lambda about: about.update(types=["int64"]), "its columns are not those that it says"),
        (
            lambda about: about.update(
                features=[{"name": "no", "kind": "number", "levels": [], "transform": "none"}]
            ),
            "its columns are not those that it says",
        ),
    ],
)
def test_a_header_of_nonsense_is_refused(saved, change, said):
    rewrite(saved[1], change)
    with pytest.raises(StorageError, match=rf"cohort.parquet is damaged: .*{said}"):
        load_cohort(saved[1])


@pytest.mark.parametrize("header", [b"[]", b"{", b'"\xff"', b"[" * 100_000])
def test_a_header_that_is_none_is_refused(saved, header):
    path = saved[1]
    table = pq.read_table(path).replace_schema_metadata({b"comorb.cohort": header})
    pq.write_table(table, path)
    with pytest.raises(
        StorageError, match=r"cohort\.parquet is damaged: .* Write the cohort again"
    ):
        load_cohort(path)


def test_one_changed_byte_of_what_a_file_says_of_itself_is_seen(saved):
    _, path = saved
    data = path.read_bytes()
    for said in (b"name of 251", b"category", b"comorb.codes"):
        place = data.rindex(said)
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(StorageError, match="damaged"):
            load_cohort(path)
