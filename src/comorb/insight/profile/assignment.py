"""Which cluster each record belongs to, and how surely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from comorb.errors import InputError
from comorb.model.arrays import Floats, Ints
from comorb.model.blocks import Rows, from_csr, map_blocks
from comorb.model.mixture import Mixture
from comorb.model.threads import workers
from comorb.records.cohort import Cohort


@dataclass(frozen=True, eq=False)
class Assignment:
    """The cluster of each record, in the order of the cohort.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
        The most probable cluster.
    top, margin : ndarray of shape (n,)
        The probability of that cluster, and by how much it exceeds the second highest.
    entropy : ndarray of shape (n,)
        −Σ p log p / log k: 0 for a sure record, 1 for one that could be anywhere.
    soft : ndarray of shape (k,)
        The summed, weighted probabilities of each cluster.
    """

    labels: Ints
    top: Floats
    margin: Floats
    entropy: Floats
    soft: Floats


def assign(
    model: Mixture, cohort: Cohort, n_jobs: int = -1, groups: Sequence[int] | None = None
) -> Assignment:
    """Assign each record of a cohort to its most probable cluster.

    Parameters
    ----------
    model : Mixture
        The fitted clusters, over the codes of the cohort in their order.
    cohort : Cohort
        The records; their weights count in ``soft`` alone.
    n_jobs : int, default=-1
        Threads; −1 for all cores.
    groups : sequence of int, optional
        The group of each cluster of the model, when several clusters count as one. A group is
        as probable as all of its clusters together; labels are the places of the groups in
        ascending order.

    Returns
    -------
    Assignment
        One entry for each record.
    """
    matrix = cohort.matrix
    if model.n_columns != len(cohort.codes):
        raise InputError(
            f"expected a model over the {len(cohort.codes)} codes of the cohort, got one over "
            f"{model.n_columns}; fit it on this cohort, or bring the cohort to the model's codes"
        )

    joined = None if groups is None else np.equal.outer(groups, np.unique(groups)).astype(float)

    def read(rows: Rows) -> tuple[Ints, Floats, Floats, Floats, Floats]:
        posterior = model.posterior(rows)[0]
        return _judge(posterior if joined is None else posterior @ joined, rows.weights)

    blocks = from_csr(matrix.indptr, matrix.indices, matrix.shape[1], cohort.weights)
    with workers(n_jobs) as executor:
        parts = list(map_blocks(read, blocks, executor))
    if not parts:
        parts = [_judge(np.empty((0, model.n_components)), np.empty(0))]
    labels, top, margin, entropy = (np.concatenate([part[i] for part in parts]) for i in range(4))
    return Assignment(labels, top, margin, entropy, np.sum([part[4] for part in parts], axis=0))


def _judge(posterior: Floats, weights: Floats) -> tuple[Ints, Floats, Floats, Floats, Floats]:
    n, k = posterior.shape
    labels = posterior.argmax(axis=1)
    top = posterior[np.arange(n), labels]
    second = np.partition(posterior, -2, axis=1)[:, -2] if k > 1 else np.zeros(n)
    entropy = -np.sum(posterior * np.log(np.maximum(posterior, 1e-300)), axis=1)
    soft = posterior.T @ (weights if weights.size else np.ones(n))
    return labels, top, top - second, entropy / max(np.log(k), 1e-300), soft
