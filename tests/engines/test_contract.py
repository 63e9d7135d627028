"""Every engine gives the same bits: labels and parameters."""

import numpy as np
import pytest

from comorb.engines import open_blocks
from comorb.model.blocks import map_blocks, map_reduce
from comorb.model.choose import hard_labels
from comorb.model.estimator import BernoulliMixture
from comorb.model.mixture import Mixture
from tests.engines.conftest import CLUSTERS, save


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
    labels = hard_labels(Mixture(model.weights_, model.means_), blocks, engine)
    assert np.array_equal(labels, fitted.predict(cohort.matrix))


def test_weights_in_a_file_give_the_bits_of_memory(engine, weighted, tmp_path):
    path = save(weighted, tmp_path / "weighted.parquet")
    model = BernoulliMixture(CLUSTERS, max_iter=5, tol=1e-2)
    inside = BernoulliMixture(CLUSTERS, max_iter=5, tol=1e-2)
    inside.fit(weighted.matrix, sample_weight=weighted.weights)
    assert same_bits(model.fit_blocks(open_blocks(path), engine), inside)


def first(rows):
    return [rows.indices[0]]


def test_partials_come_in_the_order_of_the_blocks(engine, file):
    blocks = open_blocks(file)
    expected = [load().indices[0] for load in blocks.loaders]
    assert map_reduce(first, blocks, engine) == expected


def fails(rows):
    raise ZeroDivisionError("a fault of our own")


def test_an_error_in_a_block_reaches_the_caller(engine, file):
    from comorb.errors import EngineError

    with pytest.raises((ZeroDivisionError, EngineError), match="a fault of our own"):
        list(map_blocks(fails, open_blocks(file), engine))
