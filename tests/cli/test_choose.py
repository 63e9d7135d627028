"""choose, as a user meets it."""

import json
from pathlib import Path

import pytest

from comorb.cli.render import show_choice


def test_choose_recommends_a_number_and_says_why(comorb, records):
    told = comorb("choose", records, "-k", "1:4", "--chart", "choice.svg")
    assert told.exit_code == 0
    assert " recommended: " in told.stdout
    assert "Evidence" in told.stdout
    assert "…" not in told.stdout
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
    assert all(0 <= row["in_reliable"] <= 1 for row in plain["rows"])
    assert [split["groups"] for split in plain["splits"]] == [2]


def test_splits_are_told_up_to_the_number_chosen_and_beyond_where_they_hold(capsys):
    row = {"k": 2, "evidence": -1.0, "bic": 1.0, "icl": 1.0, "held_out": -1.0, "stability": 1.0,
           "in_reliable": 0.9, "smallest": 40.0}  # fmt: skip
    splits = [
        {"groups": 1, "name": "All", "into": ("Heart", "Lung"), "reliably": False, "breadth": 9.2},
        {"groups": 2, "name": "Lung", "into": ("Asthma", "COPD"), "reliably": True, "breadth": 1.1},
        {"groups": 3, "name": "Heart", "into": ("Valves", "x"), "reliably": False, "breadth": 3.0},
    ]
    show_choice({"rows": [row], "best": 2, "reason": "Because.", "splits": splits})
    told = " ".join(capsys.readouterr().out.split())
    assert "1 to 2: All → Heart | Lung (not reliable, held apart by 9 codes)" in told
    assert "2 to 3: Lung → Asthma | COPD (both come out again, held apart by 1 code)" in told
    assert "Valves" not in told
    assert "90%" in told


@pytest.mark.parametrize("text", ["5", "0:3", "4:2", "a:b"])
def test_a_range_must_be_two_numbers(comorb, records, text):
    told = comorb("choose", records, "-k", text)
    assert told.exit_code == 2
    assert "expected two whole numbers from 1 on, such as 2:12, got" in told.stderr


def test_latent_classes_are_printed_and_written(comorb, records):
    words = ("choose", records, "--having", "585", "-k", "1:2", "--lca", "-o", "table.xlsx")
    told = comorb(*words, "--json")
    plain = json.loads(told.stdout)
    assert plain["files"] == ["table.xlsx"]
    assert plain["lca"]["fit"]["k"] == [1, 2]
    assert plain["methods"].startswith("Latent class models with 1 to 2 classes")
    told = comorb(*words, "--force", "--blrt", 3, "--minutes", 0)
    assert told.exit_code == 0
    assert "aBIC" in told.stdout
    assert "Latent class models with 1 to 2 classes" in told.stdout


def test_what_goes_with_latent_classes_alone(comorb, records):
    told = comorb("choose", records, "-k", "1:2", "--blrt", 3)
    assert told.exit_code == 2
    assert "--blrt and --output go with --lca" in told.stderr
