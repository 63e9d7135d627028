"""Non-negative CP of the patient × diagnosis × diagnosis counts: the phenotyping line of work."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from comorb.model.arrays import Floats, Ints

TINY = 1e-12


def phenotypes(
    matrix: sparse.csr_array, k: int, seed: int = 0, steps: int = 200
) -> tuple[Floats, Floats, Floats]:
    """Return the factors (N, k), (d, k), (d, k) of T_nij = x_ni x_nj ≈ Σ_r a_nr b_ir c_jr.

    Multiplicative updates of the squared error (Lee and Seung), as in TensorLy's
    non_negative_parafac. The tensor is never made: its products with the other factors are
    (XB)∘(XC) for the patients and Xᵀ(A∘(XC)) for the diagnoses. O(nnz·k) a step. The columns
    of the last two factors have length 1.
    """
    rng = np.random.default_rng(seed)
    x = matrix.astype(np.float64)
    transposed = x.T.tocsr()
    n, d = x.shape
    a, b, c = (rng.uniform(0.1, 1, (rows, k)) for rows in (n, d, d))
    for _ in range(steps):
        a = a * ((x @ b) * (x @ c)) / (a @ ((b.T @ b) * (c.T @ c)) + TINY)
        b = b * (transposed @ (a * (x @ c))) / (b @ ((a.T @ a) * (c.T @ c)) + TINY)
        c = c * (transposed @ (a * (x @ b))) / (c @ ((a.T @ a) * (b.T @ b)) + TINY)
    lengths = [np.maximum(np.linalg.norm(factor, axis=0), TINY) for factor in (b, c)]
    return a * lengths[0] * lengths[1], b / lengths[0], c / lengths[1]


def phenotype_labels(matrix: sparse.csr_array, k: int, seed: int = 0) -> Ints:
    """Return the phenotype that weighs most in each patient, (N,)."""
    return np.asarray(phenotypes(matrix, k, seed)[0].argmax(axis=1))
