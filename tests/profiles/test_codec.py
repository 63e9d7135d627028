"""The document: there and back, older and damaged ones, every way in which it can be wrong."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from comorb.errors import StorageError
from comorb.profiles import codec
from comorb.profiles.assignment import assign
from comorb.profiles.build import profile
from comorb.profiles.codec import _SEAL, plain_parts, read_parts
from comorb.profiles.contents import Caveats
from comorb.profiles.intervals import wilson_interval
from comorb.profiles.noise import record_keys
from comorb.profiles.profile import Profile
from comorb.records.cohort import Cohort
from comorb.runs.run import Request, run
from tests.small_cohort import MODEL, SECRET, make_cohort


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


def test_a_document_of_version_2_is_read_and_written_as_it_is() -> None:
    folder = Path(__file__).with_name("version-2")
    text, keys = ((folder / name).read_text("utf-8") for name in ("profile.json", "keys.json"))
    made = codec.attach(Profile.from_json(text), keys)
    assert made.to_json() == text
    assert codec.encode_cells(made) == keys
    assert made.features
    assert made.burden
    assert made.slices
    assert made.rules
    assert made.protected(11).to_json() != text


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
    np.testing.assert_allclose(again.low, wilson_interval(made.prevalence, sizes[:, None])[0])
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


def test_the_key_of_a_set_is_the_sum_of_its_records(full: Profile, cohort: Cohort) -> None:
    keys, labels = record_keys(cohort, SECRET), assign(MODEL, cohort).labels
    dense = cohort.matrix.toarray().astype(bool)
    assert full.cells is not None
    for place in range(full.k):
        for code in (0, 3, 7):
            rows = (labels == place) & dense[:, code]
            assert full.cells.codes[place, code] == keys[rows].sum(dtype=np.uint64)
        assert full.cells.clusters[place] == keys[labels == place].sum(dtype=np.uint64)
    assert full.cells.codes[-1, 0] == full.cells.clusters[-1] == keys.sum(dtype=np.uint64)
    died = next(one for one in full.outcomes if one.name == "died")
    rows = np.array(cohort.covariates["died"].to_pylist()) & (labels == 1)
    assert died.cells is not None
    assert died.cells.counts[0, 1] == keys[rows].sum(dtype=np.uint64)


def test_cells_go_there_and_back(full: Profile) -> None:
    text = codec.encode_cells(full)
    assert text is not None
    assert text.startswith('{"format":"comorb-keys","version":1,')
    bare = Profile.from_json(full.to_json())
    assert bare.cells is None
    again = codec.attach(bare, text)
    assert codec.encode_cells(again) == text
    assert again.protected().to_json() == full.protected().to_json()
    assert codec.encode_cells(bare) is None


def test_keys_of_another_profile_and_damaged_ones_are_refused(full: Profile) -> None:
    text = codec.encode_cells(full) or ""
    other = profile(MODEL, make_cohort(seed=2), secret=SECRET)
    plain = json.loads(text)
    wrong = [
        codec.encode_cells(other) or "",
        text[:-5],
        "[]",
        json.dumps(plain | {"version": 2}),
        json.dumps(plain | {"outcomes": plain["outcomes"][1:]}),
        json.dumps(plain | {"codes": plain["codes"][8:]}),
        json.dumps({name: value for name, value in plain.items() if name != "pairs"}),
        json.dumps(plain | {"parts": "none"}),
        json.dumps(plain | {"parts": {"rules": [{}] * (len(full.rules) + 1)}}),
    ]
    for one in wrong:
        with pytest.raises(StorageError, match="these are not the keys of this profile"):
            codec.attach(replace(full, cells=None), one)


def test_keys_of_other_shapes_are_refused(tmp_path: Path) -> None:
    made = run(make_cohort(), Request(2, repeats=0, secret=SECRET), tmp_path / "run")
    text = codec.encode_cells(made) or ""
    for part in ("burden", "slices", "rules"):
        for change in ("shape", "kind"):
            plain = json.loads(text)
            first = next(iter(plain["parts"][part][0].values()))
            if change == "shape":
                first["shape"] = [1, *first["shape"]]
            else:
                first["numbers"] = first.pop("keys")
            with pytest.raises(StorageError, match="these are not the keys of this profile"):
                codec.attach(made, json.dumps(plain))


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
    text = codec.encode_cells(full)
    assert text is not None
    back = codec.attach(Profile.from_json(full.to_json()), text)
    assert back.protected().to_json() == full.protected().to_json()


def test_a_profile_of_an_earlier_version_has_none(full: Profile) -> None:
    plain = json.loads(full.to_json())
    for name in ("seal", "burden", "slices", "rules", "grey"):
        del plain[name]
    old = Profile.from_json(json.dumps(plain | {"version": 1}))
    assert (old.burden, old.slices, old.rules, old.uncertain) == (None, (), (), None)
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
    text = codec.encode_cells(full)
    assert text is not None
    with pytest.raises(StorageError, match="these are not the keys of this profile"):
        codec.attach(replace(full, slices=full.slices[:1]), text)
