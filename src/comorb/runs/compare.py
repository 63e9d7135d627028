"""Two saved runs compared, and clusters that continue from one run to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa

from comorb.model.arrays import Floats
from comorb.model.mixture import Mixture
from comorb.profiles.comparison import Comparison, compare, hellinger, shared_columns
from comorb.profiles.noise import hash_texts, own_secret
from comorb.profiles.profile import Profile
from comorb.profiles.rounded import round_count
from comorb.runs.folder import RunFolder, load_profile


@dataclass(frozen=True, eq=False)
class RunComparison:
    """Two profiles, what sets them apart, and how many records were followed, if any were."""

    one: Profile
    two: Profile
    comparison: Comparison
    followed: int | None


def compare_runs(
    one: str | Path,
    two: str | Path,
    min_cell: int = 0,
    follow: bool | None = None,
    secret: bytes | None = None,
) -> RunComparison:
    """Compare two runs, given by their folders or profiles; protected with a ``min_cell``.

    With ``follow``, by default when both are on the same records, those that both have by their ids
    are followed from one run to the other. The keys of records are made with the ``secret``, by
    default one's own.
    """
    profiles = load_profile(one), load_profile(two)
    if follow is None:
        follow = _same_records(*profiles)
    shared = _shared_records(RunFolder(one), RunFolder(two)) if follow else None
    labels, keys, followed = None, None, None
    if shared is not None and len(shared) >= max(min_cell, 2):
        numbers = shared["cluster"].to_numpy(), shared["cluster of two"].to_numpy()
        labels = profiles[0].places_of(numbers[0]), profiles[1].places_of(numbers[1])
        followed = round_count(len(shared), min_cell) if min_cell else len(shared)
    if min_cell:
        profiles = profiles[0].protected(min_cell), profiles[1].protected(min_cell)
        if shared is not None and labels is not None:
            keys = hash_texts(shared["id"].to_pylist(), secret or own_secret())
    return RunComparison(*profiles, compare(*profiles, labels, keys), followed)


def _same_records(one: Profile, two: Profile) -> bool:
    """Return whether two runs are on the same records: by their features too, or by codes alone."""
    same = one.source.digest == two.source.digest
    if same or not (one.features or two.features):
        return same
    counts = [
        dict(zip(run.codes[: run.n_codes], run.totals.tolist(), strict=False)) for run in (one, two)
    ]
    return one.source.records == two.source.records and counts[0] == counts[1]


def _shared_records(one: RunFolder, two: RunFolder) -> pa.Table | None:
    """Return the ids of the records that both runs have, with the numbers of their clusters."""
    if not (one.assignments.is_file() and two.assignments.is_file()):
        return None
    tables = [run.load_assignments().select(["id", "cluster"]) for run in (one, two)]
    return tables[0].join(tables[1], "id", join_type="inner", right_suffix=" of two")


def match_earlier(means: Floats, codes: Sequence[str], earlier: Profile) -> dict[int, int]:
    """Return the places of clusters that go on from an earlier run, with their places in that run.

    They are each other's nearest by Σᵢ (√μᵢ − √νᵢ)² over the codes that both runs have.
    """
    left, right = shared_columns(codes, earlier.codes)
    if not left.size:
        return {}
    distances = hellinger(means[:, left], earlier.means[:, right])
    back = distances.argmin(axis=0)
    return {new: int(old) for new, old in enumerate(distances.argmin(axis=1)) if back[old] == new}


def order_by_number(
    mixture: Mixture, codes: Sequence[str], earlier: Sequence[Profile]
) -> tuple[Mixture, tuple[int, ...]]:
    """Return the mixture in the order of its clusters' numbers, and the numbers.

    A cluster that goes on from an earlier run, the last one first, keeps its number; a new one
    gets the first that no run has.
    """
    kept: dict[int, int] = {}
    for profile in earlier:
        for place, old in match_earlier(mixture.means, codes, profile).items():
            if place not in kept and profile.numbers[old] not in kept.values():
                kept[place] = profile.numbers[old]
    used = {number for profile in earlier for number in profile.numbers}
    free = (number for number in count(1) if number not in used)
    chosen = [kept[place] if place in kept else next(free) for place in range(mixture.n_components)]
    order = np.argsort(chosen)
    return mixture.at(order), tuple(sorted(chosen))


def carry_notes(profile: Profile, earlier: Sequence[Profile]) -> dict[int, dict[str, str]]:
    """Return what people noted of clusters of earlier runs that go on in this."""
    last = {one.number: one for run in reversed(earlier) for one in run.clusters}
    names = ("note", "owner", "pathway")
    notes = {
        place: {name: getattr(last[number], name) for name in names}
        for place, number in enumerate(profile.numbers)
        if number in last
    }
    return {place: own for place, own in notes.items() if any(own.values())}


def carry_names(profile: Profile, earlier: Sequence[Profile]) -> dict[int, str]:
    """Return the names that people gave to clusters of earlier runs and that go on in this."""
    given: dict[int, str | None] = {}
    for run in earlier:
        for cluster, usual in zip(run.clusters, run.automatic_names(), strict=True):
            given.setdefault(cluster.number, None if cluster.name == usual else cluster.name)
    return {
        place: name for place, number in enumerate(profile.numbers) if (name := given.get(number))
    }
