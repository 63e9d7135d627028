"""The features of a profile in its document: damaged ones are refused."""

import hashlib
import json

import pytest

from comorb.errors import StorageError
from comorb.insight.profile.profile import Profile


def altered(profile, change):
    plain = json.loads(profile.to_json())
    change(plain["features"][0])
    del plain["seal"]
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))[:-1]
    return f'{text},"seal":"{hashlib.sha256(text.encode()).hexdigest()}"}}'


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.pop("kind"),
        lambda one: one.update(columns=[999]),
        lambda one: one.update(columns=["a"]),
        lambda one: one["model"].update(parameters=[[1.0]]),
        lambda one: one["model"]["feature"].update(kind="colour"),
        lambda one: one["summary"].update(known=[1]),
    ],
)
def test_a_damaged_feature_is_refused(mixed, change):
    with pytest.raises(StorageError, match="the profile is damaged"):
        Profile.from_json(altered(mixed[2], change))


def test_a_profile_without_features_says_nothing_of_them(full):
    assert "features" not in json.loads(full.to_json())
