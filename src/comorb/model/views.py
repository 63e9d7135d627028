"""Views: rows with features as zeros and ones alone, where a start is sought, and the way back."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from comorb.model.blocks import Blocks, Rows, from_csr
from comorb.model.em import Expected, maximise
from comorb.model.exact import rounded
from comorb.model.kinds.cuts import PARTS
from comorb.model.mixture import Mixture
from comorb.model.prior import Prior
from comorb.model.traits import statistics


def most_clusters(blocks: Blocks) -> int:
    """Return how many clusters the columns can bear: one each, more for a feature with levels."""
    return blocks.n_columns + sum(
        variable.n_free + 1 if variable.feature.levels else PARTS for variable in blocks.variables
    )


def gathered(blocks: Blocks) -> Rows:
    """Return all rows, in memory, as one block."""
    parts = [load() for load in blocks.loaders]
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    return Rows(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([part.weights for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


def codes_alone(blocks: Blocks) -> Blocks:
    """Return the rows without their features."""
    rows = gathered(blocks)
    weights = rows.weights if rows.weights.size else None
    return from_csr(rows.indptr, rows.indices, blocks.n_columns, weights)


def binarised(blocks: Blocks) -> Blocks:
    """Return the rows with 0/1 columns in the place of features: levels, quarters of numbers."""
    rows = gathered(blocks)
    columns = [
        one
        for variable, values in zip(blocks.variables, rows.values.T, strict=True)
        for one in variable.binarised(values)
    ]
    beside = sparse.csr_array(np.column_stack(columns))
    matrix = sparse.hstack([_matrix(rows, blocks.n_columns), beside], format="csr")
    matrix.sort_indices()
    weights = rows.weights if rows.weights.size else None
    return from_csr(matrix.indptr, matrix.indices, matrix.shape[1], weights)


def _matrix(rows: Rows, d: int) -> sparse.csr_array:
    ones = np.ones(rows.indices.size)
    return sparse.csr_array((ones, rows.indices, rows.indptr), shape=(rows.indptr.size - 1, d))


def carried(model: Mixture, view: Blocks, blocks: Blocks, prior: Prior | None) -> Mixture:
    """Return the clusters of a view with all that the rows have: one M-step by its posteriors."""
    rows, seen = gathered(blocks), gathered(view)
    weights = rows.weights if rows.weights.size else np.ones(blocks.n_rows)
    posterior = rounded(weights[:, None] * model.posterior(seen)[0], blocks.weight)
    parts = [_matrix(rows, blocks.n_columns).T @ posterior]
    for variable, values in zip(blocks.variables, rows.values.T, strict=True):
        for statistic in statistics(variable, values).T:
            bound = max(float(np.abs(statistic).max(initial=0.0)), 1e-300) * blocks.weight
            parts.append(rounded(posterior * statistic[:, None], bound).sum(axis=0)[None])
    sums = np.concatenate([*parts, posterior.sum(axis=0)[None]])
    return maximise(Expected(sums, 0.0, 0.0, blocks.variables), prior)
