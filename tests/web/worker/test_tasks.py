"""Tasks, in this process: what each returns and writes, in full or protected."""

import stat
from dataclasses import replace
from functools import partial

import pytest
from pyarrow.csv import write_csv

from comorb.errors import InputError, RecordsError
from comorb.profiles.noise import HOME_VARIABLE, SECRET_FILE, own_secret
from comorb.profiles.profile import Profile
from comorb.runs.folder import load_profile
from comorb.runs.progress import Progress
from comorb.runs.spec import RunSpec
from comorb.views.findings import page_json
from comorb.web.worker import cohorts, tasks
from comorb.web.worker.downloads import document, write_document
from comorb.web.worker.requests import Counted, Data, RunRequest
from comorb.web.worker.tasks import make_run
from tests.mixed import mixed_table

DATA = Data("tertiary", "builtin", "", {}, "Tertiary")


def silent(_):
    return None


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return str(tmp_path_factory.mktemp("workspace"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, workspace):
    path = tmp_path_factory.mktemp("runs") / "run"
    told = []
    asked = RunRequest(
        DATA, {"having": ["585"]}, RunSpec(3, title="Kidneys"), str(path), workspace, 11
    )
    made = make_run(asked, told.append)
    stages = [one.stage for one in told if isinstance(one, Progress)]
    assert stages[0] == "reading"
    assert {"finding", "describing", "writing"} <= set(stages)
    assert Counted(made["records"]) in told
    assert made["protected_records"] == shown(path).source.records
    return path, asked


def shown(folder, least: int = 11) -> Profile:
    return Profile.from_json(document(folder, least).read_text())


def test_a_run_has_a_full_and_a_protected_document_without_keys(folder):
    path, _ = folder
    profile = load_profile(path)
    assert profile.cells is not None
    assert [shown(path, least).min_cell for least in (0, 11)] == [0, 11]
    assert shown(path, 0).cells is None
    # The document is written for a reader, so its messages are texts.
    assert shown(path).to_json() == Profile.from_json(page_json(profile.protected(11))).to_json()
    assert profile.source.command == ""


def test_documents_of_another_least_are_made_when_asked_for_and_go_with_a_change(folder):
    path, _ = folder
    write_document(str(path), 20, "en")
    assert shown(path, 20).min_cell == 20
    tasks.name_clusters(str(path), 11, {1: "Kidneys"})
    assert not document(path, 20).exists()
    assert [shown(path, least).cluster_names[0] for least in (0, 11)] == ["Kidneys"] * 2


def test_stability_is_measured_for_the_model_that_is_there(folder):
    path, asked = folder
    measured = tasks.measure_stability(asked)
    assert len(measured) == 3
    tasks.note_stability(str(path), 11, measured)
    assert [one.stability for one in load_profile(path).clusters] == pytest.approx(measured)
    assert [one.stability for one in shown(path).clusters] == [round(x, 2) for x in measured]


def test_a_run_without_keys_is_shown_in_full_alone(folder, tmp_path):
    old = tmp_path / "profile.json"
    old.write_text(load_profile(folder[0]).to_json())
    tasks.note_stability(str(tmp_path), 11, (1.0, 1.0, 1.0))
    assert shown(tmp_path, 0).clusters[0].stability == 1
    assert not document(tmp_path, 11).exists()
    for task in (
        partial(write_document, str(tmp_path), 11, "en"),
        partial(tasks.explain_texts, str(tmp_path), 11, ["585"]),
        partial(tasks.rank_diagnoses, str(tmp_path), 11, 0.6, 5),
    ):
        with pytest.raises(InputError, match=r"can't be protected: .* fit them again"):
            task()


@pytest.mark.parametrize("rules", [{}, {"having": ["585"], "age": [1, 2]}])
def test_too_few_records_and_none_are_refused_in_the_same_words(tmp_path, workspace, rules):
    folder = str(tmp_path / "run")
    with pytest.raises(RecordsError, match=r"^These are too few records; the least .* 100,000\.$"):
        make_run(
            RunRequest(DATA, rules, RunSpec(2, title="Few"), folder, workspace, 100_000),
            silent,
        )
    assert not (tmp_path / "run").exists()


def test_too_few_records_are_refused_before_codes_are_left_out(tmp_path, workspace):
    codes = cohorts.whole_cohort(DATA, {}).codes
    rules = {"drop_codes": list(codes)}
    folder = str(tmp_path / "run")
    with pytest.raises(RecordsError, match="too few records"):
        make_run(
            RunRequest(DATA, rules, RunSpec(2, title="Few"), folder, workspace, 100_000),
            silent,
        )
    with pytest.raises(RecordsError, match="No code is left"):
        make_run(RunRequest(DATA, rules, RunSpec(2, title="None"), folder, workspace, 11), silent)


def test_records_are_counted_exactly_down_to_none():
    counted = cohorts.count_cohort(DATA, {"having": ["585"]})
    assert 0 < counted["records"] < 16_311
    left = [line["after"] for line in counted["lines"] if line["unit"] == "records"]
    assert left[-1] == counted["records"]
    none = cohorts.count_cohort(DATA, {"age": [1, 2]})
    assert none == {"records": 0, "features": 0, "lines": []}


def test_a_protected_count_is_rough_and_the_same_again(workspace):
    def count(rules, least=11):
        return cohorts.count_protected(DATA, rules, workspace, least)

    exact = cohorts.count_cohort(DATA, {"having": ["585"]})["records"]
    told = count({"having": ["585"]})
    assert told == count({"having": ["585"], "drop_codes": ["250"], "drop_rare": 9999})
    assert told["lines"] == []
    assert told["records"] % 10 == 0
    assert told["records"] == pytest.approx(exact, rel=0.1)
    few = {"records": None, "features": None, "lines": []}
    assert count({"age": [1, 2]}) == few
    for code, least in (("zzz", 11), ("585", exact + 1)):
        with pytest.raises(RecordsError, match=f"the code '{code}', under {least:,} or none"):
            count({"age": [1, 2], "without": [code]}, least)


def test_the_workspace_keeps_one_s_own_secret_from_the_first_time_on(tmp_path, monkeypatch):
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    cohorts.secret_of.cache_clear()
    kept = cohorts.secret_of(str(tmp_path / "here"))
    assert kept == own_secret()
    assert stat.S_IMODE((tmp_path / "here" / SECRET_FILE).stat().st_mode) == 0o600
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "other"))
    cohorts.secret_of.cache_clear()
    assert cohorts.secret_of(str(tmp_path / "here")) == kept
    assert not (tmp_path / "other").exists()


def test_a_home_that_keeps_no_secret_leaves_it_to_the_workspace(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "file" / "home"))
    cohorts.secret_of.cache_clear()
    kept = cohorts.secret_of(str(tmp_path / "here"))
    cohorts.secret_of.cache_clear()
    assert cohorts.secret_of(str(tmp_path / "here")) == kept


@pytest.fixture(scope="module")
def featured(tmp_path_factory, workspace):
    """A run of records with features, and what asked for it."""
    place = tmp_path_factory.mktemp("features")
    write_csv(mixed_table()[0], place / "visits.csv")
    data = Data(str(place / "visits.csv"), "upload", str(place), {}, "visits")
    rules = {"at_least": 1, "features": ["age", "sex", "visits=count", "hba1c"]}
    asked = RunRequest(data, rules, RunSpec(3, title="Visits"), str(place / "run"), workspace, 11)
    make_run(asked, silent)
    return place / "run", asked


def test_a_run_by_features_says_so_in_its_command_and_shows_them(featured):
    path, _ = featured
    profile = load_profile(path)
    assert [one.name for one in profile.features] == ["age", "sex", "visits", "hba1c"]
    assert [outcome.name for outcome in profile.outcomes] == ["died"]
    assert profile.source.command == (
        "comorb fit visits.csv -k 3 --feature age --feature sex --feature visits=count "
        "--feature hba1c --at-least 1"
    )
    told = shown(path)
    assert [one.name for one in told.features] == ["age", "sex", "visits", "hba1c"]
    assert all(one.model is None for one in told.features)


@pytest.mark.parametrize("least", [0, 11])
def test_a_record_is_explained_by_its_features(featured, least):
    path, asked = featured
    told = tasks.explain_texts(str(path), least, ["585", "age=85", "sex=female"])
    assert [one["code"] for one in told["codes"]] == ["585", "age=85", "sex=female"]
    assert [one["label"] for one in told["codes"]] == ["Chronic kidney disease", "", ""]
    assert sum(told["posterior"]) == pytest.approx(1)
    whole = tasks.explain_record(asked, "r0000")
    assert {"age", "sex", "visits", "hba1c"} >= {
        one["code"].partition("=")[0] for one in whole["codes"] if "=" in one["code"]
    }
    assert any("=" in one["code"] for one in whole["codes"])


def test_a_run_by_features_is_measured_and_merged(featured, tmp_path):
    path, asked = featured
    assert min(tasks.measure_stability(asked)) > 0.7
    spec = replace(asked.spec, merge=(1, 2))
    merge = replace(asked, folder=str(tmp_path / "merged"), parent=str(path), spec=spec)
    assert make_run(merge, silent)["clusters"] == 2
    assert load_profile(tmp_path / "merged").features


def test_a_feature_that_can_not_be_one_is_refused(featured):
    _, asked = featured
    for features, message in (
        (["nothing"], "No column 'nothing' is there to be a feature"),
        (["age=colour"], "Expected a feature as NAME, NAME=KIND"),
        (["sex=count"], "The column 'sex' holds texts"),
    ):
        with pytest.raises(RecordsError, match=message):
            make_run(replace(asked, rules=asked.rules | {"features": features}), silent)


def test_items_with_gaps_are_understood_and_clustered(tmp_path, workspace):
    levels = ["never", "at times", "often"]
    rows = [f"{levels[row % 3]},{levels[row % 3 if row % 7 else 1]},{row % 4}" for row in range(90)]
    (tmp_path / "items.csv").write_text("\n".join(["smokes,drinks,walks", *rows]))
    data = Data(str(tmp_path / "items.csv"), "upload", str(tmp_path), {}, "items")
    about = cohorts.describe_data(data, 11)
    assert (about["features"], about["items"]) == (0, ["smokes", "drinks", "walks"])
    asked = RunRequest(data, {}, RunSpec(3, title="Items"), str(tmp_path / "run"), workspace, 11)
    assert make_run(asked, silent)["clusters"] == 3
