"""Merging: clusters that a person holds to be one, made one; the others stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from comorb.errors import InputError
from comorb.insight.profile.assignment import assign
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.profiling import profile
from comorb.insight.runs.assign import Assigned
from comorb.insight.runs.folder import names_of
from comorb.insight.runs.lineage import kept_names
from comorb.insight.runs.run import Run
from comorb.model.mixture import Mixture
from comorb.records.cohort import Cohort
from comorb.storage import SavedModel


def grouped(groups: Sequence[int], pair: tuple[int, int]) -> tuple[int, ...]:
    """Return the number that each cluster of a model goes by, once two numbers are made one.

    >>> grouped((1, 2, 3, 4), (4, 2))
    (1, 2, 3, 2)
    """
    first, second = sorted(pair)
    if first == second or not {first, second} <= set(groups):
        known = ", ".join(map(str, sorted(set(groups))))
        raise InputError(f"expected two of the clusters {known}, got {first} and {second}")
    return tuple(first if group == second else group for group in groups)


def merge(
    base: SavedModel,
    groups: Sequence[int],
    cohort: Cohort,
    like: Profile,
    outcomes: Sequence[str] | None = None,
) -> Run:
    """Return the run in which several clusters of a model count as one.

    Parameters
    ----------
    base : SavedModel
        The model as it was fitted.
    groups : sequence of int
        The number that each of its clusters goes by; see `grouped`.
    cohort : Cohort
        The records that it was fitted on.
    like : Profile
        The run before, for its title, and for the names that were given.
    outcomes : sequence of str, optional
        The covariates to sum up; by default all that can be.

    Returns
    -------
    Run
        A record is in the group of the most probability, the sum of its clusters'. The model
        that is saved with it has one cluster for each group, of the mean of theirs.
    """
    numbers = tuple(sorted(set(groups)))
    joined = np.equal.outer(groups, numbers) * base.mixture.weights[:, None]
    weights = joined.sum(axis=0)
    means = (joined / weights).T @ base.mixture.means
    mixture = Mixture(weights / weights.sum(), means)
    assigned = assign(base.mixture, cohort, groups=groups)
    reason = f"{len(numbers)}, after {len(groups)} were found and some were merged by hand"
    about = profile(
        mixture,
        cohort,
        title=like.source.title,
        reason=reason,
        outcomes=outcomes,
        assigned=assigned,
        numbers=numbers,
    )
    about = about.renamed(kept_names(about, [like]))
    names = names_of(about)
    model = replace(
        base, mixture=mixture, clusters=names, numbers=numbers, run=base.run | {"reason": reason}
    )
    return Run(model, Assigned(cohort.ids, assigned, names, numbers, cohort.ledger), about)
