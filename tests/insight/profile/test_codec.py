"""The document: there and back, and every way in which it can be wrong."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from comorb.errors import StorageError
from comorb.insight.profile.contents import Caveats
from comorb.insight.profile.intervals import wilson
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.profiling import profile
from tests.insight.conftest import MODEL, SECRET, make_cohort


@pytest.mark.parametrize("min_cell", [0, 11])
@pytest.mark.parametrize("weighted", [False, True])
def test_there_and_back(min_cell: int, weighted: bool) -> None:
    made = profile(MODEL, make_cohort(weighted=weighted), secret=SECRET)
    made = made.protected(min_cell) if min_cell else made
    text = made.to_json()
    again = Profile.from_json(text)
    assert again.to_json() == text
    assert again.source == made.source
    assert again.clusters == made.clusters
    assert again.heatmap == made.heatmap


def unsealed(made: Profile) -> dict[str, Any]:
    """Return a document as earlier versions wrote it, without a seal."""
    plain = json.loads(made.to_json()) | {"version": 1}
    del plain["seal"]
    return plain


def test_a_profile_of_an_earlier_version_has_intervals_of_its_own_and_no_caveats() -> None:
    made = profile(MODEL, make_cohort())
    plain = unsealed(made)
    for key in ("low", "high", "caveats"):
        del plain[key]
    for cluster in plain["clusters"]:
        del cluster["length"], cluster["of_length"]
    again = Profile.from_json(json.dumps(plain))
    sizes = np.array([cluster.effective for cluster in made.clusters])
    np.testing.assert_allclose(again.low, wilson(made.prevalence, sizes[:, None])[0])
    assert again.caveats == Caveats()
    assert again.clusters[0].length is None


def _drop(plain: dict[str, Any]) -> None:
    del plain["means"]


def _cut(plain: dict[str, Any]) -> None:
    plain["means"][0].pop()


def _texts(plain: dict[str, Any]) -> None:
    plain["names"][0] = 4


def _bits(plain: dict[str, Any]) -> None:
    plain["heatmap"]["lines"][0] += 1


def _cluster(plain: dict[str, Any]) -> None:
    plain["clusters"][0]["colour"] = "red"


def _numbers(plain: dict[str, Any]) -> None:
    plain["clusters"][1]["number"] = 1


def _title(plain: dict[str, Any]) -> None:
    plain["source"]["title"] = ["visits"]


def _source(plain: dict[str, Any]) -> None:
    plain["source"] = []


def _count(plain: dict[str, Any]) -> None:
    plain["source"]["records"] = "many"


def _infinite(plain: dict[str, Any]) -> None:
    plain["weights"][0] = float("inf")


def _share(plain: dict[str, Any]) -> None:
    plain["clusters"][0]["share"] = float("nan")


def _kind(plain: dict[str, Any]) -> None:
    plain["outcomes"][0]["kind"] = "other"


DAMAGES = [_drop, _cut, _texts, _bits, _cluster, _numbers]
DAMAGES += [_title, _source, _count, _infinite, _share, _kind]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_document_is_refused(
    full: Profile, damage: Callable[[dict[str, Any]], None]
) -> None:
    plain = unsealed(full)
    damage(plain)
    with pytest.raises(StorageError, match=r"the profile is damaged: .* make it again"):
        Profile.from_json(json.dumps(plain))


def test_a_document_without_numbers_counts_from_1(full: Profile) -> None:
    plain = unsealed(full)
    for cluster in plain["clusters"]:
        del cluster["number"]
    assert Profile.from_json(json.dumps(plain)).to_json() == full.to_json()


def test_a_document_cut_short_is_refused(full: Profile) -> None:
    with pytest.raises(StorageError, match="it ends or breaks off at character"):
        Profile.from_json(full.to_json()[:-10])


def test_another_format_or_version_is_refused(full: Profile) -> None:
    with pytest.raises(StorageError, match="expected a document of format 'comorb-profile'"):
        Profile.from_json("[]")
    newer = full.to_json().replace('"version":2', '"version":3', 1)
    with pytest.raises(StorageError, match="expected version 2 of a profile, got 3"):
        Profile.from_json(newer)
    with pytest.raises(StorageError, match="the profile is nested too deeply"):
        Profile.from_json('{"a":' + "[" * 100_000)


def test_no_edit_of_a_sealed_document_is_believed(full: Profile) -> None:
    text = full.to_json()
    rng = random.Random(4)
    for _ in range(400):
        place = rng.randrange(len(text))
        kind = rng.choice(("change", "drop", "repeat"))
        new = {"change": rng.choice("0123456789"), "drop": "", "repeat": text[place] * 2}[kind]
        edited = text[:place] + new + text[place + 1 :]
        if edited != text:
            with pytest.raises(StorageError):
                Profile.from_json(edited)
    plain = json.loads(text)
    plain["clusters"][0]["size"] += 1
    for version in (1, 2):
        with pytest.raises(StorageError, match="the profile was altered after it was made"):
            Profile.from_json(json.dumps(plain | {"version": version}))
