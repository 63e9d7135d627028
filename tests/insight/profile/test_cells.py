"""The keys of all that a profile counts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from comorb.errors import StorageError
from comorb.insight.profile import cells
from comorb.insight.profile.assignment import assign
from comorb.insight.profile.keys import record_keys
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.profiling import profile
from comorb.insight.runs.run import Request, run
from comorb.records.cohort import Cohort
from tests.insight.conftest import MODEL, SECRET, make_cohort


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


def test_there_and_back(full: Profile) -> None:
    text = cells.encode(full)
    assert text is not None
    bare = Profile.from_json(full.to_json())
    assert bare.cells is None
    again = cells.attach(bare, text)
    assert cells.encode(again) == text
    assert again.protected().to_json() == full.protected().to_json()
    assert cells.encode(bare) is None


def test_keys_of_another_profile_and_damaged_ones_are_refused(full: Profile) -> None:
    text = cells.encode(full) or ""
    other = profile(MODEL, make_cohort(seed=2), secret=SECRET)
    plain = json.loads(text)
    wrong = [
        cells.encode(other) or "",
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
            cells.attach(replace(full, cells=None), one)


def test_keys_of_other_shapes_are_refused(tmp_path: Path) -> None:
    made = run(make_cohort(), Request(2, repeats=0, secret=SECRET), tmp_path / "run")
    text = cells.encode(made) or ""
    for part in ("burden", "slices", "rules"):
        for change in ("shape", "kind"):
            plain = json.loads(text)
            first = next(iter(plain["parts"][part][0].values()))
            if change == "shape":
                first["shape"] = [1, *first["shape"]]
            else:
                first["numbers"] = first.pop("keys")
            with pytest.raises(StorageError, match="these are not the keys of this profile"):
                cells.attach(made, json.dumps(plain))
