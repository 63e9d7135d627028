"""Classification errors: how often a record of one cluster is assigned to another."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Self

import numpy as np
from scipy import linalg
from scipy.special import chdtrc, softmax

from comorb.errors import InputError
from comorb.model.arrays import Floats, Ints, binary_csr
from comorb.model.blocks import single_threaded
from comorb.model.exact_sums import Sums, snap_to_grid
from comorb.model.mixture import EDGE, Mixture

Z = 1.959963984540054  # of 95% intervals
ZERO_EIGENVALUE = 1e-10  # of the largest: a direction that varies by rounding alone


@dataclass(frozen=True)
class Config:
    """Bounds beyond which nothing is estimated of a cluster.

    ``python -m benchmarks relate`` prints bias and coverage by how well clusters are separated.
    """

    # of the classification matrix: an error of 1 in 10⁴ in it is then as large as its inverse
    max_condition: float = 1e4
    min_effective: float = 5.0  # effective records of a cluster: Cochran's rule for a χ² (1954)
    max_parameters: int = 2500  # of a model whose information is inverted: 50 MB, O(n³)
    # records: means of fewer positives or negatives, and directions of less information, are taken
    # to be of so many (Jeffreys' prior)
    pseudo_count: float = 0.5


CONFIG = Config()


@dataclass(frozen=True, eq=False)
class Part:
    """Some records as the third step sees them.

    ``labels`` is the most probable cluster of each (n,), ``posterior`` its probabilities (n, k),
    ``weights`` how many records it stands for, ``columns`` its outcomes and predictors (n, p), NaN
    where one is missing.
    """

    labels: Ints
    posterior: Floats
    weights: Floats
    columns: Floats


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds of sums over some records, which make them exact, whatever their order.

    ``total`` and ``largest`` are of the weights, ``low``, ``high`` and ``known``, the number of
    values, of each column (p,).
    """

    total: float
    largest: float
    low: Floats
    high: Floats
    known: Floats

    def __add__(self, other: Self) -> Bounds:
        return Bounds(
            self.total + other.total,
            max(self.largest, other.largest),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.known + other.known,
        )

    @property
    def centre(self) -> Floats:
        """The middle of each column."""
        return np.asarray(np.where(self.known > 0, (self.low + self.high) / 2, 0.0))

    @property
    def scale(self) -> Floats:
        """Half of what each column spans, 1 where that is nothing."""
        half = np.where(self.known > 0, (self.high - self.low) / 2, 1.0)
        return np.asarray(np.where(half > 0, half, 1.0))

    def scaled(self, columns: Floats) -> Floats:
        """Return columns between −1 and 1."""
        return np.asarray((columns - self.centre) / self.scale)


def bounds_of(total: float, part: Part) -> Bounds:
    """Return the bounds of sums over some records, of ``total`` weight all together."""
    known = np.isfinite(part.columns)
    low = np.where(known, part.columns, np.inf).min(axis=0, initial=np.inf)
    high = np.where(known, part.columns, -np.inf).max(axis=0, initial=-np.inf)
    return Bounds(
        float(snap_to_grid(part.weights, total).sum()),
        float(part.weights.max(initial=0.0)),
        np.asarray(low),
        np.asarray(high),
        known.sum(axis=0).astype(np.float64),
    )


@dataclass(frozen=True, eq=False)
class Classification(Sums):
    """Σ w·p_t over the records taken for s, (k, k): the true cluster down, the assigned across."""

    table: Floats

    @property
    def k(self) -> int:
        """The number of clusters."""
        return int(self.table.shape[0])

    @property
    def sizes(self) -> Floats:
        """The soft size of each cluster, (k,)."""
        return np.asarray(self.table.sum(axis=1))

    @property
    def matrix(self) -> Floats:
        """D, the probability that a record of cluster t is taken for one of s, (k, k)."""
        sizes = self.sizes
        empty = np.flatnonzero((sizes <= 0) | (self.table.sum(axis=0) <= 0))
        if empty.size:
            raise InputError("relate.empty_cluster", cluster=empty[0] + 1)
        return np.asarray(self.table / sizes[:, None])

    @property
    def condition(self) -> float:
        """How near D is to having no inverse: 1 where all is certain."""
        return float(np.linalg.cond(self.matrix))

    @property
    def inverse(self) -> Floats:
        """D⁻¹, the BCH weight of a record taken for s in each cluster t, (k, k)."""
        if self.condition > CONFIG.max_condition:
            raise InputError("relate.inseparable", condition=self.condition)
        return np.asarray(np.linalg.inv(self.matrix))


def classify(total: float, part: Part) -> Classification:
    """Return the classification of some records, of ``total`` weight all together.

    Σ_i w_i p_it [s_i = s], by modal assignment (Bolck, Croon and Hagenaars 2004; Vermunt 2010).
    O(n·k). Two sure records of two clusters:

    >>> sure = Part(np.array([0, 1]), np.eye(2), np.ones(2), np.empty((2, 0)))
    >>> classify(2.0, sure).matrix.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    k = part.posterior.shape[1]
    terms = snap_to_grid(part.weights[:, None] * part.posterior, total)
    table = np.zeros((k, k))
    for label in range(k):
        table[:, label] = terms[part.labels == label].sum(axis=0)
    return Classification(table)


@dataclass(frozen=True, eq=False)
class FirstStep:
    """How the fit of a model adds to the errors of relations to its clusters.

    Attributes
    ----------
    influence : ndarray of shape (n, k, k)
        The influence of each record on the classification matrix, directly and through the model.
    """

    influence: Floats


@single_threaded
def first_step(model: Mixture, X: Any, *, sample_weight: Any = None) -> FirstStep:
    """Return how the fit of a model adds to the errors of relations to its clusters.

    Parameters
    ----------
    model : Mixture
        Fitted to X.
    X : array, sparse matrix or frame of shape (n, d)
        Zeros and ones: the records that the model was fitted to.
    sample_weight : array of shape (n,), optional
        How many records each row stands for.

    Returns
    -------
    FirstStep
        For ``first_step`` of `relate_outcome` and `relate_predictors`.
    """
    k, d = model.means.shape
    if k * d + k - 1 > CONFIG.max_parameters:
        raise InputError("relate.parameters", came=k * d + k - 1, limit=CONFIG.max_parameters)
    if model.variables:
        raise InputError("relate.first_step_features")
    x = binary_csr(X).toarray().astype(np.float64)
    if x.shape[1] != d:
        raise InputError("relate.columns", expected=d, came=x.shape[1])
    weights = np.ones(len(x)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    mu = np.clip(model.means, EDGE, 1 - EDGE)
    logs = np.log(np.maximum(model.weights, 1e-300)) + x @ np.log(mu).T + (1 - x) @ np.log1p(-mu).T
    posterior = softmax(logs, axis=1)
    slopes, scores, information = _derivatives(model, x, posterior, weights)
    moved = linalg.solve(information, scores.T, assume_a="sym").T  # influence on the model
    return FirstStep(_influence(posterior, weights, slopes, moved))


def _parameter_places(cluster: int, k: int, d: int) -> Ints:
    """Return the places of the parameters of a cluster: its means, and its share but the last's."""
    own = np.arange(cluster * d, cluster * d + d)
    return own if cluster == k - 1 else np.append(own, k * d + cluster)


def _derivatives(
    model: Mixture, x: Floats, posterior: Floats, weights: Floats
) -> tuple[list[Floats], Floats, Floats]:
    """Return ∂ log P(x, t) of each cluster's parameters, scores (n, q), and the information (q, q).

    Parameters are the logits of means and of shares. The information is that of complete data less
    what uncertain labels hide: Σ p_t sₜsₜᵀ − (Σ p_t s_t)(Σ p_t s_t)ᵀ over the records (Louis 1982).
    """
    n, d = x.shape
    k = model.n_components
    sizes = np.maximum(posterior.T @ weights, 1e-9)
    inside = np.minimum(CONFIG.pseudo_count / sizes[:, None], 0.5)
    mu = np.clip(model.means, inside, 1 - inside)
    q = k * d + k - 1
    scores, information = np.zeros((n, q)), np.zeros((q, q))
    shares = model.weights[:-1]
    slopes = []
    for b in range(k):
        own = x - model.means[b]
        slopes.append(own if b == k - 1 else np.column_stack([own, np.ones(n)]))
        scores[:, _parameter_places(b, k, d)] = posterior[:, b, None] * slopes[b]
    scores[:, k * d :] -= shares
    information[np.arange(k * d), np.arange(k * d)] = (sizes[:, None] * mu * (1 - mu)).ravel()
    total = weights.sum()
    information[k * d :, k * d :] = total * (np.diag(shares) - np.outer(shares, shares))
    for b in range(k):
        for c in range(k):
            hidden = weights * posterior[:, b] * ((b == c) - posterior[:, c])
            table = (slopes[b] * hidden[:, None]).T @ slopes[c]
            information[np.ix_(_parameter_places(b, k, d), _parameter_places(c, k, d))] -= table
    values, vectors = np.linalg.eigh(information)
    information = (vectors * np.maximum(values, CONFIG.pseudo_count)) @ vectors.T
    return slopes, scores * weights[:, None], information


def _influence(posterior: Floats, weights: Floats, slopes: list[Floats], moved: Floats) -> Floats:
    """Return the influence of each record on D, (n, k, k): directly, and by moving the model."""
    k = posterior.shape[1]
    d = slopes[-1].shape[1]
    taken = np.equal.outer(posterior.argmax(axis=1), np.arange(k)).astype(np.float64)
    sizes = posterior.T @ weights
    matrix = (posterior * weights[:, None]).T @ taken / sizes[:, None]
    apart = taken[:, None, :] - matrix  # (n, t, s)
    influence = (weights[:, None] * posterior / sizes)[:, :, None] * apart
    for b in range(k):
        along = np.zeros((k, k, slopes[b].shape[1]))
        for t in range(k):
            bend = weights * posterior[:, t] * ((t == b) - posterior[:, b]) / sizes[t]
            along[t] = (apart[:, t] * bend[:, None]).T @ slopes[b]
        influence += np.einsum("tsq,nq->nts", along, moved[:, _parameter_places(b, k, d)])
    return np.asarray(influence)


def outcome_influence(
    values: Floats, means: Floats, matrix: Floats, part: Part, influence: Floats
) -> Floats:
    """Return the influence of each record on BCH means (n, km), with the first step.

    A record moves m_t by B_st·w·(y − m_t) / A_t, and by way of D by −Σ_ab G_a dD_ab B_bt / A_t,
    with B = D⁻¹ and G_a = Σ_s B_sa Σ w·(y − m_t) over the records taken for s. ``values`` (n, m)
    are NaN where missing.
    """
    n, k = part.posterior.shape
    m = means.shape[1]
    inverse = np.linalg.inv(matrix)
    known = np.asarray(np.isfinite(values).all(axis=1))
    weights = part.weights * known
    taken = np.equal.outer(part.labels, np.arange(k)).astype(np.float64)
    mass = inverse.T @ (taken.T @ weights)
    moved = np.zeros((n, k, m))
    for t in range(k):
        apart = np.where(known[:, None], values - means[t], 0.0) * weights[:, None]
        sums = inverse.T @ (taken.T @ apart)  # G, (a, m)
        through = np.einsum("am,nab,b->nm", sums, influence, inverse[:, t])
        moved[:, t] = (inverse[part.labels, t, None] * apart - through) / mass[t]
    return moved.reshape(n, k * m)


def predictor_influence(
    z: Floats, beta: Floats, matrix: Floats, part: Part, influence: Floats
) -> Floats:
    """Return the influence of each record on coefficients (n, (k − 1)q), with the first step.

    A record's score is w·(u − π) ⊗ z, and by way of D Σ_ts M_ts dD_ts, where M sums
    w·z·u_a (δ_at − u_t) / D_ts over the records taken for s. ``z`` (n, q) is NaN where missing, and
    ``beta`` (k, q) 0 for the reference.
    """
    k, q = beta.shape
    known = np.asarray(np.isfinite(z).all(axis=1))
    own = np.where(known[:, None], z, 0.0)
    weights = part.weights * known
    pi = softmax(own @ beta.T, axis=1)
    joint = np.maximum(pi * matrix[:, part.labels].T, 1e-300)
    u = joint / joint.sum(axis=1, keepdims=True)
    scores = (weights[:, None] * (u - pi))[:, :, None] * own[:, None, :]
    through = np.zeros((k, q, k, k))
    curvature = np.zeros((k, q, k, q))
    for a in range(k):
        for t in range(k):
            bend = weights * u[:, a] * ((a == t) - u[:, t])
            for s in range(k):
                here = part.labels == s
                through[a, :, t, s] = bend[here] @ own[here] / max(matrix[t, s], 1e-12)
            share = weights * pi[:, a] * ((a == t) - pi[:, t])
            curvature[a, :, t] = (own * (share - bend)[:, None]).T @ own
    moved = scores + np.einsum("aqts,nts->naq", through, influence)
    free = np.flatnonzero(np.abs(beta).sum(axis=1) > 0)
    places = np.array([t * q + c for t in free for c in range(q)])
    flat = moved.reshape(len(z), k * q)[:, places]
    bread = np.linalg.pinv(curvature.reshape(k * q, k * q)[np.ix_(places, places)], hermitian=True)
    return np.asarray(flat @ bread)


@dataclass(frozen=True, eq=False)
class OutcomeSums(Sums):
    """Sums over the records with a value, by the cluster they are taken for.

    Y has m columns: the number itself between −1 and 1, or a column of 0 and 1 for each category.
    """

    first: Floats  # (k, m + 1): Σ w and Σ w·y
    squares: Floats  # (k, m): Σ w·y²
    second: Floats  # (k, m + 1, m + 1): Σ w²·(1, y)(1, y)ᵀ
    counts: Floats  # (k,): records
    categories: Floats  # (k, v): records of each category; v = 0 for a number


def sum_outcome(column: int, levels: int, bounds: Bounds, part: Part) -> OutcomeSums:
    """Return the sums of one column, a number or a category of so many ``levels``.

    Terms lie on a grid on which their sums are exact. O(n·m): no record is of two categories.
    """
    k = part.posterior.shape[1]
    known = np.isfinite(part.columns[:, column])
    values = indicators(column, levels, bounds, part.columns[known])
    ones = np.column_stack([np.ones(len(values)), values])
    weights, labels = part.weights[known], part.labels[known]
    m = values.shape[1]

    def by_label(terms: Floats, bound: float) -> Floats:
        return np.bincount(labels, snap_to_grid(terms, bound), k).astype(np.float64)

    once = [by_label(weights * ones[:, a], bounds.total) for a in range(m + 1)]
    twice = [by_label(weights * ones[:, a] ** 2, bounds.total) for a in range(1, m + 1)]
    second = np.zeros((k, m + 1, m + 1))
    for a in range(m + 1):
        for b in range(a, m + 1):
            if not levels or a in (0, b):
                products = weights**2 * ones[:, a] * ones[:, b]
                found = by_label(products, bounds.total * bounds.largest)
                second[:, a, b] = second[:, b, a] = found
    counts = np.bincount(labels, minlength=k).astype(np.float64)
    categories = np.zeros((k, levels))
    for level in range(levels):
        categories[:, level] = np.bincount(labels, ones[:, 1 + level], k)
    return OutcomeSums(np.column_stack(once), np.column_stack(twice), second, counts, categories)


def indicators(column: int, levels: int, bounds: Bounds, columns: Floats) -> Floats:
    """Return a column as numbers between −1 and 1 (n, 1), or as categories of 0 and 1 (n, v)."""
    own = columns[:, column]
    if not levels:
        return np.asarray((own - bounds.centre[column]) / bounds.scale[column])[:, None]
    return np.asarray(own[:, None] == np.arange(levels)).astype(np.float64)


@dataclass(frozen=True)
class Test:
    """A Wald test: χ² with its degrees of freedom, and how likely chance alone reaches it."""

    statistic: float
    df: int
    p: float


@dataclass(frozen=True)
class Pairwise(Test):
    """Whether two clusters, by their places, differ."""

    first: int
    second: int


def wald(differences: Floats, covariance: Floats) -> Test:
    """Return the test that all differences are 0: δᵀ V⁻¹ δ over the directions that vary.

    >>> wald(np.array([2.0]), np.array([[1.0]])).statistic
    4.0
    """
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    varies = values > ZERO_EIGENVALUE * max(float(values.max(initial=0.0)), 1e-300)
    along = vectors[:, varies].T @ differences
    statistic, df = float((along**2 / values[varies]).sum()), int(varies.sum())
    return Test(statistic, df, float(chdtrc(df, statistic)) if df else 1.0)


def overall(means: Floats, covariance: Floats) -> Test:
    """Return the test that all k clusters have the same means, (k, m) with covariance (km, km)."""
    k, m = means.shape
    contrast = np.kron(np.hstack([-np.ones((k - 1, 1)), np.eye(k - 1)]), np.eye(m))
    return wald(contrast @ means.ravel(), contrast @ covariance @ contrast.T)


def pairwise(means: Floats, covariance: Floats) -> tuple[Pairwise, ...]:
    """Return the test of each pair of clusters."""
    k, m = means.shape
    blocks = covariance.reshape(k, m, k, m)
    found = []
    for a, b in combinations(range(k), 2):
        spread = blocks[a, :, a] + blocks[b, :, b] - blocks[a, :, b] - blocks[b, :, a]
        test = wald(means[a] - means[b], spread)
        found.append(Pairwise(test.statistic, test.df, test.p, a, b))
    return tuple(found)
