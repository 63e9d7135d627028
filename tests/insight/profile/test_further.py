"""Burden, slices and rules go to JSON and back; profiles of earlier versions have none."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pytest

from comorb.errors import StorageError
from comorb.insight.profile import cells
from comorb.insight.profile.codec import _SEAL
from comorb.insight.profile.further import plain_parts, read_parts
from comorb.insight.profile.profile import Profile


def same(one: object, two: object) -> None:
    """Compare two parts field by field; not their keys."""
    for field in fields(one):  # type: ignore[arg-type]
        a, b = getattr(one, field.name), getattr(two, field.name)
        if isinstance(a, np.ndarray):
            assert np.array_equal(a, b, equal_nan=a.dtype != np.uint64), field.name
        elif field.name != "cells":
            assert a == b or (a != a and b != b), field.name


@pytest.mark.parametrize("protected", [False, True])
def test_every_part_comes_back(full: Profile, protected: bool) -> None:
    shown = full.protected() if protected else full
    back = Profile.from_json(shown.to_json())
    same(shown.burden, back.burden)
    for one, two in zip((*shown.slices, *shown.rules), (*back.slices, *back.rules), strict=True):
        same(one, two)


def test_the_keys_come_back_and_protect_the_same(full: Profile) -> None:
    text = cells.encode(full)
    assert text is not None
    back = cells.attach(Profile.from_json(full.to_json()), text)
    assert back.protected().to_json() == full.protected().to_json()


def test_a_profile_of_an_earlier_version_has_none(full: Profile) -> None:
    plain = json.loads(full.to_json())
    for name in ("seal", "burden", "slices", "rules", "grey"):
        del plain[name]
    old = Profile.from_json(json.dumps(plain | {"version": 1}))
    assert (old.burden, old.slices, old.rules, old.grey) == (None, (), (), None)
    assert plain_parts(old) == {"burden": None, "slices": [], "rules": [], "grey": None}


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("burden", lambda plain: plain["burden"]["records"].pop()),
        ("slices", lambda plain: plain["slices"][0]["share"].pop()),
        ("rules", lambda plain: plain["rules"][0]["conditions"][0].update(code=99)),
    ],
)
def test_what_is_damaged_is_refused(full: Profile, part: str, change: object) -> None:
    plain = json.loads(json.dumps(plain_parts(full)))
    change(plain)  # type: ignore[operator]
    with pytest.raises(ValueError, match=r"\w"):
        read_parts(plain, full.k, len(full.codes))
    text = full.to_json().rpartition(_SEAL)[0] + "}"
    assert part in json.loads(text)


def test_keys_of_another_number_of_slices_are_refused(full: Profile) -> None:
    text = cells.encode(full)
    assert text is not None
    with pytest.raises(StorageError, match="these are not the keys of this profile"):
        cells.attach(replace(full, slices=full.slices[:1]), text)
