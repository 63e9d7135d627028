"""The fit without an estimator around it: the same clusters, and its own warning."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from comorb import BernoulliMixture
from comorb.errors import InputError
from comorb.model.blocks import from_csr
from comorb.model.fit import MixtureFit, apply_influence
from comorb.records.datasets import paper

MATRIX = paper(300, d=12, k=3, seed=5).matrix
BLOCKS = from_csr(MATRIX.indptr, MATRIX.indices, 12)


def test_a_fit_finds_what_the_estimator_finds():
    found, theirs = MixtureFit(3).fit_blocks(BLOCKS), BernoulliMixture(3).fit(MATRIX)
    np.testing.assert_array_equal(found.mixture_.means, theirs.means_)
    np.testing.assert_array_equal(found.mixture_.weights, theirs.weights_)
    assert found.n_iter_ == theirs.n_iter_


def test_a_fit_that_is_cut_short_warns_as_its_user_expects():
    cut = MixtureFit(3, max_iter=1)
    with pytest.warns(UserWarning, match="did not converge in 1 passes") as told:
        cut.fit_blocks(BLOCKS)
    assert told[-1].category is UserWarning
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        BernoulliMixture(3, max_iter=1).fit(MATRIX)


def test_influence_is_of_features_that_are_there():
    assert apply_influence(BLOCKS, {}).variables == ()
    with pytest.raises(InputError, match="influence of a feature, got 'age'"):
        apply_influence(BLOCKS, {"age": 2.0})
