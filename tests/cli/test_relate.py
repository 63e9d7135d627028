"""relate, as a user meets it: the command, and relations as tables, rows and values."""

import json
from pathlib import Path

import pyarrow.csv
import pytest

ASKED = ("--predictors", "age,sex", "--outcome", "died", "--outcome", "length_of_stay")


def test_relate_prints_corrected_figures_beside_naive_ones(comorb, run, records):
    told = comorb("relate", run, records, *ASKED)
    assert told.exit_code == 0, told.output
    assert "died (" in told.stdout
    assert "Odds ratios against cluster 1" in told.stdout
    assert "Corrected for records that may be of another cluster" in told.stdout
    told = comorb("relate", run, records, "--outcome", "los", "--predictors", "sex", "--within")
    assert "los within clusters" in told.stdout


def test_a_regression_that_can_not_be_made_is_a_note(comorb, run, records):
    told = comorb("relate", run, records, *ASKED, "--within", "--json")
    assert json.loads(told.stdout)["outcomes"][1]["within"] is None
    assert (
        "note: los is not regressed within clusters: cluster 1 has too few records" in told.stderr
    )


def test_relate_gives_the_same_bits_in_parts_and_on_an_engine(comorb, run, records):
    words = ("relate", run, records, *ASKED, "--survival", "length_of_stay,died", "--json")
    one = comorb(*words)
    assert json.loads(one.stdout)["predictors"]["reference"] == 1
    assert comorb(*words, "--memory", "1GB").stdout == one.stdout
    assert comorb(*words, "--engine", "threads").stdout == one.stdout


def test_relate_writes_a_table(comorb, run, records):
    asked = ("--predictors", "sex", "--outcome", "died", "--outcome", "los", "--within")
    told = comorb("relate", run, records, *asked, "-o", "figures.csv", "--json")
    plain = json.loads(told.stdout)
    assert plain["file"] == "figures.csv"
    rows = pyarrow.csv.read_csv("figures.csv").to_pylist()
    first = plain["outcomes"][0]["rows"][0]
    assert rows[0]["estimate"] == first["estimate"]
    assert rows[0]["naive"] == first["naive"]
    assert {row["what"] for row in rows} == {"outcome", "within", "odds ratio"}
    again = comorb("relate", run, records, *ASKED, "-o", "figures.csv")
    assert again.exit_code == 1
    assert "figures.csv" in again.stderr


def test_a_protected_table_tells_nothing_of_few(comorb, run, records):
    words = ("relate", run, records, *ASKED, "--survival", "length_of_stay,died", "--json")
    full = json.loads(comorb(*words).stdout)
    shown = json.loads(comorb(*words, "--min-cell", 1000).stdout)
    assert shown["outcomes"] == []
    assert shown["predictors"] is None
    assert shown["survival"] is None
    assert "died is suppressed: some of its counts are below 1,000" in shown["notes"]
    assert [one["records"] for one in shown["clusters"]] == [None] * 3
    rough = json.loads(comorb(*words, "--min-cell", 2).stdout)
    stay = next(one for one in rough["outcomes"] if one["name"] == "los")
    whole = next(one for one in full["outcomes"] if one["name"] == "los")
    for few, all_digits in zip(stay["rows"], whole["rows"], strict=True):
        assert few["estimate"] == float(f"{all_digits['estimate']:.2g}")
        assert few["error"] == float(f"{all_digits['error']:.1g}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "expected an outcome, a predictor or a time to relate"),
        (("--outcome", "weight"), "got weight; name the column when you read the records"),
        (("--outcome", "died", "--reference", "9"), "(1, 2, 3), got 9"),
        (("--outcome", "died", "--method", "wls"), "expected one of bch, ml, naive, got 'wls'"),
        (("--predictors", ","), "expected names of covariates, such as age,sex"),
        (("--survival", "age"), "expected two names, such as days,died, got 'age'"),
    ],
)
def test_what_can_not_be_related_is_a_sentence(comorb, run, records, words, said):
    told = comorb("relate", run, records, *words)
    assert told.exit_code in (1, 2)
    assert said in " ".join(told.stderr.replace("│", " ").split())


def test_quiet_prints_nothing(comorb, run, records):
    told = comorb("relate", run, records, "--outcome", "length_of_stay", "-q", "-o", "t.parquet")
    assert told.stdout == ""
    assert Path("t.parquet").exists()
