"""Why a record is where it is: what its codes and features say for and against each cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from comorb.model.arrays import Floats
from comorb.model.mixture import EDGE, Mixture
from comorb.model.traits import by_parameters


@dataclass(frozen=True, eq=False)
class Explanation:
    """The posterior of one record, taken apart.

    log P(Y = j | x) is, up to a constant, ``base[j]`` + Σ ``contributions[:, j]``; so the
    difference of two columns is what a code adds to the log-odds of one cluster against
    another, compared with the same record without the code.
    """

    codes: tuple[str, ...]  # those that the model knows, and then values such as age=82
    unknown: tuple[str, ...]  # those that it doesn't, which say nothing
    posterior: Floats  # (k,)
    base: Floats  # (k,): log-probabilities for a record without codes; the highest is 0
    contributions: Floats  # (codes, k): positive where likelier than in the mixture as a whole

    def against(self, cluster: int, other: int) -> Floats:
        """Return what each code adds to the log-odds of one cluster against another."""
        return np.asarray(self.contributions[:, cluster] - self.contributions[:, other])


def explain(
    model: Mixture,
    codes: Sequence[str],
    given: Sequence[str],
    values: Mapping[str, tuple[int, float]] = MappingProxyType({}),
) -> Explanation:
    """Explain the posterior of a record that has the codes ``given``; repeated ones count once.

    ``codes`` are those of the model's columns. A code i contributes logit μᵢⱼ − logit Σₕ μᵢₕ ωₕ,
    and a value x of a feature log pⱼ(x) − log Σₕ pₕ(x) ωₕ: ``values`` has the feature's place in
    the model and its value, as the model sees it, by how it is called. O(k·d).
    """
    place = {code: column for column, code in enumerate(codes)}
    listed = list(dict.fromkeys(given))
    known = [code for code in listed if code in place]
    base, logits = model.tables()
    overall = np.clip(model.weights @ model.means, EDGE, 1 - EDGE)
    columns = [place[code] for code in known]
    mixed = np.log(overall) - np.log1p(-overall)
    of_codes = logits[columns] - mixed[columns, None]
    of_features = [_of_feature(model, at, value) for at, value in values.values()]
    contributions = np.vstack([of_codes, *of_features])
    total = base + contributions.sum(axis=0)
    posterior = np.exp(total - total.max())
    unknown = tuple(code for code in listed if code not in place)
    return Explanation(
        (*known, *values),
        unknown,
        posterior / posterior.sum(),
        base - base.max(),
        contributions,
    )


def _of_feature(model: Mixture, at: int, value: float) -> Floats:
    """Return what a value says for each cluster, (k,)."""
    variable, own = list(by_parameters(model.variables))[at]
    if variable.n_values is None:
        statistics = np.array([1.0, value, value**2])
    else:
        statistics = variable.cells(int(value) + 1)[-1]
        if variable.feature.levels:
            statistics = np.eye(variable.height)[int(value)]
    logs = statistics @ variable.natural(model.parameters[:, own])
    top = logs.max()
    overall = top + np.log(model.weights @ np.exp(logs - top))
    return np.asarray(variable.influence * (logs - overall))
