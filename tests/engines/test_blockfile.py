"""Cohort files as blocks: what is read, and what is refused."""

import pyarrow.parquet as pq
import pytest

from comorb.engines import open_blocks, open_engine
from comorb.engines.blockfile import identity
from comorb.errors import EngineError, StorageError
from comorb.model.moments import prevalence
from comorb.records.archive import load_cohort
from tests.engines.conftest import GROUP, ROWS


def test_a_block_is_a_row_group(file, cohort):
    blocks = open_blocks(file)
    rows = blocks.loaders[1]()
    part = cohort.matrix[GROUP : 2 * GROUP]
    assert rows.indices.tolist() == part.indices.tolist()
    assert rows.indptr.tolist() == part.indptr.tolist()
    assert rows.weights.size == 0
    assert blocks.weight == blocks.n_rows == ROWS
    metadata = pq.read_metadata(file).row_group(1)
    assert blocks.loaders[1].size == metadata.column(1).total_compressed_size


def test_some_of_the_records_can_be_loaded(file, cohort):
    some = load_cohort(file, 7_000)
    assert len(some) == 6_000
    assert some.ids.to_pylist() == cohort.ids.to_pylist()[::5]
    assert (some.matrix != cohort.matrix[::5]).nnz == 0
    assert some.ledger.lines[-1].rule == "one in 5"
    assert len(load_cohort(file, ROWS)) == ROWS


def test_a_corrupt_row_group_is_named(file, tmp_path):
    path = tmp_path / "corrupt.parquet"
    content = bytearray(file.read_bytes())
    place = pq.read_metadata(file).row_group(7).column(1).data_page_offset
    content[place : place + 400] = b"\0" * 400
    path.write_bytes(content)
    message = "corrupt.parquet: row group 7 is damaged or gone; write the file again, or copy it"
    with pytest.raises(StorageError, match=message):
        prevalence(open_blocks(path))
    with open_engine("threads") as engine, pytest.raises(StorageError, match=message):
        prevalence(open_blocks(path), engine)


def test_other_files_have_another_identity(file, tmp_path):
    pq.write_table(pq.read_table(file).slice(1), tmp_path / "other.parquet")
    assert identity(file) == identity(file)
    assert identity(file) != identity(tmp_path / "other.parquet")


@pytest.mark.parametrize("name", ["torch", "dusk://host:1", ""])
def test_an_unknown_engine_is_refused(name):
    message = r"expected the engine threads, dask, dask://HOST:PORT, .* got '"
    with pytest.raises(EngineError, match=message), open_engine(name):
        pass
