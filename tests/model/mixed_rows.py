"""Small rows with codes and features of every kind, with gaps, from known clusters."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from comorb.model.blocks import Blocks, from_csr
from comorb.model.emissions.base import Feature, FeatureTable

FEATURES = (
    Feature("age", "number"),
    Feature("race", "category", ("a", "b", "c")),
    Feature("visits", "count"),
    Feature("smoker", "binary", ("no", "yes")),
    Feature("crp", "number", (), "log"),
)


def mixed_rows(n=300, k=3, d=6, missing=0.1, seed=0):
    """Return a 0/1 matrix, a table of features and the true clusters."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n)
    codes = rng.random((n, d)) < rng.uniform(0.05, 0.8, (k, d))[labels]
    shares = rng.dirichlet(np.ones(3), k).cumsum(axis=1)[labels]
    values = np.column_stack(
        [
            rng.normal(40 + 15 * labels, 4),
            (rng.random(n)[:, None] > shares[:, :2]).sum(axis=1),
            rng.poisson(1 + 2 * labels),
            rng.random(n) < (0.2 + 0.3 * labels / k),
            np.exp(rng.normal(labels - 1.0, 1)),
        ]
    )
    values[rng.random(values.shape) < missing] = np.nan
    return sparse.csr_array(codes.astype(np.int8)), FeatureTable(FEATURES, values), labels


def mixed_blocks(matrix, table, weights=None, block_rows=None) -> Blocks:
    return from_csr(matrix.indptr, matrix.indices, matrix.shape[1], weights, block_rows, table)
