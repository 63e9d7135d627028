"""Lineage: clusters of one run that go on in the next keep their numbers and names."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np

from comorb.insight.profile.compare import hellinger, shared_columns
from comorb.insight.profile.profile import Profile
from comorb.model.arrays import Floats
from comorb.model.mixture import Mixture


def forebears(means: Floats, codes: Sequence[str], earlier: Profile) -> dict[int, int]:
    """Return the places of clusters that go on from an earlier run, with their places in that run.

    They are each other's nearest by Σᵢ (√μᵢ − √νᵢ)² over the codes that both runs have.
    """
    left, right = shared_columns(codes, earlier.codes)
    if not left.size:
        return {}
    distances = hellinger(means[:, left], earlier.means[:, right])
    back = distances.argmin(axis=0)
    return {new: int(old) for new, old in enumerate(distances.argmin(axis=1)) if back[old] == new}


def arrange(
    mixture: Mixture, codes: Sequence[str], earlier: Sequence[Profile]
) -> tuple[Mixture, tuple[int, ...]]:
    """Return the mixture in the order of its clusters' numbers, and the numbers.

    A cluster that goes on from an earlier run, the last one first, keeps its number; a new one
    gets the first that no run has.
    """
    kept: dict[int, int] = {}
    for profile in earlier:
        for place, old in forebears(mixture.means, codes, profile).items():
            if place not in kept and profile.numbers[old] not in kept.values():
                kept[place] = profile.numbers[old]
    used = {number for profile in earlier for number in profile.numbers}
    free = (number for number in count(1) if number not in used)
    chosen = [kept[place] if place in kept else next(free) for place in range(mixture.n_components)]
    order = np.argsort(chosen)
    return mixture.at(order), tuple(sorted(chosen))


def kept_notes(profile: Profile, earlier: Sequence[Profile]) -> dict[int, dict[str, str]]:
    """Return what people noted of clusters of earlier runs that go on in this."""
    given: dict[int, dict[str, str]] = {}
    for run in earlier:
        for one in run.clusters:
            own = {"note": one.note, "owner": one.owner, "pathway": one.pathway}
            given.setdefault(one.number, own)
    return {
        place: own
        for place, number in enumerate(profile.numbers)
        if any((own := given.get(number, {})).values())
    }


def kept_names(profile: Profile, earlier: Sequence[Profile]) -> dict[int, str]:
    """Return the names that people gave to clusters of earlier runs and that go on in this."""
    given: dict[int, str | None] = {}
    for run in earlier:
        for cluster, usual in zip(run.clusters, run.automatic_names(), strict=True):
            given.setdefault(cluster.number, None if cluster.name == usual else cluster.name)
    return {
        place: name for place, number in enumerate(profile.numbers) if (name := given.get(number))
    }
