import numpy as np

from comorb.records.datasets.simulate import paper
from comorb_reproduction.phenotypes import phenotype_labels, phenotypes


def error(matrix, factors):
    dense = matrix.toarray().astype(float)
    tensor = np.einsum("ni,nj->nij", dense, dense)
    return ((tensor - np.einsum("nr,ir,jr->nij", *factors)) ** 2).sum()


def test_one_step_is_the_dense_multiplicative_update():
    matrix = paper(30, d=6, k=2).matrix
    dense = matrix.toarray().astype(float)
    tensor = np.einsum("ni,nj->nij", dense, dense)
    rng = np.random.default_rng(4)
    a, b, c = (rng.uniform(0.1, 1, (rows, 2)) for rows in (30, 6, 6))
    a = a * np.einsum("nij,ir,jr->nr", tensor, b, c) / (a @ ((b.T @ b) * (c.T @ c)))
    b = b * np.einsum("nij,nr,jr->ir", tensor, a, c) / (b @ ((a.T @ a) * (c.T @ c)))
    c = c * np.einsum("nij,nr,ir->jr", tensor, a, b) / (c @ ((a.T @ a) * (b.T @ b)))
    found = np.einsum("nr,ir,jr->nij", *phenotypes(matrix, 2, seed=4, steps=1))
    np.testing.assert_allclose(found, np.einsum("nr,ir,jr->nij", a, b, c), rtol=1e-6)


def test_error_never_rises():
    matrix = paper(40, d=8, k=2).matrix
    errors = [error(matrix, phenotypes(matrix, 3, steps=steps)) for steps in (1, 5, 20, 80)]
    assert errors == sorted(errors, reverse=True)


def test_disjoint_groups_are_told_apart():
    from scipy import sparse

    block = np.kron(np.eye(2, dtype=np.uint8), np.ones((5, 3), dtype=np.uint8))
    labels = phenotype_labels(sparse.csr_array(block), 2)
    assert len(set(labels[:5])) == len(set(labels[5:])) == 1
    assert labels[0] != labels[5]
