"""Cohort files as blocks, with features, which have the same bits on every engine."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb import LatentClassModel
from comorb.engines import block_files, open_blocks, open_engine
from comorb.engines.block_files import identity
from comorb.errors import EngineError, StorageError
from comorb.model.emissions.base import Feature
from comorb.model.moments import prevalence
from comorb.model.start import gather_rows
from comorb.model.sweep import hard_labels
from comorb.records.cohort_file import load_cohort
from tests.engines.conftest import GROUP, ROWS
from tests.model.mixed_rows import mixed_blocks, mixed_rows


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


SETTINGS = {"n_components": 3, "init": "asvtd", "max_iter": 12, "tol": 0.0}


@pytest.fixture(scope="session")
def rows():
    return mixed_rows(3000, d=8)


def write(path, matrix, table, weights=None, **header):
    lists = pa.LargeListArray.from_arrays(
        pa.array(matrix.indptr.astype(np.int64)), pa.array(matrix.indices.astype(np.int32))
    )
    ids = pa.array([f"r{row}" for row in range(matrix.shape[0])])
    columns = {block_files.ID: ids, block_files.CODES: lists} | block_files.feature_columns(table)
    if weights is not None:
        columns[block_files.WEIGHT] = pa.array(weights)
    codes = [f"{code:03d}" for code in range(matrix.shape[1])]
    about = {
        "version": block_files.VERSION_WITH_FEATURES,
        "records": matrix.shape[0],
        "ones": int(matrix.nnz),
        "codes": codes,
        "names": codes,
        "system": "opaque",
        "level": "category",
        "ledger": {},
        "features": [feature.to_dict() for feature in table.features],
    }
    schema = pa.table(columns).schema
    with pq.ParquetWriter(path, schema, write_page_checksum=True) as writer:
        writer.write_table(pa.table(columns), row_group_size=700)
        writer.add_key_value_metadata({block_files.HEADER: json.dumps(about | header).encode()})
    return path


@pytest.fixture(scope="session")
def mixed_file(rows, tmp_path_factory):
    return write(tmp_path_factory.mktemp("mixed") / "cohort.parquet", *rows[:2])


@pytest.fixture(scope="session")
def inside(rows):
    return mixed_blocks(*rows[:2])


@pytest.fixture(scope="session")
def mixed_fit(inside):
    with pytest.warns(match="did not converge"):
        return LatentClassModel(**SETTINGS).fit_blocks(inside)


def test_a_file_holds_the_features_of_memory(mixed_file, inside):
    blocks = open_blocks(mixed_file)
    assert len(blocks.loaders) == 5
    assert blocks.variables == inside.variables
    assert blocks.mean_square == inside.mean_square
    one, two = gather_rows(blocks), gather_rows(inside)
    assert one.values.tobytes() == two.values.tobytes()
    assert blocks.loaders[0].size > 0


@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_every_engine_gives_the_bits_of_memory(engine, mixed_file, inside, mixed_fit):
    blocks = open_blocks(mixed_file)
    model = LatentClassModel(**SETTINGS).fit_blocks(blocks, engine)
    assert model.traits_.tobytes() == mixed_fit.traits_.tobytes()
    assert model.means_.tobytes() == mixed_fit.means_.tobytes()
    assert model.history_.tobytes() == mixed_fit.history_.tobytes()
    labels = hard_labels(model.mixture_, blocks, engine)
    assert np.array_equal(labels, hard_labels(mixed_fit.mixture_, inside))


def test_weights_in_a_file_enter_what_is_known_of_features(rows, tmp_path):
    weights = np.random.default_rng(5).uniform(0.1, 4.0, 3000)
    path = write(tmp_path / "weighted.parquet", *rows[:2], weights)
    inside = mixed_blocks(*rows[:2], weights)
    assert open_blocks(path).variables == inside.variables


def test_a_model_is_applied_to_another_file(rows, mixed_file, inside, tmp_path):
    matrix, _, _ = rows
    other = write(tmp_path / "other.parquet", matrix[:900], mixed_rows(900, seed=9)[1])
    blocks = open_blocks(other, variables=inside.variables)
    assert blocks.variables == inside.variables
    own = open_blocks(other)
    assert own.variables != inside.variables
    ages = (
        gather_rows(blocks).values[:, 0] * inside.variables[0].spread + inside.variables[0].centre
    )
    np.testing.assert_allclose(ages, mixed_rows(900, seed=9)[1].values[:, 0], atol=1e-9)
    some = open_blocks(mixed_file, variables=inside.variables[:2])
    assert gather_rows(some).values.shape == (3000, 2)


def test_metadata_that_name_no_features_are_refused(rows, tmp_path):
    matrix, table, _ = rows
    wrong = [Feature("age", "number").to_dict() | {"kind": "colour"}]
    path = write(tmp_path / "wrong.parquet", matrix, table, features=wrong)
    with pytest.raises(StorageError, match="names features that make no sense: 'age' is of a kind"):
        open_blocks(path)
