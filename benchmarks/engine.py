"""The engine against plain SciPy, plain NumPy and k-means."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from scipy import optimize, sparse
from scipy.special import logsumexp
from sklearn.cluster import KMeans

from benchmarks.table import Figure, best_of, show
from comorb import BernoulliMixture
from comorb.model.blocks import from_csr, workers
from comorb.model.em import expect
from comorb.model.mixture import Mixture
from comorb.records.datasets import record_like


def scipy_pass(X, transposed, model):
    """One EM pass written with scipy.sparse products."""
    means = np.clip(model.means, 1e-9, 1 - 1e-9)
    joint = X @ (np.log(means) - np.log1p(-means)).T
    joint += np.log(model.weights) + np.log1p(-means).sum(axis=1)
    top = joint.max(axis=1, keepdims=True)
    joint -= top
    np.exp(joint, out=joint)
    total = joint.sum(axis=1, keepdims=True)
    joint /= total
    return float((top + np.log(total)).sum()), joint.sum(axis=0), transposed @ joint


def plain_fit(x, k, tol=1e-6):
    """Algorithm 2 and EM to convergence as the paper gives them: dense, slice by slice."""
    n, d = x.shape
    u, s, _ = np.linalg.svd(x.T @ x / n)
    projected = x @ u[:, :k] / np.sqrt(s[:k])
    best, rotation, slices = -np.inf, np.eye(k), []
    for i in range(d):
        h = projected.T @ (x[:, i : i + 1] * projected) / n
        left, values, _ = np.linalg.svd(h)
        slices.append(h)
        gap = np.min(np.abs(np.diff(values)))
        if gap > best:
            best, rotation = gap, left
    means = np.array([np.diag(rotation.T @ h @ rotation) for h in slices]).T
    means = np.clip(means, 0.5 / (n + 1), 1 - 0.5 / (n + 1))
    weights = np.maximum(optimize.nnls(means.T, x.mean(axis=0))[0], 1e-3 / k)
    weights /= weights.sum()
    previous = -np.inf
    while True:
        joint = np.log(weights) + x @ np.log(means).T + (1 - x) @ np.log1p(-means).T
        density = logsumexp(joint, axis=1)
        if density.mean() - previous < tol:
            return weights, means
        previous = density.mean()
        r = np.exp(joint - density[:, None])
        sizes = r.sum(axis=0)
        weights = sizes / n
        means = np.clip((r.T @ x) / sizes[:, None], 1e-9, 1 - 1e-9)


PEAK = """
import resource
import numpy as np
from comorb import BernoulliMixture
from comorb.records.datasets import record_like
small = record_like(5000, 8, seed=1).matrix
BernoulliMixture(8, max_iter=20, tol=0.0).fit(small)
X = record_like({n}, 8, seed=1).matrix
size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
open("/proc/self/clear_refs", "w").write("5")
status = lambda key: int([l for l in open("/proc/self/status") if l.startswith(key)][0].split()[1])
before = status("VmRSS")
BernoulliMixture(8, max_iter=20, tol=0.0).fit(X)
print((status("VmHWM") - before) * 1024 / size)
"""
HELP = "from comorb.__main__ import main\ntry:\n    main()\nexcept SystemExit:\n    pass"


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout


def pass_figures() -> list[Figure]:
    n, d, k = 1_000_000, 696, 8
    drawn = record_like(n, k, seed=0)
    X = sparse.csr_matrix(drawn.matrix.astype(float))
    model = Mixture(drawn.weights, drawn.means)
    blocks = from_csr(X.indptr, X.indices, d)
    transposed = X.T
    peer = best_of(lambda: scipy_pass(X, transposed, model))
    one = best_of(lambda: expect(model, blocks))
    with workers(2) as pool:
        two = best_of(lambda: expect(model, blocks, pool))
    name = f"EM pass, {n:,} × {d}, {X.nnz / n:.1f} codes a row, k={k}: faster than SciPy"
    return [Figure(f"{name}, 1 core", peer / one, 2.5), Figure(f"{name}, 2", peer / two, 4.5)]


def fit_figures() -> list[Figure]:
    n, k = 23_154, 5
    X = record_like(n, k, seed=0).matrix
    dense = X.toarray().astype(float)
    ours = best_of(lambda: BernoulliMixture(k, init="asvtd", smoothing=0).fit(X))
    whole = best_of(lambda: BernoulliMixture(k).fit(X))
    half = best_of(lambda: BernoulliMixture(k, init="asvtd").fit(X))
    plain = best_of(lambda: plain_fit(dense, k), repeats=1)
    floats = sparse.csr_matrix(X.astype(float))
    peer, usual = (
        best_of(lambda starts=starts: KMeans(k, n_init=starts, random_state=0).fit(floats))
        for starts in (1, 10)
    )
    name = f"fit, {n:,} × 696, k={k},"
    return [
        Figure(f"{name} init='asvtd': faster than dense NumPy", plain / ours, 20),
        Figure(f"{name} init='asvtd': faster than KMeans(n_init=1)", peer / ours, 1),
        Figure(f"{name} init='best': time against init='asvtd'", whole / half, 4, False),
        Figure(f"{name} init='best': time against KMeans(n_init=10)", whole / usual, 1, False),
    ]


def growth_figures() -> list[Figure]:
    times = []
    for n in (100_000, 1_000_000):
        X = record_like(n, 8, seed=1).matrix
        model = BernoulliMixture(8, init="asvtd", max_iter=20, tol=0.0, smoothing=0)
        times.append(best_of(lambda model=model, X=X: model.fit(X), repeats=3))
    peak = float(run(PEAK.format(n=1_000_000)))
    return [
        Figure("fit of 20 passes, 1,000,000 rows against 100,000", times[1] / times[0], 11, False),
        Figure("peak memory of a fit beyond the CSR matrix, 1,000,000 rows", peak, 1, False),
    ]


def import_figures() -> list[Figure]:
    ours = best_of(lambda: run("import comorb"))
    peer = best_of(lambda: run("import numpy, scipy.sparse"))
    helped = best_of(lambda: run("import sys; sys.argv[1:] = ['--help']\n" + HELP))
    bare = best_of(lambda: run("pass"))
    return [
        Figure("import comorb against import numpy, scipy.sparse", ours / peer, 3, False),
        Figure("comorb --help against python -c pass", helped / bare, 3, False),
    ]


def main() -> None:
    """Measure and print."""
    import warnings

    warnings.simplefilter("ignore")
    figures = [*pass_figures(), *fit_figures(), *growth_figures(), *import_figures()]
    show("Engine", figures)
