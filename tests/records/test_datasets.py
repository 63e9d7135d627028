import numpy as np
import pytest

from comorb.errors import RecordsError
from comorb.records import datasets


@pytest.mark.parametrize(
    "draw",
    [
        lambda seed: datasets.paper(20_000, d=30, k=4, seed=seed),
        lambda seed: datasets.record_like(20_000, k=4, seed=seed),
    ],
)
def test_simulated_data_follow_their_parameters(draw):
    data = draw(1)
    assert set(np.unique(data.matrix.data)) == {1}
    assert data.matrix.has_canonical_format
    assert data.matrix.indices.dtype == np.int32
    assert data.weights.sum() == pytest.approx(1)
    shares = np.bincount(data.labels, minlength=4) / 20_000
    np.testing.assert_allclose(shares, data.weights, atol=0.02)
    for cluster in range(4):
        rows = data.matrix[data.labels == cluster]
        error = np.sqrt(data.means[cluster] * (1 - data.means[cluster]) / rows.shape[0])
        assert np.all(
            np.abs(rows.mean(axis=0) - data.means[cluster]) < 5 * error + 3 / rows.shape[0]
        )


def test_the_seed_decides():
    first, same, other = (datasets.paper(500, d=20, k=3, seed=s) for s in (7, 7, 8))
    assert np.array_equal(first.matrix.indices, same.matrix.indices)
    assert not np.array_equal(first.matrix.indices, other.matrix.indices)


def test_codes_within_a_cluster_are_independent():
    data = datasets.paper(100_000, d=6, k=2, seed=3)
    cluster = np.argmin(data.means.max(axis=1))
    correlation = np.corrcoef(data.matrix.toarray()[data.labels == cluster], rowvar=False)
    assert np.abs(correlation - np.eye(6)).max() < 0.03


def test_paper_parameters_are_scaled_as_in_the_appendix():
    data = datasets.paper(10, d=99, k=12)
    assert data.means.max() == 1
    assert data.means.shape == (12, 99)


def test_record_like_is_as_sparse_as_records():
    data = datasets.record_like(5_000, k=6)
    assert data.matrix.shape == (5_000, 696)
    assert 3 < data.matrix.nnz / 5_000 < 8
    assert data.means.max() <= 0.9


def test_sizes_must_be_positive():
    with pytest.raises(RecordsError, match=r"at least one record, code and cluster; got n=0, d=5"):
        datasets.paper(0, d=5, k=2)
