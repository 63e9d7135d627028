"""Files that an earlier version wrote open in this one: a folder of tests/data for each version.

The release that is named made them from ``visits.csv`` of its folder; they are never made again.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.csv as pc
import pytest
from fastapi.testclient import TestClient

from comorb.records.cohort_file import load_cohort
from comorb.records.definitions import read_definition
from comorb.records.read import read_records
from comorb.runs.assign import assign_records
from comorb.runs.folder import load_profile
from comorb.storage import load_model
from comorb.web.server.app import Settings, create_app

VERSIONS = sorted((Path(__file__).parent / "data").iterdir())


@pytest.fixture(params=VERSIONS, ids=lambda folder: folder.name)
def old(request, tmp_path) -> Path:
    """Return a copy of the files of a version."""
    return Path(shutil.copytree(request.param, tmp_path / "old"))


def test_a_model_and_its_run_assign_the_records_as_they_did(old, tmp_path):
    model = load_model(old / "run" / "model.comorb")
    assert model.version == "0.1.0"
    assert len(model.clusters) == 3
    assign_records(old / "run", old / "visits.csv", tmp_path / "again.csv")
    then, now = (
        pc.read_csv(path) for path in (old / "run/assignments.csv", tmp_path / "again.csv")
    )
    assert now.select(["id", "cluster"]) == then.select(["id", "cluster"])


def test_a_profile_has_all_of_its_parts_and_is_protected(old):
    made = load_profile(old / "run")
    assert len(made.clusters) == 3
    assert all((made.features, made.outcomes, made.burden, made.slices))
    assert sum(cluster.size for cluster in made.clusters) == 90
    counts = [cluster.size for cluster in made.protected(11).clusters]
    assert counts != [cluster.size for cluster in made.clusters]


def test_a_cohort_file_is_the_cohort_that_is_read_today(old):
    saved, read = (
        load_cohort(old / "cohort.parquet"),
        read_records(old / "visits.csv", system="icd9cm"),
    )
    assert (saved.codes, saved.names) == (read.codes, read.names)
    assert saved.ids.equals(read.ids)
    assert (saved.matrix != read.matrix).nnz == 0
    assert saved.covariates.column_names == read.covariates.column_names


def test_a_definition_has_its_rules(old):
    definition = read_definition(old / "definition.json")
    assert definition.name == "Adults"
    assert definition.rules == {
        "having": ["428"],
        "age": [18.0, None],
        "level": ["group"],
        "features": ["age"],
    }


def test_a_workspace_has_its_users_data_runs_and_notes(old):
    token = (old / "token.txt").read_text("utf-8").strip()
    app = create_app(Settings(old / "workspace"))
    signed_in = {"authorization": f"Bearer {token}"}
    with TestClient(app, base_url="http://127.0.0.1", headers=signed_in) as client:
        (data,) = [row for row in client.get("/api/v1/data").json() if row["kind"] == "upload"]
        (run,) = client.get("/api/v1/runs").json()
        assert (data["title"], run["state"], run["data"]) == ("visits", "done", data["id"])
        page = client.get(f"/api/v1/runs/{run['id']}/profile").json()
        assert page["clusters"][0]["owner"] == "Dr. Rivera"
        rows = client.get(f"/api/v1/runs/{run['id']}/download/assignments.csv?full=true")
        assert rows.status_code == 200
        assert len(rows.text.splitlines()) == 91
        (kept,) = client.get("/api/v1/definitions").json()
        assert (kept["name"], kept["rules"]["age"]) == ("Adults", [18.0, None])
        assert "keep a definition" in {act["action"] for act in app.state.store.acts()}
        assert app.state.store.broken_act() is None
