"""`comorb slices`: shares by age and sex, standardised; models of their own; bad requests."""

import json

import pytest


def test_shares_are_told_by_age_and_sex(comorb, run, records):
    told = comorb("slices", run, records, "--by", "age:q3", "--by", "sex")
    assert told.exit_code == 0, told.output
    assert "By age:q3: % of records in each cluster" in told.stdout
    assert "trend" in told.stdout
    assert "difference" in told.stdout


def test_json_has_every_figure_and_nothing_that_isn_t_a_number(comorb, run, records):
    told = json.loads(comorb("slices", run, records, "--by", "sex", "--json").stdout)
    (by,) = told["slices"]
    assert by["standardised_by"] == ["age"]
    for one in by["slices"]:
        assert sum(part["share"] for part in one["clusters"]) == pytest.approx(1, abs=1e-4)
        assert sum(part["records"] for part in one["clusters"]) == one["records"]
    assert told["strata"] == []


def test_models_of_slices_are_told_with_the_test(comorb, run, records, monkeypatch):
    monkeypatch.setattr("comorb.runs.slices.MIN_STRATUM", 100)
    words = ("slices", run, records, "--by", "age:q2", "--refit", "--draws", 2)
    told = comorb(*words)
    assert told.exit_code == 0, told.output
    assert "A model of" in told.stdout
    assert "beyond chance: likelihood ratio" in told.stdout
    rough = json.loads(comorb(*words, "--protected", "--json").stdout)
    (strata,) = rough["strata"]
    assert all(one["records"] % 10 == 0 for one in strata["strata"])


def test_protected_slices_have_no_small_count(comorb, run, records):
    words = ("slices", run, records, "--by", "age:q20", "--protected")
    told = json.loads(comorb(*words, "--json").stdout)
    counts = [part["records"] for one in told["slices"][0]["slices"] for part in one["clusters"]]
    assert None in counts
    assert not [count for count in counts if count and count < 11]
    assert "few" in comorb(*words).stdout


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("ward", "to slice by, got 'ward'"),
        ("age:60,20", "cut points in ascending order"),
        ("age:900", "has the same value in all records"),
    ],
)
def test_a_bad_request_is_one_sentence(comorb, run, records, by, said):
    told = comorb("slices", run, records, "--by", by)
    assert told.exit_code == 1
    assert said in told.stderr
