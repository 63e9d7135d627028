"""Large data: read in parts and kept in a file, to the same records, codes and bits."""

import pytest

from comorb.records.cohort_file import CohortFile
from comorb.records.datasets import region
from comorb.records.export import export
from comorb.runs.folder import RunFolder
from comorb.runs.spec import RunSpec
from comorb.storage import load_model
from comorb.web.worker import cohorts, tasks
from comorb.web.worker.requests import Data, RunRequest

RULES = [
    {},
    {"having": ["428"], "age": [60, None], "drop_codes": ["401"]},
    {"without": ["250"], "sex": ["female"], "at_least": 4, "features": ["age"]},
]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "visits.parquet"
    export(region(3000), path)
    return path


def data_in(folder, source) -> Data:
    folder.mkdir(exist_ok=True)
    return Data(str(source), "mounted", str(folder), {}, "visits")


@pytest.fixture
def outside(monkeypatch):
    monkeypatch.setattr(cohorts, "LARGE", 1000)


def made(data, rules, folder, k=3) -> RunRequest:
    return RunRequest(data, rules, RunSpec(k, title="R"), str(folder / "run"), str(folder), 11)


@pytest.mark.parametrize("rules", RULES)
def test_a_cohort_in_a_file_is_the_one_in_memory(source, tmp_path, rules, monkeypatch):
    inside = cohorts.chosen_cohort(made(data_in(tmp_path / "a", source), rules, tmp_path))
    monkeypatch.setattr(cohorts, "LARGE", 1000)
    chosen = cohorts.chosen_cohort(made(data_in(tmp_path / "b", source), rules, tmp_path))
    assert isinstance(chosen, CohortFile)
    assert chosen.digest() == inside.digest()
    assert (chosen.codes, len(chosen)) == (inside.codes, len(inside))
    assert chosen.load().ids.equals(inside.ids)
    assert chosen.ledger.adds_up
    assert chosen.ledger.chain("records") == inside.ledger.chain("records")
    assert chosen.ledger.notes == inside.ledger.notes
    assert cohorts.outcomes(data_in(tmp_path / "b", source), rules, chosen) == cohorts.outcomes(
        data_in(tmp_path / "a", source), rules, inside
    )


def test_what_is_understood_does_not_depend_on_the_size(source, tmp_path, monkeypatch):
    one = cohorts.describe_data(data_in(tmp_path / "a", source), 11)
    monkeypatch.setattr(cohorts, "LARGE", 1000)
    two = cohorts.describe_data(data_in(tmp_path / "b", source), 11)
    assert one == two
    counted = cohorts.count_cohort(data_in(tmp_path / "b", source), {"having": ["428"]})
    assert counted["records"] == sum(
        each["records"] for each in one["common"] if each["code"] == "428"
    )


def test_a_run_on_a_file_has_the_bits_of_one_in_memory(source, tmp_path, monkeypatch):
    rules, keys, told = {"having": ["428"]}, [], []
    for name, most in (("a", 10**6), ("b", 1000)):
        monkeypatch.setattr(cohorts, "LARGE", most)
        (tmp_path / name).mkdir()
        run = made(data_in(tmp_path / name / "data", source), rules, tmp_path / name)
        tasks.make_run(run, told.append)
        keys.append(load_model(RunFolder(run.folder).model).mixture.key)
        assert cohorts.count_map(run, "cluster", 0)["squares"]
    assert keys[0] == keys[1]
    assert any("Pass" in getattr(one, "text", "") for one in told)


@pytest.mark.usefixtures("outside")
def test_the_latest_cohorts_alone_are_kept(source, tmp_path):
    data = data_in(tmp_path / "data", source)
    for age in range(50, 56):
        cohorts.chosen_cohort(made(data, {"age": [age, None]}, tmp_path))
    assert len(list((tmp_path / "data").glob("left-*.parquet"))) == 3


@pytest.mark.usefixtures("outside")
def test_too_few_of_many_are_refused_as_ever(source, tmp_path):
    data = data_in(tmp_path / "data", source)
    with pytest.raises(cohorts.RecordsError, match="too few records"):
        cohorts.chosen_cohort(made(data, {"age": [125, None]}, tmp_path))


def test_what_looks_large(tmp_path, source, monkeypatch):
    assert not cohorts.looks_large(str(source))
    assert not cohorts.looks_large(str(tmp_path))
    monkeypatch.setattr(cohorts, "LARGE", 2999)
    assert cohorts.looks_large(str(source))
    (tmp_path / "a.csv").write_text("id\n")
    assert not cohorts.looks_large(str(tmp_path / "a.csv"))
    monkeypatch.setattr(cohorts, "BYTES", 2)
    assert cohorts.looks_large(str(tmp_path / "a.csv"))
