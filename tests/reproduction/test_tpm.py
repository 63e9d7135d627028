import numpy as np

from comorb_reproduction.tpm import power, symmetric, truncated_inverse


def test_the_power_method_finds_an_orthogonal_tensor():
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    values = np.array([1.0, 3.0, 2.0, 4.0])
    tensor = np.einsum("j,aj,bj,cj->abc", values, vectors, vectors, vectors)
    found, directions = power(tensor, rng)
    np.testing.assert_allclose(np.sort(found), np.sort(values), atol=1e-9)
    np.testing.assert_allclose(np.abs(directions.T @ vectors).max(axis=1), 1, atol=1e-9)


def test_a_symmetric_tensor_is_the_mean_over_all_orders():
    tensor = np.random.default_rng(1).standard_normal((3, 3, 3))
    mean = symmetric(tensor)
    np.testing.assert_allclose(mean, mean.transpose(2, 0, 1))
    np.testing.assert_allclose(mean.sum(), tensor.sum())


def test_the_inverse_keeps_the_largest_singular_values():
    matrix = np.diag([4.0, 2.0, 1.0])
    np.testing.assert_allclose(truncated_inverse(matrix, 2), np.diag([0.25, 0.5, 0]))
    np.testing.assert_allclose(truncated_inverse(np.diag([1.0, 0, 0]), 2), np.diag([1.0, 0, 0]))
