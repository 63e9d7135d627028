"""Do the clusters come out again? Fits on overlapping parts of the records (paper section 5.2)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from comorb.errors import ComorbWarning, InputError
from comorb.model import kernels
from comorb.model.agreement import adjusted_rand, jaccard
from comorb.model.estimator import BernoulliMixture, binary_csr


@dataclass(frozen=True)
class Stability:
    """How well clusters come out again from parts of the records.

    Attributes
    ----------
    ari
        The mean of ``aris``; the paper reports above 0.9 on its two data sets.
    aris
        For each repeat, the Adjusted Rand Index of two fits on the records they share.
    jaccard
        For each cluster of the whole, largest first, its mean overlap with its match in the
        parts' fits: 1 when it always comes out again, near 0 when it never does.
    """

    ari: float
    aris: tuple[float, ...]
    jaccard: tuple[float, ...]


def stability(
    X: Any,
    model: BernoulliMixture,
    *,
    share: float = 2 / 3,
    repeats: int = 3,
    sample_weight: npt.NDArray[np.float64] | None = None,
) -> Stability:
    """Fit overlapping parts of the records and compare what comes out.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        The records that ``model`` was fitted to.
    model : BernoulliMixture
        The fit of the whole; the parts get as many clusters.
    share : float, default=2/3
        The share of the records in each part, above one half and below 1. Which record is in
        which part depends on its place and the repeat, and on nothing else.
    repeats : int, default=3
        How many pairs of parts.
    sample_weight : ndarray of shape (n,), optional
        How many records each row stands for.

    Returns
    -------
    Stability
        The agreement of the parts, and how well each cluster of the whole is found again.
    """
    matrix = binary_csr(X)
    n, k = matrix.shape[0], model.weights_.size
    if not 0.5 < share < 1 or repeats < 1:
        raise InputError(
            f"expected a share between 0.5 and 1 and at least one repeat, "
            f"got share={share:g} and repeats={repeats}"
        )
    if n * (2 * share - 1) < 2 * k:
        raise InputError(
            f"two parts of {share:.0%} of {n} records share about {n * (2 * share - 1):.0f}, too "
            f"few to compare {k} clusters; use more records, a larger share or fewer clusters"
        )
    whole = model.predict(matrix)
    aris, overlaps = [], []
    for repeat in range(repeats):
        place = kernels.mixed(np.arange(n, dtype=np.uint64) + np.uint64(repeat * n)) / 2.0**64
        parts = [place < share, place >= 1 - share]
        labels = [_labels(matrix, part, k, sample_weight) for part in parts]
        both = parts[0] & parts[1]
        aris.append(adjusted_rand(labels[0][both], labels[1][both]))
        overlaps += [
            jaccard(whole[part], own[part], k) for part, own in zip(parts, labels, strict=True)
        ]
    means = np.mean(overlaps, axis=0)
    return Stability(float(np.mean(aris)), tuple(aris), tuple(float(v) for v in means))


def _labels(
    matrix: sparse.csr_array,
    part: npt.NDArray[np.bool_],
    k: int,
    sample_weight: npt.NDArray[np.float64] | None,
) -> npt.NDArray[np.int64]:
    weights = None if sample_weight is None else np.asarray(sample_weight)[part]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComorbWarning)
        model = BernoulliMixture(k).fit(matrix[part], sample_weight=weights)
    return model.predict(matrix)
