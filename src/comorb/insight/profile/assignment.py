"""Which cluster each record belongs to, and how surely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from comorb.errors import InputError
from comorb.model.arrays import Floats, Ints, Keys
from comorb.model.blocks import Rows, map_blocks
from comorb.model.mixture import Mixture
from comorb.model.tempering import tempered
from comorb.model.threads import workers
from comorb.records.cohort import Cohort


@dataclass(frozen=True, eq=False)
class Assignment:
    """The cluster of each record, in the order of the cohort."""

    labels: Ints  # the most probable cluster
    top: Floats  # its probability, tempered like the next two
    margin: Floats  # by how much that exceeds the second highest
    entropy: Floats  # −Σ p log p / log k: 0 for a sure record, 1 for one that could be anywhere
    soft: Floats  # (k,): the summed, weighted probabilities of each cluster
    table: Floats  # (k, k): the tempered ones of each cluster (down) over the records of each label
    second: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # the next most probable
    keys: Keys | None = None  # of the records, where they were made; see `record_keys`

    def every(self, step: int, first: int = 0) -> Assignment:
        """Return the assignment of each ``step``-th record; ``soft`` shrinks in proportion."""
        chosen = slice(first, None, step)
        return Assignment(
            self.labels[chosen],
            self.top[chosen],
            self.margin[chosen],
            self.entropy[chosen],
            self.soft / step,
            self.table / step,
            self.second[chosen],
            None if self.keys is None else self.keys[chosen],
        )


def assign(
    model: Mixture,
    cohort: Cohort,
    n_jobs: int = -1,
    groups: Sequence[int] | None = None,
    temperature: float = 1.0,
) -> Assignment:
    """Assign each record of a cohort to its most probable cluster; weights count in ``soft`` alone.

    ``groups`` has the group of each cluster of the model, when several count as one: a group is as
    probable as all of its clusters together, and labels are the places of the groups in ascending
    order. At a ``temperature`` below 1 probabilities are tempered; labels and ``soft`` stay.
    """
    check_codes(model, cohort)
    united = None if groups is None else np.equal.outer(groups, np.unique(groups)).astype(float)
    with workers(n_jobs) as executor:
        parts = list(
            map_blocks(
                partial(assign_rows, model, united, temperature),
                cohort.blocks(model.variables),
                executor,
            )
        )
    k = model.n_components if united is None else united.shape[1]
    nothing = np.empty((0, k))
    return joined(parts) if parts else _judge(nothing, nothing, np.empty(0))


def check_codes(model: Mixture, cohort: Cohort) -> None:
    """Refuse a model over other codes than those of a cohort."""
    if model.n_columns != len(cohort.codes):
        raise InputError(
            f"expected a model over the {len(cohort.codes)} codes of the cohort, got one over "
            f"{model.n_columns}; fit it on this cohort, or bring the cohort to the model's codes"
        )


def assign_rows(
    model: Mixture, united: Floats | None, temperature: float, rows: Rows
) -> Assignment:
    """Assign the rows of one block; ``united`` (k, groups) marks clusters that count as one."""
    posterior = model.posterior(rows)[0]
    whole = np.eye(model.n_components) if united is None else united
    return _judge(posterior @ whole, tempered(posterior, temperature) @ whole, rows.weights)


def joined(parts: Sequence[Assignment]) -> Assignment:
    """Return the assignment of the rows of several blocks, in their order."""
    keys = [part.keys for part in parts if part.keys is not None]
    return Assignment(
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.top for part in parts]),
        np.concatenate([part.margin for part in parts]),
        np.concatenate([part.entropy for part in parts]),
        np.sum([part.soft for part in parts], axis=0),
        np.sum([part.table for part in parts], axis=0),
        np.concatenate([part.second for part in parts]),
        np.concatenate(keys) if keys else None,
    )


def _judge(posterior: Floats, cooler: Floats, weights: Floats) -> Assignment:
    """Return labels and sums by the model's probabilities, and confidence by the tempered ones."""
    n, k = posterior.shape
    labels = posterior.argmax(axis=1)
    top = cooler[np.arange(n), labels]
    second = np.partition(cooler, -2, axis=1)[:, -2] if k > 1 else np.zeros(n)
    others = cooler.copy()
    others[np.arange(n), labels] = -1 if k > 1 else 0
    entropy = -np.sum(cooler * np.log(np.maximum(cooler, 1e-300)), axis=1)
    mass = weights if weights.size else np.ones(n)
    table = (cooler * mass[:, None]).T @ np.equal.outer(labels, np.arange(k))
    margin = np.maximum(top - second, 0)
    return Assignment(
        labels,
        top,
        margin,
        entropy / max(np.log(k), 1e-300),
        posterior.T @ mass,
        table,
        others.argmax(axis=1),
    )
