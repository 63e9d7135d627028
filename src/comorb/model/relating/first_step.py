"""The first step: how sure the classification errors themselves are, by the model's own scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from comorb.errors import InputError
from comorb.model.arrays import Floats, Ints
from comorb.model.binary import binary_csr
from comorb.model.mixture import EDGE, Mixture
from comorb.model.relating.classification import Part
from comorb.model.threads import single_threaded

LARGEST = 2500  # parameters of the model: beyond, the inverse of its information takes too long
INSIDE = 0.5  # records: a mean of fewer carriers or non-carriers, or of which less is known, is
# taken to be of so many


@dataclass(frozen=True, eq=False)
class FirstStep:
    """What the fit of a model adds to what is related to its clusters.

    Attributes
    ----------
    influence : ndarray of shape (n, k, k)
        What each record does to the classification matrix, by way of the model and by itself.
    """

    influence: Floats


@single_threaded
def first_step(model: Mixture, X: Any, *, sample_weight: Any = None) -> FirstStep:
    """Return what the fit of a model adds to what is related to its clusters.

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
    if k * d + k - 1 > LARGEST:
        raise InputError(
            f"the model has {k * d + k - 1:,} parameters, and the errors of {LARGEST:,} at most "
            "can be counted; leave first_step out, or fit fewer codes"
        )
    if model.variables:
        raise InputError(
            "the errors of a model with features beside the codes can't be counted yet; leave "
            "first_step out"
        )
    x = binary_csr(X).toarray().astype(np.float64)
    if x.shape[1] != d:
        raise InputError(f"expected the {d} columns that the model was fitted to, got {x.shape[1]}")
    weights = np.ones(len(x)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    posterior = _posterior(model, x)
    slopes, scores, information = _derivatives(model, x, posterior, weights)
    moved = linalg.solve(information, scores.T, assume_a="sym").T  # what each does to the model
    return FirstStep(_influence(posterior, posterior.argmax(axis=1), weights, slopes, moved))


def _posterior(model: Mixture, x: Floats) -> Floats:
    mu = np.clip(model.means, EDGE, 1 - EDGE)
    logs = np.log(np.maximum(model.weights, 1e-300)) + x @ np.log(mu).T + (1 - x) @ np.log1p(-mu).T
    dense = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(dense / dense.sum(axis=1, keepdims=True))


def _own(cluster: int, k: int, d: int) -> Ints:
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
    inside = np.minimum(INSIDE / sizes[:, None], 0.5)
    mu = np.clip(model.means, inside, 1 - inside)
    slopes = []
    for b in range(k):
        own = x - model.means[b]
        slopes.append(own if b == k - 1 else np.column_stack([own, np.ones(n)]))
    q = k * d + k - 1
    scores, information = np.zeros((n, q)), np.zeros((q, q))
    shares = model.weights[:-1]
    for b in range(k):
        scores[:, _own(b, k, d)] = posterior[:, b, None] * slopes[b]
    scores[:, k * d :] -= shares
    information[np.arange(k * d), np.arange(k * d)] = (sizes[:, None] * mu * (1 - mu)).ravel()
    total = weights.sum()
    information[k * d :, k * d :] = total * (np.diag(shares) - np.outer(shares, shares))
    for b in range(k):
        for c in range(k):
            hidden = weights * posterior[:, b] * ((b == c) - posterior[:, c])
            table = (slopes[b] * hidden[:, None]).T @ slopes[c]
            information[np.ix_(_own(b, k, d), _own(c, k, d))] -= table
    values, vectors = np.linalg.eigh(information)
    information = (vectors * np.maximum(values, INSIDE)) @ vectors.T
    return slopes, scores * weights[:, None], information


def _influence(
    posterior: Floats, labels: Ints, weights: Floats, slopes: list[Floats], moved: Floats
) -> Floats:
    """Return what each record does to D, (n, k, k): by itself, and by moving the model."""
    k = posterior.shape[1]
    d = slopes[-1].shape[1]
    taken = np.equal.outer(labels, np.arange(k)).astype(np.float64)
    sizes = posterior.T @ weights
    matrix = (posterior * weights[:, None]).T @ taken / sizes[:, None]
    apart = taken[:, None, :] - matrix  # (n, t, s)
    influence = (weights[:, None] * posterior / sizes)[:, :, None] * apart
    for b in range(k):
        along = np.zeros((k, k, slopes[b].shape[1]))
        for t in range(k):
            bend = weights * posterior[:, t] * ((t == b) - posterior[:, b]) / sizes[t]
            along[t] = (apart[:, t] * bend[:, None]).T @ slopes[b]
        influence += np.einsum("tsq,nq->nts", along, moved[:, _own(b, k, d)])
    return np.asarray(influence)


def outcome_moves(
    values: Floats, means: Floats, matrix: Floats, part: Part, influence: Floats
) -> Floats:
    """Return what each record does to BCH means (n, km), the first step counted.

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


def predictor_moves(
    z: Floats, beta: Floats, matrix: Floats, part: Part, influence: Floats
) -> Floats:
    """Return what each record does to coefficients (n, (k − 1)q), the first step counted.

    A record's score is w·(u − π) ⊗ z, and by way of D Σ_ts M_ts dD_ts, where M sums
    w·z·u_a (δ_at − u_t) / D_ts over the records taken for s. ``z`` (n, q) is NaN where missing, and
    ``beta`` (k, q) 0 for the reference.
    """
    k, q = beta.shape
    known = np.asarray(np.isfinite(z).all(axis=1))
    own = np.where(known[:, None], z, 0.0)
    weights = part.weights * known
    logs = own @ beta.T
    pi = np.exp(logs - logs.max(axis=1, keepdims=True))
    pi /= pi.sum(axis=1, keepdims=True)
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
