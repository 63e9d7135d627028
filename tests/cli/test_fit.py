"""fit, as a user meets it."""

import csv
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from pyarrow.csv import write_csv

from comorb.profiles.profile import Profile
from comorb.runs.folder import load_profile
from comorb.storage import load_model
from tests.mixed import mixed_table

FILES = [
    *("assignments.csv", "keys.json", "model.comorb", "outcomes.csv", "profile.json"),
    "report.html",
]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def names(folder: str) -> list[str]:
    return sorted(file.name for file in Path(folder).iterdir())


def test_fit_prints_clusters_that_a_clinician_can_read(comorb, records):
    told = comorb("fit", records, "--having", "585", "-k", 2)
    assert told.exit_code == 0
    assert told.stdout.startswith("visits.csv: ")
    assert " records in 2 clusters, " in told.stdout
    assert "Number of clusters: 2, as asked" in told.stdout
    assert "having 585 (−" in told.stdout
    assert "In every record: Chronic kidney disease." in told.stdout
    assert "% Hypertensive kidney disease" in told.stdout
    assert "confidence" in told.stdout
    assert "Report: comorb-run/report.html" in told.stdout
    assert names("comorb-run") == FILES


def test_fit_writes_a_model_that_explains_itself(run, records):
    model = load_model(run / "model.comorb")
    assert model.mixture.n_components == 3
    assert model.system == "icd9cm"
    assert model.left_out == ("428",)
    assert "428" not in model.codes
    assert model.preparation == {"having": ["585"], "drop_codes": ["428"]}
    assert model.run["title"] == "visits.csv"
    assert model.run["records"] == len(rows(run / "assignments.csv"))
    assert model.run["converged"]
    assert len(model.data_hash) == 64


def test_the_same_records_give_the_same_files(comorb, run, records):
    again = ("fit", records, "--having", "585", "-k", 3, "--drop-codes", "428", "-o", "again", "-q")
    assert comorb(*again).exit_code == 0
    for name in ("model.comorb", "assignments.csv"):
        assert Path("again", name).read_bytes() == (run / name).read_bytes()


def test_fit_finds_out_how_many_clusters_there_are(comorb, records):
    plain = json.loads(comorb("fit", records, "--json", "--no-stability").stdout)
    assert plain["k"] > 1
    assert plain["reason"].startswith(f"{plain['k']} groups are recommended: ")
    assert load_model("comorb-run/model.comorb").run["reason"] == plain["reason"]


def test_stability_is_measured_unless_it_is_not_wanted(comorb, run, records):
    assert "stability " in comorb("profile", run).stdout
    words = ("fit", records, "-k", 2, "--no-stability")
    assert "tability" not in comorb(*words).stdout


def test_too_few_records_for_stability_are_a_note(comorb):
    comorb("simulate", "few.csv", "-n", 20, "-q")
    told = comorb("fit", "few.csv", "-k", 6)
    assert told.exit_code == 0
    assert "\nnote: stability was not measured: two parts of 67% of 20 records" in told.stderr


def test_fit_as_json(comorb, records):
    told = comorb("fit", records, "-k", 3, "--json", "--where", "age=60:", "--where", "sex=female")
    plain = json.loads(told.stdout)
    assert [rule["rule"] for rule in plain["rules"]][1:] == [
        "age from 60.0",
        "sex female",
        "at least 3 codes",
    ]
    assert sum(cluster["records"] for cluster in plain["clusters"]) == plain["records"]
    assert plain["directory"] == "comorb-run"
    assert set(plain["clusters"][0]["diagnoses"][0]) == {"code", "name", "prevalence"}


def test_an_earlier_run_is_replaced_only_by_force(comorb, records):
    assert comorb("fit", records, "-k", 2, "-q").exit_code == 0
    before = Path("comorb-run/model.comorb").read_bytes()
    told = comorb("fit", records, "-k", 3)
    assert told.exit_code == 1
    assert told.stderr == (
        "comorb: comorb-run is there already and not empty; name another directory, or force "
        "the results in it to be replaced.\n"
    )
    assert Path("comorb-run/model.comorb").read_bytes() == before
    assert comorb("fit", records, "-k", 3, "--force", "-q").exit_code == 0
    assert load_model("comorb-run/model.comorb").mixture.n_components == 3


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("-k", "0"), 2, "expected main, finest, auto or a whole number from 1 on, got '0'"),
        (("-k", "many"), 2, "expected main, finest, auto or a whole number from 1 on, got 'many'"),
        (("-k", "2", "--where", "age=old"), 2, "expected age=LOW:HIGH, sex=VALUE or"),
        (("-k", "2", "--where", "dates=2010-13-01:"), 2, "or dates=FIRST:LAST (YYYY-MM-DD)"),
        (("-k", "2", "--column", "dx=dx1"), 2, "expected ROLE=NAME with a role out of codes,"),
        (
            ("-k", "2", "--layout", "tall"),
            1,
            "Expected a layout out of wide, long, delimited",
        ),
        (("-k", "2", "--having", "888"), 1, "No record has the code '888' at the level 'category'"),
        (("-k", "2", "--weights", "mass"), 1, "mass"),
        (("-k", "2", "--system", "icd11"), 1, "icd11"),
        (("-k", "2", "--memory", "lots"), 1, "'lots' isn't an amount of memory; write it as '2GB'"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(comorb, records, words, code, message):
    told = comorb("fit", records, *words)
    assert told.exit_code == code
    assert message in " ".join(told.stderr.split())
    assert "Traceback" not in told.output
    assert told.stdout == ""
    assert names(".") == []


def test_a_missing_file_is_told_in_one_line(comorb):
    told = comorb("fit", "absent.csv", "-k", 2)
    assert told.exit_code == 1
    assert told.stderr.startswith("comorb: ")
    assert "absent.csv" in told.stderr
    assert told.stderr.count("\n") == 1


def test_outcomes_and_title_can_be_named(comorb, records):
    assert (
        comorb("fit", records, "-k", 2, "--outcome", "died", "--title", "Ward 9", "-q").exit_code
        == 0
    )
    assert "Ward 9: 2,000 records in 2 clusters" in comorb("profile", "comorb-run").stdout
    plain = json.loads(comorb("profile", "comorb-run", "--cluster", 1, "--json").stdout)
    assert [one["what"].partition(":")[0] for one in plain["patients"]] == ["died"]
    told = comorb("fit", records, "-k", 2, "--outcome", "cost", "--force")
    assert told.exit_code == 1
    assert "expected outcomes among the cohort's covariates" in told.stderr


def test_options_name_columns_and_levels(comorb, records):
    columns = "codes=dx1,dx2,dx3,dx4"
    told = comorb(
        "fit",
        records,
        "-k",
        2,
        "--column",
        columns,
        "--level",
        "chapter",
        "--at-least",
        2,
        "--json",
    )
    plain = json.loads(told.stdout)
    assert plain["level"] == "chapter"
    assert plain["codes"] < 25


def test_secrets_in_a_url_stay_out_of_the_results():
    from comorb.cli.fit import _without_secrets

    assert _without_secrets("postgresql://me:p@ss@host/db") == "postgresql://…@host/db"
    asked = "postgresql://host/db?user=me&password=p@ss&sslmode=require"
    assert _without_secrets(asked) == "postgresql://host/db?user=…&password=…&sslmode=require"
    assert _without_secrets("user=x.csv") == "user=x.csv"


def test_an_interrupted_fit_leaves_the_old_run_whole(comorb, run, records, monkeypatch):
    shutil.copytree(run, "run")

    def interrupted(_: Profile) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(Profile, "to_json", interrupted)
    told = comorb("fit", records, "-k", 2, "-o", "run", "--force")
    assert told.exit_code == 130
    assert names(".") == ["run"]
    assert all(Path("run", name).read_bytes() == (run / name).read_bytes() for name in FILES)


def test_a_place_that_can_not_be_written_is_refused_before_the_fit(comorb, records):
    Path("file").touch()
    for words in (
        ("fit", records, "-o", "file/run"),
        ("assign", "none", records, "-o", "file/a.csv"),
    ):
        told = comorb(*words)
        assert told.exit_code == 1
        assert "Nothing can be written to" in told.stderr
        assert "file; name another place." in told.stderr.replace("\n", " ")


def test_the_command_in_the_report_does_the_same_again(comorb, records):
    rules = ("--having", "585", "--where", "age=40:", "--drop-codes", "428", "--drop-rare", "4")
    layout = ("--layout", "wide", "--column", "age=age", "--unit", "visit", "--system", "icd9cm")
    options = ("-k", "3", *rules, *layout, "--outcome", "died", "--no-stability")
    assert comorb("fit", records, *options, "-o", "first").exit_code == 0
    program, *words = shlex.split(load_profile("first").source.command)
    assert program == "comorb"
    assert comorb(*words, "-o", "again", "--no-stability").exit_code == 0
    for name in ("assignments.csv", "model.comorb"):
        assert Path("again", name).read_bytes() == Path("first", name).read_bytes()
    assert load_profile("again").outcomes[0].name == "died"


def test_corrected_columns_are_in_the_command_and_change_no_bits(comorb, records):
    plain = ("-k", "2", "--having", "585", "--no-stability", "-q")
    said = ("--column", "ignored=sex", "--column", "category=died")
    assert comorb("fit", records, *plain, "-o", "plain").exit_code == 0
    assert comorb("fit", records, *plain, *said, "-o", "first").exit_code == 0
    _, *words = shlex.split(load_profile("first").source.command)
    assert {"ignored=sex", "category=died"} <= set(words)
    assert comorb(*words, "-o", "again", "--no-stability").exit_code == 0
    for name in ("assignments.csv", "model.comorb"):
        assert Path("again", name).read_bytes() == Path("first", name).read_bytes()
    assert (
        Path("plain", "assignments.csv").read_bytes()
        == Path("first", "assignments.csv").read_bytes()
    )
    names = [[one.name for one in load_profile(run).outcomes] for run in ("plain", "first")]
    assert [name for name in names[0] if name not in names[1]] == ["sex"]


@pytest.fixture
def mixed_records(tmp_path):
    write_csv(mixed_table()[0], tmp_path / "mixed.csv")
    return tmp_path / "mixed.csv"


def test_fit_by_features_says_what_sets_the_clusters_apart(comorb, mixed_records):
    asked = ("fit", mixed_records, "--at-least", 1, "-k", 3, "--no-stability", "-o", "mixed")
    features = ("--feature", "age", "--feature", "sex", "--feature", "visits=count")
    told = comorb(*asked, *features)
    assert told.exit_code == 0
    apart = re.search(r"What sets the clusters apart: codes \d+%, age \d+%, sex \d+%", told.stdout)
    assert apart
    assert re.search(r"Missing: age \d+\.\d%, sex \d+\.\d%, visits \d+\.\d%\.", told.stdout)
    assert "note: the feature 'age' is of the kind number, as recognised" in told.stderr
    plain = json.loads(comorb("profile", "mixed", "--json").stdout)
    assert sum(plain["influence"].values()) == pytest.approx(1, abs=0.01)
    assert [one["kind"] for one in plain["features"]] == ["number", "category", "count"]
    one = json.loads(comorb("profile", "mixed", "--cluster", 1, "--json").stdout)
    assert {"age: mean", "sex: F"} <= {row["what"] for row in one["patients"]}
    assert set(one["missing"]) == {"age", "sex", "visits"}
    shared = comorb("profile", "mixed", "--protected", "--json")
    assert json.loads(shared.stdout)["features"]
    saved = load_model("mixed/model.comorb")
    assert [one["name"] for one in saved.preparation["features"]] == ["age", "sex", "visits"]
    assert comorb("assign", "mixed", mixed_records, "-o", "again.csv").exit_code == 0
    assert Path("again.csv").read_bytes() == Path("mixed/assignments.csv").read_bytes()
    assert comorb("report", "mixed", "-o", "mixed.pdf").exit_code == 0


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        ("age=colour", "Expected a feature as NAME, NAME=KIND"),
        ("agee", "No column 'agee' is there to be a feature; the nearest are 'age'"),
        ("sex=number", "The column 'sex' holds texts, and the kind 'number' needs numbers"),
    ],
)
def test_a_feature_that_can_not_be_one_is_one_line(comorb, mixed_records, feature, message):
    told = comorb("fit", mixed_records, "--feature", feature)
    assert told.exit_code != 0
    assert message in told.stderr
