"""Saved runs: read, renamed, reported and compared."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from comorb.errors import InputError, StorageError
from comorb.records.datasets import region
from comorb.runs.folder import load_profile, rename
from comorb.runs.report import ReportRequest, report_run
from comorb.runs.run import Request, fit_records
from comorb.storage import load_model


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    table = pa.Table.from_batches(list(region(1000)))
    for k in (2, 3):
        fit_records(table, folder / str(k), Request(k, title=f"{k} clusters", repeats=0))
    return folder


def test_a_profile_is_read_from_the_folder_or_the_file(runs):
    one, two = load_profile(runs / "2"), load_profile(runs / "2" / "profile.json")
    assert one.to_json() == two.to_json()
    assert one.source.title == "2 clusters"


def test_a_profile_that_is_none_is_named(tmp_path):
    (tmp_path / "profile.json").write_text("{}")
    with pytest.raises(StorageError, match=r"profile\.json: expected a document of format"):
        load_profile(tmp_path)
    (tmp_path / "profile.json").write_bytes(b"\xff")
    with pytest.raises(StorageError, match=r"profile\.json can't be read as a profile; give the"):
        load_profile(tmp_path)
    with pytest.raises(
        StorageError, match=r"There is no profile .*absent; give the folder of a run"
    ):
        load_profile(tmp_path / "absent")


def test_a_new_name_is_in_every_file(runs):
    assert rename(runs / "3", {2: "Hearts"}).clusters[1].name == "Hearts"
    assert load_profile(runs / "3").clusters[1].name == "Hearts"
    assert load_model(runs / "3" / "model.comorb").clusters[1] == "Hearts"
    assert "Hearts" in (runs / "3" / "report.html").read_text()
    with pytest.raises(InputError, match="expected one of the clusters 1, 2, 3, got 9"):
        rename(runs / "3", {9: "Nowhere"})


def test_a_report_hides_small_counts_on_request(runs, tmp_path):
    report_run(runs / "2", tmp_path / "all.html", ReportRequest())
    report_run(runs / "2", tmp_path / "shared.html", ReportRequest(min_cell=11))
    assert '"min_cell":11' in (tmp_path / "shared.html").read_text()
    assert '"min_cell":0' in (tmp_path / "all.html").read_text()
    with pytest.raises(StorageError, match=r"all\.html is there already; name another file"):
        report_run(runs / "2", tmp_path / "all.html", ReportRequest())


def test_a_folder_with_parts_of_two_runs_is_refused(runs, tmp_path):
    for name, said in (
        ("model.comorb", "is of another run than model.comorb beside it; fit again"),
        ("keys.json", "not the keys of this profile"),
    ):
        mixed = tmp_path / name
        shutil.copytree(runs / "2", mixed)
        shutil.copy(runs / "3" / name, mixed)
        with pytest.raises(StorageError, match=said):
            load_profile(mixed)
