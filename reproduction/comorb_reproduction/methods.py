"""Every method under one roof: rows and k in, clusters and seconds out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import PCA

from comorb.errors import ComorbWarning
from comorb.model.arrays import Floats, Ints
from comorb.model.blocks import Blocks, from_csr, workers
from comorb.model.decompose import asvtd
from comorb.model.em import Stopping, em
from comorb.model.estimators import BernoulliMixture
from comorb.model.mixture import Mixture
from comorb.model.sweep import hard_labels
from comorb.records.datasets.simulate import Simulated
from comorb_reproduction.hmm12 import hmm12
from comorb_reproduction.jain_oh import jain_oh, third_moment
from comorb_reproduction.multiview import SampleViews
from comorb_reproduction.phenotypes import phenotype_labels
from comorb_reproduction.tpm import tpm

PAPER_STOP = Stopping("weights", 0.01)


@dataclass(frozen=True)
class MethodResult:
    """What a method found, and how long each half took.

    ``start`` holds the clusters before EM and ``labels`` those at the end; a method without EM
    has the same twice and spends nothing on ``refining``.
    """

    start: Ints
    labels: Ints
    decomposing: float
    refining: float


Setting = tuple[int, int, int]  # records N, codes d, clusters k
Method = Callable[[Simulated, int, int], MethodResult]
Decomposition = Callable[[Simulated, int, int], Mixture]
Labelling = Callable[[Simulated, int, int], Ints]


def _refined(decompose: Decomposition) -> Method:
    def run(data: Simulated, k: int, seed: int) -> MethodResult:
        blocks = blocks_of(data.matrix)
        began = perf_counter()
        start = decompose(data, k, seed)
        middle = perf_counter()
        with workers(-1) as pool:
            refined = em(blocks, start, None, PAPER_STOP, pool).model
        labels = hard_labels(refined, blocks)
        ended = perf_counter()
        return MethodResult(hard_labels(start, blocks), labels, middle - began, ended - middle)

    return run


def _whole(label: Labelling) -> Method:
    def run(data: Simulated, k: int, seed: int) -> MethodResult:
        began = perf_counter()
        labels = label(data, k, seed)
        return MethodResult(labels, labels, perf_counter() - began, 0.0)

    return run


def blocks_of(matrix: sparse.csr_array) -> Blocks:
    """Return the rows of a 0/1 matrix in blocks."""
    return from_csr(matrix.indptr, matrix.indices, matrix.shape[1])


@contextmanager
def weak_answers() -> Iterator[None]:
    """Take a weak answer without a word: here it is a result, and is measured."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComorbWarning)
        yield


def _asvtd(data: Simulated, k: int, seed: int) -> Mixture:
    with weak_answers(), workers(-1) as pool:
        return asvtd(blocks_of(data.matrix), k, pool)


def _comorb(data: Simulated, k: int, seed: int) -> Ints:
    with weak_answers():
        return BernoulliMixture(k).fit_predict(data.matrix)


def _jain_oh(data: Simulated, k: int, seed: int) -> Mixture:
    least = 0.5 / (data.matrix.shape[0] + 1)
    return jain_oh(third_moment(data.matrix), k, seed, least)


def _k_means(data: Simulated, k: int, seed: int) -> Ints:
    return np.asarray(KMeans(k, n_init=10, random_state=seed).fit_predict(_dense(data)))


def _pca(data: Simulated, k: int, seed: int) -> Ints:
    reduced = PCA(k, random_state=seed).fit_transform(_dense(data))
    return np.asarray(KMeans(k, n_init=10, random_state=seed).fit_predict(reduced))


def _spectral(data: Simulated, k: int, seed: int) -> Ints:
    # LOBPCG finds the eigenvectors that ARPACK would, and is faster at N = 10,000.
    model = SpectralClustering(k, affinity="linear", eigen_solver="lobpcg", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return np.asarray(model.fit_predict(_dense(data)))


def _dense(data: Simulated) -> Floats:
    return np.asarray(data.matrix.toarray(), dtype=np.float64)


COMORB, ASVTD, K_MEANS, SPECTRAL = "comorb", "ASVTD+EM", "k-means", "SC-lin"

METHODS: dict[str, Method] = {
    COMORB: _whole(_comorb),
    ASVTD: _refined(_asvtd),
    "HMM12": _refined(lambda data, k, seed: hmm12(SampleViews(data.matrix), k, seed, data.means)),
    "HMM12 blind": _refined(lambda data, k, seed: hmm12(SampleViews(data.matrix), k, seed)),
    "TPM": _refined(lambda data, k, seed: tpm(SampleViews(data.matrix), k, seed, data.means)),
    "TPM blind": _refined(lambda data, k, seed: tpm(SampleViews(data.matrix), k, seed)),
    "Jain-Oh": _refined(_jain_oh),
    K_MEANS: _whole(_k_means),
    SPECTRAL: _whole(_spectral),
    "PCA": _whole(_pca),
    "NN-CP": _whole(lambda data, k, seed: phenotype_labels(data.matrix, k, seed)),
}
