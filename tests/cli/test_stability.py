"""stability, as a user meets it."""

import json

import pytest


def test_stability_tells_how_much_comes_back(comorb, records):
    told = comorb("stability", records, "-k", 3, "--repeats", 1)
    assert told.exit_code == 0
    assert told.stdout.startswith("Agreement of the parts (adjusted Rand index): 0.")
    assert told.stdout.count(", stability ") == 3


def test_stability_as_json(comorb, records):
    plain = json.loads(comorb("stability", records, "-k", 2, "--repeats", 2, "--json").stdout)
    assert len(plain["aris"]) == 2
    assert plain["ari"] == pytest.approx(sum(plain["aris"]) / 2)
    assert all(0 <= cluster["stability"] <= 1 for cluster in plain["clusters"])
    assert comorb("stability", records, "--repeats", 0).exit_code == 2
