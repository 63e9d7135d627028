"""Two saved runs side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from comorb.insight.profile.compare import Comparison, compare
from comorb.insight.profile.keys import keys_of, own_secret
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.rough import rough
from comorb.insight.runs.folder import RunFolder, load_profile


@dataclass(frozen=True, eq=False)
class Compared:
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
) -> Compared:
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
        followed = rough(len(shared), min_cell) if min_cell else len(shared)
    if min_cell:
        profiles = profiles[0].protected(min_cell), profiles[1].protected(min_cell)
        if shared is not None and labels is not None:
            keys = keys_of(shared["id"].to_pylist(), secret or own_secret())
    return Compared(*profiles, compare(*profiles, labels, keys), followed)


def _same_records(one: Profile, two: Profile) -> bool:
    """Tell whether two runs are on the same records: by their features too, or by codes alone."""
    if one.source.digest == two.source.digest or not (one.features or two.features):
        return one.source.digest == two.source.digest
    counted = [
        (run.source.records, dict(zip(run.codes[: run.n_codes], run.totals.tolist(), strict=False)))
        for run in (one, two)
    ]
    return counted[0] == counted[1]


def _shared_records(one: RunFolder, two: RunFolder) -> pa.Table | None:
    """Return the ids of the records that both runs have, with the numbers of their clusters."""
    if not (one.assignments.is_file() and two.assignments.is_file()):
        return None
    tables = [run.load_assignments().select(["id", "cluster"]) for run in (one, two)]
    return tables[0].join(tables[1], "id", join_type="inner", right_suffix=" of two")
