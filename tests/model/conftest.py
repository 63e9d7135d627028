"""Small data with a known truth, and dense re-derivations to hold the sparse code against."""

from __future__ import annotations

import numpy as np
import pytest

from comorb.model.blocks import Blocks, from_csr
from comorb.model.mixture import Mixture


def random_mixture(k: int, d: int, seed: int) -> Mixture:
    rng = np.random.default_rng(seed)
    return Mixture(rng.dirichlet(np.full(k, 5.0)), rng.uniform(0.05, 0.9, size=(k, d)))


def dense_to_blocks(matrix, weights=None, block_rows=None) -> Blocks:
    matrix = np.asarray(matrix)
    rows, columns = np.nonzero(matrix)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(matrix)))])
    indices = columns.astype(np.int32)
    return from_csr(indptr.astype(np.int64), indices, matrix.shape[1], weights, block_rows)


def draw(model: Mixture, n: int, seed: int = 0):
    """Return n dense rows of a mixture and their true clusters."""
    matrix, labels = model.sample(n, seed)
    return matrix.toarray(), labels


@pytest.fixture
def truth() -> Mixture:
    return random_mixture(3, 12, seed=1)


@pytest.fixture
def sample(truth):
    return draw(truth, 300)[0]
