"""Run: from records to a folder."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from comorb.errors import StorageError
from comorb.insight.run import Run, load_profile, run
from comorb.records.datasets import region
from comorb.records.layouts import Layout
from comorb.records.preparation import Preparation
from comorb.storage import fingerprint


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.Table.from_batches(list(region(1500)))


@pytest.fixture(scope="module")
def made(table) -> Run:
    return run(table, 3, Preparation(having=("428",), drop_rare=5), title="Region")


def test_the_parts_of_a_run_agree(made):
    model, profile = made.model, made.profile
    assert model.clusters == tuple(cluster.name for cluster in profile.clusters)
    assert model.codes == profile.codes
    sizes = np.bincount(made.assigned.assignment.labels)
    assert sizes.tolist() == [cluster.size for cluster in profile.clusters]
    assert model.run["records"] == sizes.sum() == len(made.assigned.ids)
    assert profile.source.title == model.run["title"] == "Region"


def test_the_hash_is_that_of_the_prepared_cohort(made, table):
    cohort = Preparation(having=("428",), drop_rare=5).cohort(table)
    assert made.model.data_hash == fingerprint(cohort.matrix, cohort.codes)


def test_a_run_tells_what_it_does(table):
    told: list[str] = []
    run(table, 2, tell=told.append)
    assert told == [
        "Reading the records",
        "Finding 2 clusters of 1,500 records",
        "Describing the clusters",
    ]


def test_weights_count(table):
    heavy = table.append_column("copies", pa.array(np.arange(1, 1501) % 3 + 1))
    weighted = run(heavy, 2, Preparation(layout=Layout(weight="copies")))
    assert weighted.profile.source.weight == 3000
    assert not np.allclose(weighted.model.mixture.weights, run(table, 2).model.mixture.weights)


def test_a_saved_profile_comes_back(made, tmp_path):
    made.save(tmp_path / "run")
    assert load_profile(tmp_path / "run").to_json() == made.profile.to_json()


def test_assignments_hold_id_cluster_and_confidence(made, tmp_path):
    made.save(tmp_path)
    table = pyarrow.csv.read_csv(tmp_path / "assignments.csv")
    assert table.column_names == ["id", "cluster", "confidence"]
    assert table["cluster"].to_pylist() == (made.assigned.assignment.labels + 1).tolist()
    assert min(table["confidence"].to_pylist()) > 1 / 3


def test_a_run_is_not_replaced_by_accident(made, tmp_path):
    made.save(tmp_path)
    with pytest.raises(StorageError, match="is there already and not empty"):
        made.save(tmp_path)
    made.save(tmp_path, force=True)


def test_a_profile_that_is_none_is_named(tmp_path):
    (tmp_path / "profile.json").write_text("{}")
    with pytest.raises(StorageError, match=r"profile\.json: expected a document of format"):
        load_profile(tmp_path)
