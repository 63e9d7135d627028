import numpy as np
import pytest
from scipy import sparse

from comorb.errors import InputError
from comorb.model.mixture import Mixture
from comorb.records.datasets.simulate import paper
from comorb_reproduction.jain_oh import completed, jain_oh, third_moment
from tests.reproduction.test_multiview import recovered


def limit_of_third_moment(truth):
    """E(x ⊗ x ⊗ x): for 0/1 data an index that comes twice counts once."""
    third = np.einsum("j,ja,jb,jc->abc", truth.weights, *[truth.means] * 3, optimize=True)
    pairs = np.einsum("j,ja,jb->ab", truth.weights, truth.means, truth.means)
    np.fill_diagonal(pairs, truth.weights @ truth.means)
    for i in range(len(pairs)):
        third[i, i, :] = third[i, :, i] = third[:, i, i] = pairs[i]
    return third


def test_third_moment_is_counted_in_full():
    matrix = paper(300, d=8, k=2).matrix
    dense = matrix.toarray().astype(float)
    expected = np.einsum("na,nb,nc->abc", dense, dense, dense) / 300
    np.testing.assert_allclose(third_moment(matrix), expected)


def test_diagonal_is_completed():
    factor = np.random.default_rng(0).uniform(size=(12, 3))
    full = factor @ factor.T
    np.testing.assert_allclose(completed(full + np.diag(np.arange(12.0)), 3), full, atol=1e-9)


@pytest.mark.parametrize(("d", "k"), [(9, 2), (30, 4), (60, 12)])
def test_known_model_comes_back_though_the_diagonals_are_biased(d, k):
    drawn = paper(1, d, k, seed=1)
    truth = Mixture(drawn.weights, drawn.means)
    assert recovered(jain_oh(limit_of_third_moment(truth), k), truth) < 1e-6


def test_too_many_columns_are_refused():
    with pytest.raises(InputError, match=r"at most 400 columns, got 500: .* 0\.9 GiB"):
        third_moment(sparse.csr_array((3, 500)))


def test_too_many_clusters_are_refused():
    with pytest.raises(InputError, match="1 <= k < d = 4, got k = 4"):
        jain_oh(np.zeros((4, 4, 4)), 4)
