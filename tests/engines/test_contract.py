"""Every engine (on_dask, on_spark, their partials) gives the same bits: labels and parameters."""

from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from comorb.engines import base, open_blocks
from comorb.engines.base import Engine, pack
from comorb.engines.spark_engine import SparkEngine
from comorb.errors import EngineError
from comorb.model import subsample
from comorb.model.blocks import (
    Pass,
    from_csr,
    map_blocks,
    map_reduce,
    map_tasks,
    run_pass,
)
from comorb.model.em import expect
from comorb.model.estimators import BernoulliMixture
from comorb.model.moments import moments, prevalence
from comorb.model.subsample import thin_rows
from comorb.model.sweep import hard_labels
from tests.engines.conftest import CLUSTERS, save
from tests.settings import patch_config


def same_bits(one: BernoulliMixture, two: BernoulliMixture) -> bool:
    return (
        one.weights_.tobytes() == two.weights_.tobytes()
        and one.means_.tobytes() == two.means_.tobytes()
        and one.history_.tobytes() == two.history_.tobytes()
        and one.log_likelihood_ == two.log_likelihood_
        and one.smoothing_ == two.smoothing_
    )


def test_a_file_gives_the_bits_and_the_labels_of_memory(engine, file, cohort, fitted):
    blocks = open_blocks(file)
    assert len(blocks.loaders) == 10
    model = BernoulliMixture(CLUSTERS).fit_blocks(blocks, engine)
    assert same_bits(model, fitted)
    labels = hard_labels(model.mixture_, blocks, engine)
    assert np.array_equal(labels, fitted.predict(cohort.matrix))


def test_weights_in_a_file_give_the_bits_of_memory(engine, weighted, tmp_path):
    path = save(weighted, tmp_path / "weighted.parquet")
    model = BernoulliMixture(CLUSTERS, max_iter=5, tol=1e-2)
    inside = BernoulliMixture(CLUSTERS, max_iter=5, tol=1e-2)
    inside.fit(weighted.matrix, sample_weight=weighted.weights)
    assert same_bits(model.fit_blocks(open_blocks(path), engine), inside)


def test_the_same_rows_stand_for_all(engine, file, cohort, monkeypatch):
    matrix = cohort.matrix
    inside = from_csr(matrix.indptr, matrix.indices, matrix.shape[1])
    shares = prevalence(inside)
    patch_config(monkeypatch, subsample, rows_per_shard=10_000)
    one, two = (
        thin_rows(inside, shares, 5000, None),
        thin_rows(open_blocks(file), shares, 5000, engine),
    )
    assert 3000 < two.n_rows < 7000
    assert [
        np.concatenate(part).tobytes() for part in zip(*(b() for b in one.loaders), strict=True)
    ] == [np.concatenate(part).tobytes() for part in zip(*(b() for b in two.loaders), strict=True)]


def first(rows):
    return [int(rows.indices[0])]


def test_blocks_come_in_their_order_and_sums_in_any(engine, file):
    blocks = open_blocks(file)
    expected = [int(load().indices[0]) for load in blocks.loaders]
    assert list(chain(*map_blocks(first, blocks, engine))) == expected
    assert sorted(map_reduce(first, blocks, engine)) == sorted(expected)


def shares(rows):
    ones = np.bincount(rows.indices % 3, minlength=3)
    return [np.array([one]) for one in ones]


def test_each_shard_is_added_up_and_finished_by_itself(engine, file):
    blocks = open_blocks(file)
    ones = np.concatenate([load().indices for load in blocks.loaders])
    found = run_pass(Pass(shares, partial(np.multiply, 2), 3), blocks, engine)
    assert [one.tolist() for one in found] == [[2 * n] for n in np.bincount(ones % 3).tolist()]


def test_what_comes_back_does_not_grow_with_the_records(engine, file, fitted):
    if not hasattr(engine, "received"):
        pytest.skip("counts no bytes")
    loaders, came = open_blocks(file).loaders, []
    for some in (loaders[: base.MIN_TASKS], loaders * 8, loaders * 30):
        before = engine.received
        expect(fitted.mixture_, replace(open_blocks(file), loaders=some), engine)
        came.append(engine.received - before)
    assert 0 < came[1] < 1.05 * came[0]
    assert 0 < came[2] < 1.05 * came[0]


def test_a_large_statistic_is_added_up_before_it_comes_back(engine, file):
    if not hasattr(engine, "received"):
        pytest.skip("counts no bytes")
    blocks, before = open_blocks(file), engine.received
    found = moments(blocks, engine)
    assert engine.received - before < 1.05 * len(pack(found.dense_second() * blocks.weight))
    assert found.second.tobytes() == moments(blocks).second.tobytes()


def on_how_many_threads(task):
    return task, {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_tasks_are_done_on_the_workers_with_algebra_on_one_thread(engine):
    tasks = map_tasks(on_how_many_threads, [3, 1, 2], engine)
    assert [task for task, _ in tasks] == [3, 1, 2]
    if isinstance(engine, Engine):
        assert all(threads == {1} for _, threads in tasks)


def fails(rows):
    raise ZeroDivisionError("a fault of our own")


def test_an_error_in_a_block_reaches_the_caller(engine, file):
    blocks = replace(open_blocks(file), loaders=open_blocks(file).loaders[:1])
    with pytest.raises((ZeroDivisionError, EngineError), match="a fault of our own"):
        list(map_blocks(fails, blocks, engine))


@pytest.mark.parametrize("engine", ["local[2,4]"], indirect=True)
def test_passes_on_a_session_are_made_without_plans(engine):
    assert engine.context is not None
    assert SparkEngine(engine.session).context is engine.context
