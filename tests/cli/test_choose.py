"""choose, as a user meets it."""

import json
from pathlib import Path

import pytest


def test_choose_recommends_a_number_and_says_why(comorb, records):
    told = comorb("choose", records, "-k", "1:4", "--chart", "choice.svg")
    assert told.exit_code == 0
    assert " recommended: " in told.stdout
    assert "Evidence" in told.stdout
    assert told.stderr == "Chart: choice.svg\n"
    assert "<svg" in Path("choice.svg").read_text()


def test_a_quiet_choice_draws_its_chart_alone(comorb, records):
    told = comorb("choose", records, "-k", "1:2", "--chart", "choice.png", "-q")
    assert told.output == ""
    assert Path("choice.png").read_bytes().startswith(b"\x89PNG")


def test_choose_as_json(comorb, records):
    plain = json.loads(comorb("choose", records, "-k", "2:3", "--json").stdout)
    assert [row["k"] for row in plain["rows"]] == [2, 3]
    assert plain["best"] in (2, 3)
    assert plain["reason"].startswith(f"{plain['best']} groups are ")
    assert set(plain["rows"][0]) >= {"evidence", "bic", "icl", "held_out", "stability", "smallest"}


@pytest.mark.parametrize("text", ["5", "0:3", "4:2", "a:b"])
def test_a_range_must_be_two_numbers(comorb, records, text):
    told = comorb("choose", records, "-k", text)
    assert told.exit_code == 2
    assert "expected two whole numbers from 1 on, such as 2:12, got" in told.stderr
