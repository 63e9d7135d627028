"""Run: from records to a folder."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from comorb.errors import StorageError
from comorb.insight.runs.run import Run, run, sweep
from comorb.records.datasets import region
from comorb.records.layouts.layout import Layout
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
    run(table, 2, repeats=1, tell=told.append)
    assert told == [
        "Reading the records",
        "Finding the clusters of 1,500 records",
        "Finding the clusters again, in 2 parts of the records",
        "Describing the clusters",
    ]


def test_stability_is_in_the_profile(made, table):
    found = [cluster.stability for cluster in made.profile.clusters]
    assert found == pytest.approx(made.stability.jaccard, abs=1e-6)
    assert run(table, 2, repeats=0).stability is None


def test_the_number_of_clusters_is_found(table):
    found, swept = run(table, repeats=0), sweep(table)
    assert found.profile.source.reason == found.model.run["reason"] == swept.reason
    assert found.profile.k == swept.best


def test_weights_count(table):
    heavy = table.append_column("copies", pa.array(np.arange(1, 1501) % 3 + 1))
    weighted = run(heavy, 2, Preparation(layout=Layout(weight="copies")), repeats=0)
    assert weighted.profile.source.weight == 3000
    assert not np.allclose(
        weighted.model.mixture.weights, run(table, 2, repeats=0).model.mixture.weights
    )


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
