"""Do the clusters come out again? Fits on overlapping parts of the records (paper section 5.2)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from comorb.errors import ComorbWarning, InputError
from comorb.model import kernels
from comorb.model.arrays import Floats, binary_csr, check_places
from comorb.model.blocks import Blocks, from_csr, workers
from comorb.model.diagnostics import adjusted_rand
from comorb.model.emissions.base import FeatureTable
from comorb.model.features import PreparedFeatures, prepare_for
from comorb.model.fit import MixtureFit
from comorb.model.mixture import Mixture
from comorb.model.moments import prevalence
from comorb.model.subsample import unit_records
from comorb.model.sweep import better_refit, fit_level, hard_labels, reliability
from comorb.model.tabular import Tabular


@dataclass(frozen=True)
class Stability(Tabular):
    """How well clusters come out again from parts of the records."""

    ari: float  # the mean of ``aris``; the paper reports above 0.9 on its two data sets
    aris: tuple[float, ...]  # for each repeat, of two fits on the records they share
    jaccard: tuple[float, ...]  # of each cluster with its match in the parts: ``reliability``

    def columns(self) -> dict[str, list[Any]]:
        """Return the stability of each cluster, by columns."""
        return {"cluster": list(range(1, len(self.jaccard) + 1)), "stability": list(self.jaccard)}


def stability(
    X: Any,
    model: Mixture,
    *,
    share: float = 2 / 3,
    repeats: int = 3,
    sample_weight: Floats | None = None,
    features: FeatureTable | None = None,
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
        which part depends on its codes, on the repeat and on nothing else: not on its place. A
        row that stands for several records may be in both, with some of them.
    repeats : int, default=3
        How many pairs of parts.
    sample_weight : ndarray of shape (n,), optional
        How many records each row stands for.
    features : FeatureTable, optional
        The features of the records besides their codes.

    Returns
    -------
    Stability
        The agreement of the parts, and how well each cluster of the whole is found again.
    """
    check_places(X)
    rows = _Records(binary_csr(X), sample_weight, features)
    n, k = rows.matrix.shape[0], model.n_components
    blocks = rows.seen_by(model)
    if not 0.5 < share < 1 or repeats < 1:
        raise InputError("stability.arguments", share=share, repeats=repeats)
    many = int(blocks.records)
    if (common := many * (2 * share - 1)) < 2 * k:
        raise InputError("stability.too_few", share=share, n=many, common=common, k=k)
    records = unit_records(blocks, prevalence(blocks), blocks.records, None)
    drawn = (records.uniforms * 2.0**53).astype(np.uint64)
    aris: list[float] = []
    refits: list[Mixture] = []
    for repeat in range(repeats):
        place = kernels.splitmix64(drawn + np.uint64(repeat)) / 2.0**64
        low, high = place < share, place >= 1 - share
        one, other, both = (records.part(own, n) for own in (low, high, low & high))
        pair = [_refit(rows.part(part).seen_by(model), model) for part in (one, other)]
        first, second = (hard_labels(refit, blocks) for refit in pair)
        aris.append(adjusted_rand(first, second, both))
        refits += pair
    again = reliability(model, refits, blocks).tolist()
    return Stability(float(np.mean(aris)), tuple(aris), tuple(again))


@dataclass(frozen=True, eq=False)
class _Records:
    """Records in memory: their codes, weights and features."""

    matrix: sparse.csr_array
    weights: Floats | None
    features: FeatureTable | None

    def part(self, weights: Floats) -> _Records:
        """Return the rows that weigh something in a part of the records, with what they weigh."""
        chosen = np.flatnonzero(weights)
        table = self.features
        features = None if table is None else replace(table, values=table.values[chosen])
        return _Records(self.matrix[chosen], weights[chosen], features)

    def blocks(self, features: FeatureTable | PreparedFeatures | None) -> Blocks:
        """Return the records in blocks, with features learned or prepared."""
        matrix = self.matrix
        return from_csr(
            matrix.indptr, matrix.indices, matrix.shape[1], self.weights, features=features
        )

    def seen_by(self, model: Mixture) -> Blocks:
        """Return the records in blocks, as a model sees their features."""
        table = self.features
        return self.blocks(None if table is None else prepare_for(model.variables, table))


def _refit(part: Blocks, model: Mixture) -> Mixture:
    """Return the fit of a part of the records: see ``better_refit``."""
    with warnings.catch_warnings(), workers(-1) as executor:
        warnings.simplefilter("ignore", ComorbWarning)
        found = MixtureFit(model.n_components).fit_blocks(part, executor).mixture_
    own = fit_level(part, found, prevalence(part))
    return better_refit(part, own, model).model
