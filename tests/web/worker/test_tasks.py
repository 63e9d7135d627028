"""Tasks, in this process: what a message asks for is done, and small counts stay hidden."""

import pytest

from comorb.errors import RecordsError
from comorb.insight.runs.folder import RunFolder, load_profile
from comorb.insight.runs.progress import Progress
from comorb.web.worker import messages
from comorb.web.worker.tasks import do

DATA = messages.Data("tertiary", "builtin", "", {}, "Tertiary")


def silent(_):
    return None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    told = []
    asked = messages.MakeRun(DATA, {"having": ["585"]}, 3, "Kidneys", str(path), 11)
    made = do(asked, told.append)
    stages = [one.stage for one in told if isinstance(one, Progress)]
    assert stages[0] == "reading"
    assert {"finding", "describing", "writing"} <= set(stages)
    assert messages.Counted(made["records"]) in told
    return path, asked


def test_a_run_is_made_and_shown_without_small_counts(folder):
    path, _ = folder
    profile = load_profile(path)
    shown = load_profile(RunFolder(path).shown(11))
    assert (profile.min_cell, shown.min_cell) == (0, 11)
    assert profile.source.command == ""


def test_stability_is_measured_for_the_model_that_is_there(folder):
    path, asked = folder
    measured = do(messages.MeasureStability(asked), silent)
    assert len(measured) == 3
    do(messages.NoteStability(str(path), 11, measured), silent)
    assert [one.stability for one in load_profile(path).clusters] == pytest.approx(measured)


def test_a_cohort_that_is_too_small_is_refused(tmp_path):
    rules = {"having": ["585"], "age": [18, 19]}
    small = messages.MakeRun(DATA, rules, 2, "Few", str(tmp_path / "run"), 100_000)
    with pytest.raises(RecordsError, match="too few records: 100000 is the least"):
        do(messages.MakeRun(DATA, {}, 2, "Few", str(tmp_path / "run"), 100_000), silent)
    with pytest.raises(RecordsError):
        do(small, silent)
    assert not (tmp_path / "run").exists()


def test_the_size_of_a_cohort_is_counted():
    counted = do(messages.CountCohort(DATA, {"having": ["585"]}, 11), silent)
    assert 0 < counted["records"] < 16_311
