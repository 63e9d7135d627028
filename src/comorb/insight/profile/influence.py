"""Influence: how much of what sets clusters apart is by their codes, and how much by features."""

from __future__ import annotations

import numpy as np

from comorb.model.arrays import Floats
from comorb.model.kinds.variable import Variable
from comorb.model.mixture import Mixture
from comorb.model.traits import by_parameters

_POINTS, _FAR = 2001, 8.0  # at which numbers are looked at, and so many deviations away at most


def influence(model: Mixture, known: Floats | None = None) -> Floats:
    """Return the share of the codes together, and of each feature, (1 + p,), with sum 1.

    What a column tells about the cluster of a record is Σⱼ ωⱼ KL(pⱼ ‖ p), the information that it
    has of it by the model; that of a feature counts as often as its value is ``known`` (p,) and as
    far as the model tempers it. Without any, the codes have all.
    """
    known = np.ones(len(model.variables)) if known is None else known
    features = [
        share * variable.influence * _told(variable, model.parameters[:, own], model.weights)
        for (variable, own), share in zip(by_parameters(model.variables), known, strict=True)
    ]
    parts = np.array([_of_codes(model), *features])
    total = parts.sum()
    return np.asarray(parts / total if total > 0 else np.eye(1, parts.size)[0])


def _of_codes(model: Mixture) -> float:
    """Return the summed information of the codes, Σᵢ Σⱼ ωⱼ KL(μᵢⱼ ‖ μᵢ)."""
    overall = model.weights @ model.means
    return float(
        sum(
            np.sum(model.weights[:, None] * _plogq(one, all_))
            for one, all_ in ((model.means, overall), (1 - model.means, 1 - overall))
        )
    )


def _told(variable: Variable, parameters: Floats, weights: Floats) -> float:
    """Return the information of one feature, by the values that it can have."""
    statistics, width = _values(variable, parameters)
    density = np.exp(statistics @ variable.natural(parameters))
    terms = _plogq(density, (density @ weights)[:, None])
    return max(float(np.sum(terms @ weights)) * width, 0.0)


def _values(variable: Variable, parameters: Floats) -> tuple[Floats, float]:
    """Return the statistics of the values of a feature, and the width that each stands for."""
    if variable.n_values is not None:
        return variable.cells(variable.n_values), 1.0
    mean, deviation = parameters[:, 0], np.sqrt(parameters[:, 1])
    ends = np.min(mean - _FAR * deviation), np.max(mean + _FAR * deviation)
    z, step = np.linspace(*ends, _POINTS, retstep=True)
    _, spread, *_ = variable.facts
    return np.column_stack([np.ones_like(z), z, z**2]), float(step * spread)


def _plogq(p: Floats, q: Floats) -> Floats:
    """Return p·log(p / q), 0 where p is."""
    ratio = np.divide(p, q, out=np.ones(np.broadcast(p, q).shape), where=(p > 0) & (q > 0))
    return np.asarray(p * np.log(np.maximum(ratio, 1e-300)))
