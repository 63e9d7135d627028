"""The model: a mixture of independent Bernoullis, one mean per cluster and code."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from scipy import sparse

from comorb.errors import InputError
from comorb.model import features, kernels
from comorb.model.arrays import Floats, Ints
from comorb.model.blocks import Rows, exact_sum
from comorb.model.emissions.base import EDGE as EDGE
from comorb.model.emissions.base import FeatureTable, Variable


@dataclass(frozen=True)
class Mixture:
    """A mixture of independent Bernoullis (paper section 2, example 2.1).

    Parameters
    ----------
    weights : ndarray of shape (k,)
        ω, the share of each cluster: not negative, with sum 1.
    means : ndarray of shape (k, d)
        Mᵀ, the probability of each code in each cluster, in [0, 1].
    variables : tuple of Variable
        The features other than codes, none by default.
    parameters : ndarray of shape (k, m)
        Theirs in each cluster, as the model sees them; ``described`` has them in original units.

    Examples
    --------
    >>> model = Mixture(np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]]))
    >>> model.tables()[1].shape
    (2, 2)
    """

    weights: Floats
    means: Floats
    variables: tuple[Variable, ...] = ()
    parameters: Floats = field(default_factory=lambda: np.empty((0, 0)))

    def __post_init__(self) -> None:
        """Refuse what is not a mixture."""
        weights = np.ascontiguousarray(self.weights, dtype=np.float64)
        means = np.ascontiguousarray(self.means, dtype=np.float64)
        if weights.ndim != 1 or means.ndim != 2 or means.shape[0] != weights.size:
            raise InputError("mixture.shape", weights=str(weights.shape), means=str(means.shape))
        if not (np.all(weights >= 0) and abs(weights.sum() - 1) < 1e-6):
            raise InputError("mixture.weights", sum=weights.sum())
        if not np.all((means >= 0) & (means <= 1)):
            raise InputError("mixture.means")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "means", means)
        object.__setattr__(self, "parameters", self._check_parameters())

    def _check_parameters(self) -> Floats:
        """Return the parameters of the features, or refuse what are none."""
        shape = (self.weights.size, features.n_parameters(self.variables))
        parameters = np.ascontiguousarray(self.parameters, dtype=np.float64)
        if not self.variables and not parameters.size:
            return np.empty(shape)
        if parameters.shape != shape:
            raise InputError(
                "mixture.parameters",
                shape=str(shape),
                count=len(self.variables),
                came=str(parameters.shape),
            )
        for variable, own in features.parameter_slices(self.variables):
            if wanted := variable.find_problem(parameters[:, own]):
                raise InputError("variable.expected", name=variable.feature.name, wanted=wanted)
        return parameters

    @property
    def n_components(self) -> int:
        """k, the number of clusters."""
        return int(self.weights.size)

    @property
    def n_columns(self) -> int:
        """d, the number of codes."""
        return int(self.means.shape[1])

    @property
    def n_parameters(self) -> int:
        """How many free numbers the mixture has."""
        k, d = self.means.shape
        return int(k - 1 + k * (d + features.n_free(self.variables)))

    @property
    def key(self) -> bytes:
        """A digest of the parameters, to the last bit."""
        numbers = [self.weights, self.means, self.parameters]
        influences = [variable.influence for variable in self.variables]
        return sha256(b"".join(map(np.ndarray.tobytes, [*numbers, np.array(influences)]))).digest()

    @cached_property
    def logs(self) -> tuple[Floats, Floats]:
        """Log μ and log(1 − μ), (k, d) each, with μ kept inside (0, 1)."""
        inside = np.clip(self.means, EDGE, 1 - EDGE)
        return np.log(inside), np.log1p(-inside)

    @cached_property
    def natural(self) -> Floats:
        """The table of the features' log-densities, (s, k)."""
        return features.natural(self.variables, self.parameters)

    @cached_property
    def angles(self) -> Floats:
        """√ω, arcsin √μ and the features' in one vector: scales of even variance."""
        angles = np.arcsin(np.sqrt(self.means)).ravel(), self.feature_angles.ravel()
        return np.concatenate([np.sqrt(self.weights), *angles])

    @property
    def feature_angles(self) -> Floats:
        """The features' parameters on scales of even variance, (k, m)."""
        return features.map_parameters(
            self.variables, lambda v, part, _: v.angles(part), self.parameters
        )

    def tables(self) -> tuple[Floats, Floats]:
        """Return what a row's log-density is added up from: ``base`` (k,), ``logits`` (d + s, k).

        log ωⱼ + Σᵢ log(1 − μᵢⱼ), and log(μᵢⱼ / (1 − μᵢⱼ)), with μ kept inside (0, 1). The sum
        over columns does not depend on their order. Below the codes' logits are the tables of the
        features' s statistics. O(k·d).
        """
        present, absent = self.logs
        shares = np.full(self.n_components, kernels.LOG_ZERO)
        np.log(self.weights, out=shares, where=self.weights > 0)
        logits = np.ascontiguousarray((present - absent).T)
        if self.variables:
            logits = np.concatenate([logits, self.natural])
        return shares + exact_sum(absent, axis=1), logits

    def posterior(self, rows: Rows) -> tuple[Floats, Floats]:
        """Return P(Y = j | x) (n, k) and log P(x) (n,) for each row of a block: paper eq. 1."""
        base, logits = self.tables()
        n = rows.indptr.size - 1
        out, log_density = np.empty((n, self.n_components)), np.empty(n)
        if not self.variables:
            room = kernels.make_buffers(self.n_components)
            kernels.posterior(rows.indptr, rows.indices, base, logits, out, log_density, room)
            return out, log_density
        if rows.values.shape != (n, len(self.variables)):
            raise InputError(
                "mixture.values", expected=len(self.variables), n=n, shape=str(rows.values.shape)
            )
        plan = features.plan_for(self.variables, _value_counts(self.variables, rows.values))
        d, own = self.n_columns, (rows.indptr, rows.indices, rows.values)
        tables = (base, logits[:d], *plan.tables(logits[d:]))
        mixed = kernels.make_mixed_buffers(self.n_components, plan.lookup)
        kernels.posterior_mixed(own, plan.lookup, tables, out, log_density, mixed)
        return out, log_density

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> tuple[sparse.csr_array, Ints]:
        """Draw n records: a 0/1 matrix (n, d) and the true cluster of each row."""
        rng = np.random.default_rng(seed)
        labels = rng.choice(self.n_components, size=n, p=self.weights / self.weights.sum())
        return draw(labels, self.means, rng), labels

    def sample_features(self, labels: Ints, seed: int | np.random.Generator = 0) -> FeatureTable:
        """Draw the features of records whose clusters are known, as people write them."""
        rng = np.random.default_rng(seed)
        values = np.empty((labels.size, len(self.variables)))
        for at, (variable, own) in enumerate(features.parameter_slices(self.variables)):
            for cluster in range(self.n_components):
                rows = np.flatnonzero(labels == cluster)
                values[rows, at] = variable.draw(self.parameters[cluster, own], rng, rows.size)
        return FeatureTable(tuple(variable.feature for variable in self.variables), values)

    def described(self) -> dict[str, dict[str, Floats]]:
        """Return the features' parameters in original units: by feature, by name, (k,) each."""
        return {
            variable.feature.name: variable.describe(self.parameters[:, own])
            for variable, own in features.parameter_slices(self.variables)
        }

    def at(self, clusters: Any) -> Mixture:
        """Return some of the clusters, in some order; their weights must add up to 1."""
        weights, means = self.weights[clusters], self.means[clusters]
        return Mixture(weights, means, self.variables, self.parameters[clusters])

    def ordered(self) -> Mixture:
        """Return the same mixture, largest cluster first; ties are broken by content."""
        return self.at(self.order())

    def order(self) -> list[int]:
        """Return the clusters by size, largest first.

        Ties are broken by the means sorted within each cluster, which the order of the columns does
        not change, then by the means as they stand.
        """
        keys = [
            (-weight, *np.sort(-row), *-row, *np.sort(own), *own)
            for weight, row, own in zip(self.weights, self.means, self.parameters, strict=True)
        ]
        return sorted(range(self.n_components), key=keys.__getitem__)


def _value_counts(variables: tuple[Variable, ...], values: Floats) -> tuple[int, ...]:
    """Return how many values each variable has at least, where rows hold unknown ones."""
    tops = [0] * len(variables)
    for at, variable in enumerate(variables):
        if variable.n_values is not None and values.size:
            most = np.fmax.reduce(values[:, at], initial=0.0)
            tops[at] = int(most) + 1 if most >= variable.n_values else 0
    return tuple(tops) if any(tops) else ()


def draw(labels: Ints, means: Floats, rng: np.random.Generator) -> sparse.csr_array:
    """Draw a 0/1 row for each label, its codes independent with the label's means.

    Per cluster and code the number of positive records is binomial, and they are picked without
    replacement: O(ones + k·d) for rare codes, with no dense (n, d) matrix.
    """
    clusters, d = means.shape
    members = [np.flatnonzero(labels == c).astype(np.int32) for c in range(clusters)]
    sizes = np.array([rows.size for rows in members])
    counts = rng.binomial(sizes[:, None], means)
    picked = [
        rows[rng.choice(rows.size, count, replace=False, shuffle=False)]
        for column in counts.T
        for rows, count in zip(members, column, strict=True)
        if count
    ]
    ends = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    indptr: Any = ends.astype(np.int32 if ends[-1] < 2**31 else np.int64)
    indices = np.concatenate([np.empty(0, np.int32), *picked])
    ones = np.ones(indices.size, dtype=np.uint8)
    matrix = sparse.csc_array((ones, indices, indptr), shape=(labels.size, d)).tocsr()
    matrix.sort_indices()
    return matrix
