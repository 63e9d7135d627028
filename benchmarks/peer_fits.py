"""One fit by one tool, in a process of its own; see ``peers``.

Nothing is imported but NumPy, SciPy and the tool, so that each runs in the environment it is in.
What is timed is the fit and the cluster of each row, in seconds of processor time, after an import
and a fit to few rows that warms up.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
from scipy import sparse

STARTS = 10  # of every tool that starts at random


def by_comorb(matrix, k):
    from comorb import BernoulliMixture

    return BernoulliMixture(k).fit_predict(matrix)


def by_kmeans(matrix, k):
    from sklearn.cluster import KMeans

    return KMeans(k, n_init=STARTS, random_state=0).fit_predict(matrix)


def by_kmodes(matrix, k):
    from kmodes.kmodes import KModes

    model = KModes(k, init="Huang", n_init=STARTS, random_state=0)
    return model.fit_predict(matrix.toarray().astype(int))


def by_stepmix(matrix, k):
    from stepmix import StepMix

    dense = matrix.toarray().astype(float)
    model = StepMix(
        k, measurement="binary", n_init=STARTS, random_state=0, verbose=0, progress_bar=0
    )
    return model.fit(dense).predict(dense)


def by_mixle(matrix, k):
    from mixle.inference import optimize
    from mixle.stats import BernoulliSetEstimator, MixtureEstimator

    sets = [set(row.tolist()) for row in np.split(matrix.indices, matrix.indptr[1:-1])]
    one = BernoulliSetEstimator(support=range(matrix.shape[1]), pseudo_count=1.0)
    model = optimize(sets, MixtureEstimator([one] * k), max_its=500, delta=1e-6, seed=0)
    return model.seq_posterior(model.dist_to_encoder().seq_encode(sets)).argmax(axis=1)


TOOLS = {
    "comorb": by_comorb,
    "StepMix": by_stepmix,
    "mixle": by_mixle,
    "k-means": by_kmeans,
    "k-modes": by_kmodes,
}

if __name__ == "__main__":
    tool, file, clusters, out = sys.argv[1:]
    warnings.simplefilter("ignore")
    given, number = sparse.load_npz(file), int(clusters)
    TOOLS[tool](given[:200], 2)
    started = time.process_time()
    labels = TOOLS[tool](given, number)
    seconds = time.process_time() - started
    np.save(out, np.asarray(labels))
    print(json.dumps(seconds))
