"""`comorb rules`: what a ward reads, in words and as JSON."""

import json

import pytest

from comorb.cli.render import show_rules


def test_rules_are_told_in_words_with_how_often_they_are_right(comorb, run):
    told = comorb("rules", run)
    assert told.exit_code == 0, told.output
    assert "otherwise:" in told.stdout
    assert "right " in told.stdout
    assert "Review by hand who is less than 60% probable" in told.stdout


def test_json_has_the_conditions_and_figures(comorb, run):
    told = json.loads(comorb("rules", run, "--json").stdout)
    assert [one["cluster"] for one in told["clusters"]] == [1, 2, 3]
    one = next(one for one in told["clusters"] if one["conditions"])
    assert one["conditions"][0].keys() == {"code", "name", "says", "has", "member"}
    assert 0 < one["right"] <= 1
    assert 0 < one["found"] <= 1


def test_protected_figures_have_few_digits(comorb, run):
    told = json.loads(comorb("rules", run, "--protected", "--json").stdout)
    assert told["min_cell"] == 11
    figures = [one["right"] for one in told["clusters"] if one["right"] is not None]
    assert figures
    assert all(round(one, 2) == one for one in figures)


def test_a_cluster_in_detail_has_its_rule(comorb, run):
    told = comorb("profile", run, "--cluster", 1).stdout
    assert "otherwise:" in told or "no rule: too few records" in told


@pytest.mark.parametrize(
    ("clusters", "said"),
    [
        ([], "This run has no rules; fit it again"),
        (
            [{"cluster": 1, "name": "x", "conditions": [], "in_doubt": None}],
            "no rule: too few records",
        ),
    ],
)
def test_what_has_no_rule_says_so(capsys, clusters, said):
    show_rules({"clusters": clusters, "review_below": 0.6})
    assert said in capsys.readouterr().out
