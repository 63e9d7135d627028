"""Lineage: clusters of one run that go on in the next keep their numbers and names."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np

from comorb.insight.profile.profile import Profile
from comorb.model.arrays import Floats
from comorb.model.mixture import Mixture


def forebears(means: Floats, codes: Sequence[str], like: Profile) -> list[int | None]:
    """Return for each cluster its place in an earlier run, or None when it is new.

    They are each other's nearest by Σᵢ (√μᵢ − √νᵢ)² over the codes that both runs have.
    """
    place = {code: column for column, code in enumerate(like.codes)}
    shared = [column for column, code in enumerate(codes) if code in place]
    found: list[int | None] = [None] * means.shape[0]
    if shared:
        ours = np.sqrt(means[:, shared])
        theirs = np.sqrt(like.means[:, [place[codes[column]] for column in shared]])
        distances = np.sum((ours[:, None] - theirs[None]) ** 2, axis=2)
        back = distances.argmin(axis=0)
        for new, old in enumerate(distances.argmin(axis=1)):
            if back[old] == new:
                found[new] = int(old)
    return found


def arrange(
    mixture: Mixture, codes: Sequence[str], earlier: Sequence[Profile]
) -> tuple[Mixture, tuple[int, ...]]:
    """Return the mixture in the order of its clusters' numbers, and the numbers.

    A cluster that goes on from an earlier run, the last one first, keeps its number; a new one
    gets the first that no run has.
    """
    numbers: list[int | None] = [None] * mixture.n_components
    for like in earlier:
        for place, old in enumerate(forebears(mixture.means, codes, like)):
            if numbers[place] is None and old is not None and like.numbers[old] not in numbers:
                numbers[place] = like.numbers[old]
    used = {number for like in earlier for number in like.numbers}
    free = (number for number in count(1) if number not in used)
    chosen = [next(free) if number is None else number for number in numbers]
    order = np.argsort(chosen)
    return Mixture(mixture.weights[order], mixture.means[order]), tuple(sorted(chosen))


def kept_names(about: Profile, earlier: Sequence[Profile]) -> dict[int, str]:
    """Return the names that people gave to clusters of earlier runs and that go on in this."""
    given: dict[int, str | None] = {}
    for like in earlier:
        for cluster, usual in zip(like.clusters, like.automatic_names(), strict=True):
            given.setdefault(cluster.number, None if cluster.name == usual else cluster.name)
    return {
        place: name for place, number in enumerate(about.numbers) if (name := given.get(number))
    }
