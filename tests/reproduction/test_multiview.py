import numpy as np
import pytest

from comorb.errors import InputError
from comorb.model.mixture import Mixture
from comorb.records.datasets.simulate import paper
from comorb_reproduction.hmm12 import hmm12
from comorb_reproduction.multiview import ExactViews, SampleViews, matched, thirds
from comorb_reproduction.tpm import tpm


@pytest.fixture(scope="module")
def drawn():
    return paper(400, d=16, k=3, seed=2)


def recovered(found, truth):
    """The largest error of a found mixture, after its clusters are matched with the true ones."""
    order = matched(((truth.means[:, None] - found.means[None]) ** 2).sum(axis=2))
    return max(
        np.abs(found.means[order] - truth.means).max(),
        np.abs(found.weights[order] - truth.weights).max(),
    )


def test_views_are_thirds_of_the_columns():
    assert thirds(99) == [slice(0, 33), slice(33, 66), slice(66, 99)]
    assert thirds(16) == [slice(0, 5), slice(5, 10), slice(10, 16)]


def test_sample_moments_equal_dense_ones(drawn):
    views = SampleViews(drawn.matrix)
    dense = drawn.matrix.toarray().astype(float)
    parts = [dense[:, :5], dense[:, 5:10], dense[:, 10:]]
    np.testing.assert_allclose(views.first, dense.mean(axis=0))
    np.testing.assert_allclose(views.pair(2, 0), parts[2].T @ parts[0] / 400)
    rng = np.random.default_rng(0)
    maps = tuple(rng.standard_normal((parts[v].shape[1], 3)) for v in (1, 2, 0))
    seen = [parts[v] @ m for v, m in zip((1, 2, 0), maps, strict=True)]
    expected = np.einsum("na,nb,nc->abc", *seen) / 400
    np.testing.assert_allclose(views.triple((1, 2, 0), maps), expected, atol=1e-12)


def test_exact_moments_are_the_limit_of_sample_moments():
    drawn = paper(200_000, d=9, k=2, seed=0)
    exact = ExactViews(Mixture(drawn.weights, drawn.means))
    sample = SampleViews(drawn.matrix)
    maps = tuple(np.eye(3) for _ in range(3))
    np.testing.assert_allclose(sample.pair(0, 1), exact.pair(0, 1), atol=0.005)
    gap = sample.triple((0, 1, 2), maps) - exact.triple((0, 1, 2), maps)
    assert np.abs(gap).max() < 0.005


@pytest.mark.parametrize("method", [hmm12, tpm])
@pytest.mark.parametrize("blind", [False, True])
@pytest.mark.parametrize(("d", "k"), [(9, 1), (9, 3), (31, 4), (99, 12)])
def test_known_model_comes_back_from_exact_cross_moments(method, blind, d, k):
    drawn = paper(1, d, k, seed=3)
    truth = Mixture(drawn.weights, drawn.means)
    found = method(ExactViews(truth), k, seed=0, truth=None if blind else truth.means)
    assert recovered(found, truth) < 1e-6


@pytest.mark.parametrize("method", [hmm12, tpm])
def test_too_few_columns_are_refused(method, drawn):
    message = r"d >= 3k = 18, got d = 16: .*ask for at most 5 clusters"
    with pytest.raises(InputError, match=message):
        method(SampleViews(drawn.matrix), 6)


@pytest.mark.parametrize("method", [hmm12, tpm])
def test_same_seed_gives_same_bits(method, drawn):
    runs = [method(SampleViews(drawn.matrix), 3, seed=7) for _ in range(2)]
    assert (runs[0].means == runs[1].means).all()
