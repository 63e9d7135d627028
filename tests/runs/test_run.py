"""The one run: from records, wherever they lie, to the same folder."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from comorb.engines import FileJournal
from comorb.errors import InputError, RecordsError, StorageError
from comorb.model import select_k
from comorb.profiles.noise import HOME_VARIABLE
from comorb.records.cohort_file import save_cohort
from comorb.records.datasets import region, tertiary
from comorb.records.layouts.layout import Layout
from comorb.records.spec import CohortSpec
from comorb.runs import assign, cohorts
from comorb.runs import run as module
from comorb.runs.cohorts import open_cohort
from comorb.runs.folder import RunFolder, load_profile
from comorb.runs.run import Request, choose_number, fit_records, measure_stability, run
from comorb.storage import fingerprint, load_model

ZOO = Path(__file__).parents[3] / "shared/data/zoo/mdcr.csv.gz"
AS_TEXT = dict.fromkeys(["patid", "icdv", "code", "dx"], pa.string())
RULES = CohortSpec(having=("585",), drop_codes=("428",))
ASKED = Request(4, RULES, title="Kidneys", repeats=0)


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    path = tmp_path_factory.mktemp("visits") / "visits.parquet"
    pq.write_table(pa.Table.from_batches(region(40_000)), path)
    return path


@pytest.fixture(scope="module")
def inside(visits, tmp_path_factory):
    """Write a run in memory."""
    path = tmp_path_factory.mktemp("runs") / "inside"
    fit_records(visits, path, ASKED)
    return path


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.Table.from_batches(list(region(1500)))


def agree(one, two):
    a, b = load_model(one / "model.comorb"), load_model(two / "model.comorb")
    assert a.mixture.key == b.mixture.key
    assert (a.codes, a.left_out, a.clusters) == (b.codes, b.left_out, b.clusters)
    assert a.data_hash == b.data_hash
    assert (one / "assignments.csv").read_bytes() == (two / "assignments.csv").read_bytes()


def test_the_files_of_a_run_agree(visits, inside):
    model, profile = load_model(inside / "model.comorb"), load_profile(inside)
    assert model.clusters == profile.cluster_names
    assert model.codes == profile.codes
    assert model.left_out == ("428",)
    numbers = RunFolder(inside).load_assignments()["cluster"].to_numpy()
    assert np.bincount(numbers)[1:].tolist() == [cluster.size for cluster in profile.clusters]
    assert model.run["records"] == len(numbers) == profile.source.records
    assert profile.source.title == model.run["title"] == "Kidneys"
    cohort = RULES.cohort(visits)
    assert model.data_hash == fingerprint(cohort.matrix, cohort.codes) == profile.source.digest


def test_assignments_hold_id_cluster_and_confidence(inside):
    table = pyarrow.csv.read_csv(inside / "assignments.csv")
    assert table.column_names == ["id", "cluster", "confidence"]
    assert min(table["confidence"].to_pylist()) > 1 / 4


@pytest.mark.parametrize("way", [{"memory": "1GB"}, {"engine": "threads"}])
def test_a_run_on_a_file_ends_where_a_run_in_memory_does(visits, inside, tmp_path, way):
    told = []
    mine = fit_records(visits, tmp_path / "run", ASKED, report=told.append, **way)
    agree(tmp_path / "run", inside)
    theirs = load_profile(inside)
    assert replace(mine, source=theirs.source).to_json() == theirs.to_json()
    assert [file.name for file in tmp_path.iterdir()] == ["run"]
    texts = [progress.text for progress in told]
    assert "Pass 3 over the records" in texts
    assert any(re.fullmatch(r"Pass \d+ over the records; about \d+ s left", text) for text in texts)
    facts = load_model(tmp_path / "run" / "model.comorb").run
    assert facts["passes_over_the_file"] > facts["passes"]
    assert facts["bytes_a_pass"] > 10_000


@pytest.mark.parametrize("kept", [True, False])
def test_a_run_tells_its_stages(kept, table, tmp_path, monkeypatch):
    monkeypatch.setattr("comorb.runs.run.is_compiled", lambda: kept)
    told, once = [], "" if kept else " (this first time, some seconds to compile)"
    fit_records(table, tmp_path / "run", Request(2, repeats=1), report=told.append)
    assert [(progress.stage, progress.text) for progress in told] == [
        ("reading", "Reading the records"),
        ("finding", f"Finding the clusters of 1,500 records{once}"),
        ("describing", "Assigning the records"),
        ("repeating", "Finding the clusters again, in 2 parts of the records"),
        ("describing", "Describing the clusters"),
        ("writing", "Writing the results"),
    ]


def test_a_run_does_without_what_is_slow_to_load():
    asked = "import sys, comorb.runs.run; print({'sklearn', 'matplotlib'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_an_interrupted_run_goes_on(visits, inside, tmp_path, monkeypatch):
    keep = FileJournal.keep

    def interrupted(self, key, sums):
        keep(self, key, sums)
        if len(self._known) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FileJournal, "keep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fit_records(visits, tmp_path / "run", ASKED, memory="1GB")
    assert [file.name for file in tmp_path.iterdir()] == [".run.unfinished"]
    monkeypatch.setattr(cohorts, "write_cohort", None)
    fit_records(visits, tmp_path / "run", ASKED, memory="1GB")
    agree(tmp_path / "run", inside)


def test_other_rules_begin_anew(visits, tmp_path):
    with pytest.raises(ValueError, match="expected the number of clusters, n_components"):
        fit_records(visits, tmp_path / "run", replace(ASKED, k=9999), memory="1GB")
    other = Request(2, CohortSpec(having=("250",)), repeats=0)
    profile = fit_records(visits, tmp_path / "run", other, memory="1GB")
    assert profile.source.lines[-1].unit == "features"
    assert "having 250" in [line.rule for line in profile.source.lines]


@pytest.mark.parametrize("memory", [None, "1GB"])
def test_what_can_not_be_read_leaves_nothing(tmp_path, memory):
    with pytest.raises(RecordsError, match="There is no file or folder"):
        fit_records(tmp_path / "absent.csv", tmp_path / "run", Request(2), memory=memory)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("memory", [None, "1GB"])
def test_a_cohort_file_is_taken_as_it_stands(visits, inside, tmp_path, memory):
    save_cohort(RULES.cohort(visits), tmp_path / "cohort.parquet")
    asked = replace(ASKED, preparation=CohortSpec())
    fit_records(tmp_path / "cohort.parquet", tmp_path / "run", asked, memory=memory)
    agree(tmp_path / "run", inside)


def test_many_records_of_a_file_are_described_by_some(visits, inside, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_DESCRIBED", 3_000)
    profile = fit_records(visits, tmp_path / "run", replace(ASKED, repeats=1), memory="1GB")
    lines = [line for line in profile.source.lines if line.unit == "records"]
    assert lines[-1].rule == f"one in {-(-lines[-1].before // 3000)}"
    assert profile.source.records == lines[-1].after <= 3_000
    agree(tmp_path / "run", inside)
    whole = load_profile(inside)
    for some, every in zip(profile.clusters, whole.clusters, strict=True):
        assert some.soft_share == pytest.approx(every.soft_share, abs=1e-3)
        assert some.share == pytest.approx(every.share, abs=0.05)
        assert some.stability is not None


def test_a_full_disk_leaves_no_results(visits, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")
        yield

    monkeypatch.setattr(assign, "assign_blocks", full)
    with pytest.raises(StorageError, match="No space left on device"):
        fit_records(visits, tmp_path / "run", ASKED, memory="1GB")
    assert [file.name for file in tmp_path.iterdir()] == [".run.unfinished"]


def test_a_run_is_not_replaced_by_accident(table, tmp_path):
    fit_records(table, tmp_path / "run", Request(2, repeats=0))
    with pytest.raises(StorageError, match="is there already and not empty"):
        fit_records(table, tmp_path / "run", Request(2, repeats=0))
    fit_records(table, tmp_path / "run", Request(3, repeats=0), force=True)
    assert load_profile(tmp_path / "run").k == 3


def test_the_number_of_clusters_is_found(table, tmp_path):
    profile = fit_records(table, tmp_path / "run", Request(repeats=0))
    with open_cohort(table) as inside, open_cohort(table, memory="1GB") as outside:
        choices = choose_number(inside), choose_number(outside)
    for choice in choices:
        assert profile.source.reason == choice.reason
        assert profile.k == choice.best


def test_stability_is_the_same_in_memory_and_on_a_file(table, tmp_path):
    made = fit_records(table, tmp_path / "run", Request(3))
    with open_cohort(table) as inside, open_cohort(table, memory="1GB") as outside:
        one, two = (measure_stability(each, Request(3)) for each in (inside, outside))
    assert one[1] == two[1]
    found = [cluster.stability for cluster in made.clusters]
    assert found == pytest.approx(one[1].jaccard, abs=1e-6)


def test_stability_of_too_few_records_is_a_note_or_an_error(tmp_path):
    few = tertiary().among(tertiary().ids[:12], "the first")
    made = fit_records(few, tmp_path / "run", Request(4))
    assert made.source.notes[-1].startswith("stability was not measured: two parts of 67% of 12")
    with pytest.raises(InputError, match="stability was not measured: two parts"):
        measure_stability(few, Request(4))


def test_what_a_fit_warns_of_is_a_note(tmp_path):
    same = tertiary().among(tertiary().ids[:40], "the first")
    same = replace(same, matrix=same.matrix[np.zeros(40, dtype=int)])
    made = run(same, Request(3, repeats=0), tmp_path / "run")
    assert any("cluster" in note for note in made.source.notes)


def test_weights_count(table, tmp_path):
    heavy = table.append_column("copies", pa.array(np.arange(1, 1501) % 3 + 1))
    asked = Request(2, CohortSpec(layout=Layout(weight="copies")), repeats=0)
    weighted = fit_records(heavy, tmp_path / "weighted", asked)
    plain = fit_records(table, tmp_path / "plain", Request(2, repeats=0))
    assert weighted.source.weight == 3000
    assert not np.allclose(weighted.weights, plain.weights)


def test_the_command_of_a_request_says_what_differs_from_the_usual():
    asked = Request(5, CohortSpec(having=("428",), drop_rare=9), outcomes=("died", "long stay"))
    assert asked.words("my visits.csv") == (
        "comorb fit 'my visits.csv' -k 5 --having 428 --drop-rare 9 "
        "--outcome died --outcome 'long stay'"
    )


def test_clusters_of_common_groups_are_no_coding_eras(tmp_path):
    if not ZOO.exists():
        pytest.skip("zoo/mdcr.csv.gz is not in ../shared/data")
    rows = pa.csv.read_csv(ZOO, convert_options=pa.csv.ConvertOptions(column_types=AS_TEXT))
    records = rows.filter(pc.equal(rows["dx"], "1")).drop_columns(["dx"])
    layout = Layout(kind="long", codes=("code",), patient="patid", version="icdv")
    asked = CohortSpec(layout=layout, level=("common",))
    profile = fit_records(records, tmp_path / "run", Request(6, asked, repeats=0))
    tenth = set(rows.filter(pc.equal(rows["icdv"], "10"))["patid"].to_pylist())
    table = pa.csv.read_csv(tmp_path / "run" / "assignments.csv").to_pydict()
    ids, clusters = (list(column) for column in list(table.values())[:2])
    assert profile.k == 6
    for cluster in set(clusters):
        own = [str(id_) in tenth for id_, one in zip(ids, clusters, strict=True) if one == cluster]
        assert 0.4 < sum(own) / len(own) < 0.55


def test_the_words_of_a_chosen_number_follow_from_the_stability_that_is_shown(table, tmp_path):
    made = fit_records(table, tmp_path / "run", Request("auto", repeats=1))
    again = [cluster for cluster in made.clusters if cluster.stability >= select_k.CONFIG.reliable]
    if len(again) == made.k:
        words = "all of them come out again"
    else:
        words = f"{len(again)} of them, with " if again else "none of them comes out again"
    assert words in made.source.reason
    saved = load_model(tmp_path / "run" / "model.comorb")
    assert saved.run["reason"] == made.source.reason
    assert saved.run["temperature"] == made.caveats.temperature


def test_without_a_place_for_a_secret_a_run_is_made_and_says_so(table, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "file"))
    made = fit_records(table, tmp_path / "run", Request(2, repeats=0))
    assert "the counts of this run can't be protected: The secret" in made.source.notes[-1]
    assert not (tmp_path / "run" / "keys.json").exists()
    with pytest.raises(InputError, match="these clusters can't be protected"):
        load_profile(tmp_path / "run").protected()
