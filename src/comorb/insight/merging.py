"""Merging: clusters that a person holds to be one, made one; the others stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from comorb.errors import InputError
from comorb.insight.assignment import assign
from comorb.insight.profile import Profile, profile
from comorb.insight.run import Run
from comorb.insight.saved import names_of
from comorb.insight.scoring import Assigned
from comorb.model.mixture import Mixture
from comorb.records.cohort import Cohort
from comorb.storage import SavedModel


def grouped(groups: Sequence[int], pair: tuple[int, int]) -> tuple[int, ...]:
    """Return the group of each cluster once two groups are made one.

    >>> grouped((0, 1, 2, 3), (1, 3))
    (0, 1, 2, 1)
    """
    first, second = sorted(pair)
    if not 0 <= first < second <= max(groups):
        raise InputError(
            f"expected two different clusters from 0 to {max(groups)}, got {first} and {second}"
        )
    joined = [first if group == second else group for group in groups]
    return tuple(group - (group > second) for group in joined)


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
        The group of each of its clusters; see `grouped`.
    cohort : Cohort
        The records that it was fitted on.
    like : Profile
        The run before, for its title, and for the names of the clusters that stay.
    outcomes : sequence of str, optional
        The covariates to sum up; by default all that can be.

    Returns
    -------
    Run
        A record is in the group of the most probability, the sum of its clusters'. The model
        that is saved with it has one cluster for each group, of the mean of theirs.
    """
    k = max(groups) + 1
    joined = np.eye(k)[list(groups)] * base.mixture.weights[:, None]
    weights = joined.sum(axis=0)
    means = (joined / weights).T @ base.mixture.means
    mixture = Mixture(weights / weights.sum(), means)
    assigned = assign(base.mixture, cohort, groups=groups)
    reason = f"{k}, after {len(groups)} were found and some were merged by hand"
    about = profile(
        mixture,
        cohort,
        title=like.source.title,
        reason=reason,
        outcomes=outcomes,
        assigned=assigned,
    )
    usual, automatic = like.automatic_names(), names_of(about)
    stay = {
        place: name
        for old, name in enumerate(names_of(like))
        if name != usual[old] and (place := _same(about, like, old)) is not None
    }
    about = about.renamed(dict(enumerate(automatic)) | stay)
    model = replace(
        base, mixture=mixture, clusters=names_of(about), run=base.run | {"reason": reason}
    )
    return Run(model, Assigned(cohort.ids, assigned, names_of(about), cohort.ledger), about)


def _same(about: Profile, like: Profile, old: int) -> int | None:
    """Return the place of a cluster that was not merged, by its size and prevalences."""
    for place in range(about.k):
        if np.array_equal(about.counts[place], like.counts[old]):
            return place
    return None
