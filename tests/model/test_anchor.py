"""Fits that stay near an earlier model, and fits whose shares depend on record length."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from comorb import BernoulliMixture, LatentClassModel, Mixture
from comorb.errors import InputError
from comorb.model.blocks import from_csr
from comorb.model.diagnostics import adjusted_rand, lengths
from comorb.records.datasets import paper

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def drawn():
    return paper(2000, 40, 3, seed=4)


def test_a_fit_stays_with_an_earlier_model_that_is_as_good(drawn):
    earlier = BernoulliMixture(3).fit(drawn.matrix[:1000]).mixture_
    model = BernoulliMixture(3, init=earlier, keep=0.01).fit(drawn.matrix)
    assert model.anchor_.kept
    assert abs(model.anchor_.gain) < 0.01
    alone = BernoulliMixture(3, init=earlier).fit(drawn.matrix)
    assert model.means_.tobytes() == alone.means_.tobytes()
    assert model.smoothing_ == alone.smoothing_
    assert model.anchor_.other.n_components == 3


def test_a_fit_leaves_an_earlier_model_that_is_worse(drawn):
    first = np.asarray(drawn.matrix.mean(axis=0))
    same = Mixture(np.full(3, 1 / 3), np.tile(first, (3, 1)))
    model = BernoulliMixture(3, init=same, keep=0.01).fit(drawn.matrix)
    free = BernoulliMixture(3).fit(drawn.matrix)
    assert not model.anchor_.kept
    assert model.anchor_.gain > 0.01
    assert model.means_.tobytes() == free.means_.tobytes()
    assert model.smoothing_ == free.smoothing_
    with pytest.warns(match="same profile"):
        bound = BernoulliMixture(3, init=same, keep=100.0).fit(drawn.matrix)
    assert bound.anchor_.kept


def test_an_anchor_needs_a_model_and_a_gain(drawn):
    with pytest.raises(InputError, match="earlier Mixture where keep is given"):
        BernoulliMixture(3, keep=0.01).fit(drawn.matrix)
    with pytest.raises(InputError, match="keep to be zero or more"):
        BernoulliMixture(3, keep=-1.0).fit(drawn.matrix)
    with pytest.raises(InputError, match="length to be None or 'adjust'"):
        BernoulliMixture(3, length="both").fit(drawn.matrix)


@pytest.fixture(scope="module")
def severe():
    """Return three clusters whose records differ in length by a factor of their own."""
    rng = np.random.default_rng(7)
    odds = rng.normal(-2, 1, size=40) + rng.normal(0, 1.3, size=(3, 40))
    labels = rng.integers(0, 3, size=4000)
    odds = odds[labels] + rng.normal(size=(4000, 1))
    return (rng.random((4000, 40)) < 1 / (1 + np.exp(-odds))).astype(int), labels


def explained(matrix, labels):
    """Return the share of the variance of the number of codes that lies between clusters."""
    long = matrix.sum(axis=1)
    between = sum((labels == j).sum() * (long[labels == j].mean() - long.mean()) ** 2
                  for j in np.unique(labels))  # fmt: skip
    return between / ((long - long.mean()) ** 2).sum()


def test_adjusted_clusters_are_not_those_of_long_records(severe):
    matrix, truth = severe
    plain, adjusted = (BernoulliMixture(3, length=how).fit(matrix) for how in (None, "adjust"))
    assert explained(matrix, adjusted.labels_) < 0.5 * explained(matrix, plain.labels_)
    assert adjusted_rand(adjusted.labels_, truth) > adjusted_rand(plain.labels_, truth) + 0.05
    assert adjusted.predict(matrix).tolist() == adjusted.labels_.tolist()
    np.testing.assert_allclose(adjusted.predict_proba(matrix).sum(axis=1), 1)
    assert adjusted.score(matrix) * 4000 == pytest.approx(adjusted.log_likelihood_)
    assert plain.given_length_ is None
    blocks = from_csr(*rows(matrix), 40)
    means = lengths(plain.mixture_, blocks).means
    assert np.ptp(adjusted.means_.sum(axis=1)) < np.ptp(means)


def rows(matrix):
    ones = np.nonzero(matrix)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(ones[0], minlength=len(matrix)))])
    return indptr, ones[1].astype(np.int32)


def test_order_and_threads_change_no_bit_of_adjusted_clusters(severe):
    matrix, _ = severe
    order = np.random.default_rng(2).permutation(len(matrix))
    one = BernoulliMixture(3, length="adjust", n_jobs=1).fit(matrix)
    two = BernoulliMixture(3, length="adjust", n_jobs=2).fit(matrix[order])
    assert two.means_.tobytes() == one.means_.tobytes()
    assert two.given_length_.sizes.tobytes() == one.given_length_.sizes.tobytes()


def test_features_are_adjusted_along():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, size=600)
    frame = {"age": rng.normal(50 + 20 * labels, 5), "site": labels.astype(str)}
    codes = (rng.random((600, 10)) < np.where(labels[:, None], 0.5, 0.2)).astype(int)
    model = LatentClassModel(2, kinds={"age": "number", "site": "category"}, length="adjust")
    model.fit((sparse.csr_array(codes), frame))
    assert adjusted_rand(model.labels_, labels) > 0.95
