"""Do the clusters come out again? Fits on overlapping parts of the records (paper section 5.2)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from comorb.errors import ComorbWarning, InputError
from comorb.model import kernels
from comorb.model.agreement import adjusted_rand, jaccard
from comorb.model.arrays import Floats, Ints, Mask
from comorb.model.binary import binary_csr, check_places
from comorb.model.blocks import from_csr
from comorb.model.choose import hard_labels
from comorb.model.estimator import BernoulliMixture
from comorb.model.mixture import Mixture
from comorb.model.moments import prevalence
from comorb.model.thinning import chances


@dataclass(frozen=True)
class Stability:
    """How well clusters come out again from parts of the records."""

    ari: float  # the mean of ``aris``; the paper reports above 0.9 on its two data sets
    aris: tuple[float, ...]  # for each repeat, of two fits on the records they share
    jaccard: tuple[float, ...]  # for each cluster, its mean overlap with its match in the parts


def stability(
    X: Any,
    model: Mixture,
    *,
    share: float = 2 / 3,
    repeats: int = 3,
    sample_weight: Floats | None = None,
    labels: Ints | None = None,
) -> Stability:
    """Fit overlapping parts of the records and compare what comes out.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        The records that ``model`` was fitted to.
    model : Mixture
        The clusters of the whole; the parts get as many.
    share : float, default=2/3
        The share of the records in each part, above one half and below 1. Which record is in
        which part depends on its codes, on the repeat and on nothing else: not on its place.
    repeats : int, default=3
        How many pairs of parts.
    sample_weight : ndarray of shape (n,), optional
        How many records each row stands for.
    labels : ndarray of int, shape (n,), optional
        The cluster of each record, when it is known already.

    Returns
    -------
    Stability
        The agreement of the parts, and how well each cluster of the whole is found again.
    """
    check_places(X)
    matrix = binary_csr(X)
    n, k = matrix.shape[0], model.n_components
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
    blocks = from_csr(matrix.indptr, matrix.indices, matrix.shape[1], sample_weight)
    whole = hard_labels(model, blocks) if labels is None else labels
    drawn = (chances(blocks, prevalence(blocks), None) * 2.0**53).astype(np.uint64)
    aris, overlaps = [], []
    for repeat in range(repeats):
        place = kernels.mixed(drawn + np.uint64(repeat)) / 2.0**64
        parts = [place < share, place >= 1 - share]
        again = [_found_in(matrix, part, k, sample_weight) for part in parts]
        both = parts[0] & parts[1]
        aris.append(adjusted_rand(again[0][both], again[1][both]))
        overlaps += [
            jaccard(whole[part], own[part], k) for part, own in zip(parts, again, strict=True)
        ]
    means = np.mean(overlaps, axis=0)
    return Stability(float(np.mean(aris)), tuple(aris), tuple(float(mean) for mean in means))


def _found_in(matrix: sparse.csr_array, part: Mask, k: int, sample_weight: Floats | None) -> Ints:
    """Return the cluster of every record in a fit on some of them."""
    weights = None if sample_weight is None else np.asarray(sample_weight)[part]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComorbWarning)
        fitted = BernoulliMixture(k).fit(matrix[part], sample_weight=weights)
    return fitted.predict(matrix)
