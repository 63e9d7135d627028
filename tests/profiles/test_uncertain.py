"""Uncertain records: who is in doubt, between which clusters, and what of it may be told."""

import numpy as np
import pytest

from comorb.errors import InputError
from comorb.model.mixture import Mixture
from comorb.profiles.assignment import Assignment, count_uncertain, protect_uncertain
from comorb.profiles.build import profile
from comorb.profiles.profile import Profile
from tests.records.helpers import make


def assignment(labels, top, second) -> Assignment:
    none = np.empty(0)
    return Assignment(np.array(labels), np.array(top), none, none, none, none, np.array(second))


def test_records_below_the_line_are_counted_by_their_two_clusters():
    assigned = assignment([0, 0, 0, 1, 2], [0.9, 0.5, 0.59, 0.4, 0.6], [1, 1, 2, 0, 0])
    found = count_uncertain(assigned, 3)
    assert found.members.tolist() == [3, 1, 1]
    assert found.doubtful.tolist() == [2, 1, 0]
    assert found.between.tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 0]]


def test_few_are_not_told_and_parts_stay_within_wholes():
    n, rng = 4000, np.random.default_rng(3)
    labels, second = rng.integers(0, 3, n), rng.integers(0, 3, n)
    assigned = assignment(labels, np.where(rng.random(n) < 0.02, 0.5, 0.9), second)
    keys = rng.integers(0, 2**63, n).astype(np.uint64)
    full = count_uncertain(assigned, 3, keys)
    told = protect_uncertain(full, 11)
    assert told.cells is None
    assert np.isnan(told.between[(full.between > 0) & (full.between < 11)]).all()
    shown = ~np.isnan(told.between)
    assert (told.between[shown] <= np.repeat(told.doubtful, 3).reshape(3, 3)[shown]).all()
    assert (told.doubtful != full.doubtful).any()
    with pytest.raises(InputError, match="counted without keys"):
        protect_uncertain(count_uncertain(assigned, 3), 11)


def test_a_profile_has_its_grey_zone_and_notes_and_keeps_them_in_json():
    rng = np.random.default_rng(5)
    cohort = make((rng.random((900, 6)) < 0.4).astype(int).tolist(), tuple("ABCDEF"))
    model = Mixture(np.full(3, 1 / 3), rng.uniform(0.2, 0.6, (3, 6)))
    made = profile(model, cohort, secret=bytes(32))
    assert made.uncertain.members.sum() == 900
    assert np.allclose(made.uncertain.between.sum(axis=1), made.uncertain.doubtful)
    noted = made.noted({1: {"owner": " Dr. Who ", "pathway": "Heart clinic"}})
    again = Profile.from_json(noted.to_json())
    assert (again.clusters[1].owner, again.clusters[0].owner) == ("Dr. Who", "")
    assert again.uncertain.between.tolist() == made.uncertain.between.tolist()
    assert noted.protected().clusters[1].pathway == "Heart clinic"
    with pytest.raises(InputError, match="expected a note, an owner or a pathway"):
        made.noted({7: {"note": "x"}})
