"""Lineage: clusters of one run that go on in the next keep their places, names and colours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from comorb.insight.profile import Profile
from comorb.model.kernels import Floats
from comorb.model.mixture import Mixture


def forebears(means: Floats, codes: Sequence[str], like: Profile) -> list[int | None]:
    """Return for each cluster its place in an earlier run, or None when it is new.

    Hungarian assignment on Σᵢ (√μᵢ − √νᵢ)² over the codes that both runs have.
    """
    place = {code: column for column, code in enumerate(like.codes)}
    shared = [column for column, code in enumerate(codes) if code in place]
    found: list[int | None] = [None] * means.shape[0]
    if shared:
        ours = np.sqrt(means[:, shared])
        theirs = np.sqrt(like.means[:, [place[codes[column]] for column in shared]])
        distances = np.sum((ours[:, None] - theirs[None]) ** 2, axis=2)
        for new, old in zip(*linear_sum_assignment(distances), strict=True):
            found[int(new)] = int(old)
    return found


def arrange(mixture: Mixture, codes: Sequence[str], like: Profile) -> Mixture:
    """Return the mixture with its clusters in the order of an earlier run, new ones last."""
    old = forebears(mixture.means, codes, like)
    order = sorted(range(len(old)), key=lambda j: (like.k if old[j] is None else old[j], j))
    return Mixture(mixture.weights[order], mixture.means[order])


def kept_names(about: Profile, like: Profile) -> dict[int, str]:
    """Return the names that people gave to clusters of an earlier run and that go on in this."""
    usual = like.automatic_names()
    return {
        place: like.clusters[old].name
        for place, old in enumerate(forebears(about.means, about.codes, like))
        if old is not None and like.clusters[old].name != usual[old]
    }


def colours(about: Profile, like: Profile, used: Sequence[int]) -> list[int]:
    """Return the colour of each cluster, as places in the palette.

    A cluster that goes on keeps its colour; ``used`` are those of the earlier run. A new one
    gets the first that neither run has.
    """
    old = forebears(about.means, about.codes, like)
    free = (colour for colour in range(len(used) + about.k) if colour not in used)
    return [next(free) if place is None else used[place] for place in old]
