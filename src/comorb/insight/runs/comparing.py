"""Two saved runs side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from comorb.insight.profile.compare import Comparison, compare
from comorb.insight.profile.profile import Profile
from comorb.insight.runs.folder import RunFolder, load_profile
from comorb.model.arrays import Ints


@dataclass(frozen=True, eq=False)
class Compared:
    """Two profiles, what sets them apart, and how many records were followed, if any were."""

    one: Profile
    two: Profile
    comparison: Comparison
    followed: int | None


def compare_runs(
    one: str | Path, two: str | Path, min_cell: int = 0, follow: bool | None = None
) -> Compared:
    """Compare two runs, given by their folders or profiles, without counts below ``min_cell``.

    With ``follow``, by default when both are on the same records, those that both have by their ids
    are followed from one run to the other.
    """
    profiles = load_profile(one), load_profile(two)
    if follow is None:
        follow = profiles[0].source.digest == profiles[1].source.digest
    numbers = _shared_numbers(RunFolder(one), RunFolder(two)) if follow else None
    labels = None
    if numbers is not None and numbers[0].size >= max(min_cell, 2):
        labels = profiles[0].places_of(numbers[0]), profiles[1].places_of(numbers[1])
    first, second = (profile.suppressed(min_cell) for profile in profiles)
    followed = None if labels is None else labels[0].size
    return Compared(first, second, compare(first, second, labels), followed)


def _shared_numbers(one: RunFolder, two: RunFolder) -> tuple[Ints, Ints] | None:
    """Return the numbers of the clusters of the records that both runs have."""
    if not (one.assignments.is_file() and two.assignments.is_file()):
        return None
    tables = [run.load_assignments().select(["id", "cluster"]) for run in (one, two)]
    both = tables[0].join(tables[1], "id", join_type="inner", right_suffix=" of two")
    return both["cluster"].to_numpy(), both["cluster of two"].to_numpy()
