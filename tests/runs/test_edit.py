"""By hand: clusters merged, records moved."""

import csv
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from comorb.errors import InputError, RecordsError
from comorb.model.mixture import Mixture
from comorb.profiles.assignment import assign
from comorb.records.datasets import tertiary
from comorb.runs.edit import (
    Revision,
    load_moves,
    merge_components,
    merge_numbers,
    row_of,
    split_component,
)
from comorb.runs.folder import RunFolder, load_profile, rename
from comorb.runs.run import Request, run
from comorb.storage import load_model


@pytest.fixture(scope="module")
def before(tmp_path_factory) -> RunFolder:
    folder = RunFolder(tmp_path_factory.mktemp("runs") / "before")
    run(tertiary(), Request(4, repeats=0), folder.path)
    rename(folder.path, {2: "Stays"})
    return folder


def numbers(folder: RunFolder) -> np.ndarray:
    return folder.load_assignments()["cluster"].to_numpy()


def test_the_first_of_two_numbers_stays_and_so_do_the_others():
    assert merge_numbers((1, 2, 3, 4), (4, 2)) == (1, 2, 3, 2)
    assert merge_numbers((1, 2, 3, 2), (1, 3)) == (1, 2, 1, 2)


@pytest.mark.parametrize("pair", [(1, 1), (0, 4), (2, 5)])
def test_what_are_not_two_clusters_is_refused(pair):
    with pytest.raises(InputError, match="expected two of the clusters 1, 2, 3, 4, got"):
        merge_numbers((1, 2, 3, 4), pair)


def test_the_merged_cluster_gets_the_records_of_both(before, tmp_path):
    made, groups = Revision(before, tertiary()).merge((1, 3), tmp_path / "after")
    after = RunFolder(tmp_path / "after")
    stayed = np.isin(numbers(before), [1, 3])
    assert np.mean(numbers(after)[stayed] == 1) == 1.0
    assert np.mean(numbers(after)[~stayed] != 1) > 0.97
    assert groups == (1, 2, 1, 4)
    assert made.numbers == load_model(after.model).numbers == (1, 2, 4)
    assert made.clusters[1].name == load_model(after.model).clusters[1] == "Stays"
    assert "merged by hand" in made.source.reason
    soft = [cluster.soft_size for cluster in load_profile(before.path).clusters]
    assert made.clusters[0].soft_size == pytest.approx(soft[0] + soft[2], abs=0.01)


def test_merging_again_starts_from_the_fitted_model(before, tmp_path):
    _, groups = Revision(before, tertiary()).merge((1, 3), tmp_path / "one")
    one = RunFolder(tmp_path / "one")
    _, groups = Revision(one, tertiary(), groups).merge((1, 2), tmp_path / "two")
    assert groups == (1, 1, 1, 4)
    fitted = load_model(before.model).mixture
    assert load_model(RunFolder(tmp_path / "two").base).mixture.key == fitted.key
    expected = assign(fitted, tertiary(), groups=groups).labels
    assert numbers(RunFolder(tmp_path / "two")).tolist() == np.array([1, 4])[expected].tolist()


def test_the_mean_of_the_merged_clusters_is_weighted(before):
    mixture = load_model(before.model).mixture
    after = merge_components(mixture, (1, 2, 1, 4))
    share = mixture.weights[[0, 2]] / mixture.weights[[0, 2]].sum()
    assert after.means[0] == pytest.approx(share @ mixture.means[[0, 2]])
    assert after.means[2] == pytest.approx(mixture.means[3])
    assert after.weights.sum() == pytest.approx(1)


def test_a_moved_record_is_in_its_new_cluster_and_the_others_stay(before, tmp_path):
    cohort = tertiary()
    record = cohort.ids[7].as_py()
    number = 1 if numbers(before)[7] != 1 else 2
    made = Revision(before, cohort).move(record, number, tmp_path / "moved")
    after = RunFolder(tmp_path / "moved")
    assert numbers(after)[7] == number
    changed = np.flatnonzero(numbers(after) != numbers(before))
    assert changed.tolist() == [7]
    assert load_moves(after) == {record: number}
    assert made.cluster_names == load_profile(before.path).cluster_names
    again = Revision(after, cohort).move(cohort.ids[9].as_py(), number, tmp_path / "again")
    assert len(load_moves(RunFolder(tmp_path / "again"))) == 2
    assert again.k == 4
    with after.moved.open(newline="") as file:
        assert list(csv.reader(file)) == [[record, str(number)]]


def test_an_id_is_found_as_a_spreadsheet_shows_it_and_kept_as_it_is(before, tmp_path):
    cohort = tertiary()
    ids = [f"-{i}a" for i in range(len(cohort) - 2)] + ["'-9a", "'x"]
    cohort = replace(cohort, ids=pa.array(ids))
    assert row_of(cohort, "-7a") == row_of(cohort, "'-7a") == 7
    assert row_of(cohort, "'-9a") == len(cohort) - 2
    assert row_of(cohort, "'x") == len(cohort) - 1
    Revision(before, cohort).move("'-7a", 1, tmp_path / "moved")
    assert load_moves(RunFolder(tmp_path / "moved")) == {"-7a": 1}


def test_a_record_that_is_not_there_is_not_named(before, tmp_path):
    with pytest.raises(RecordsError, match="No record of this run has that id") as error:
        Revision(before, tertiary()).move("patient 7", 1, tmp_path / "moved")
    assert "patient 7" not in str(error.value)
    with pytest.raises(InputError, match="expected one of the clusters 1, 2, 3, 4, got 9"):
        Revision(before, tertiary()).move(tertiary().ids[0].as_py(), 9, tmp_path / "moved")


def test_a_cluster_is_split_and_the_others_stay(before, tmp_path):
    made = Revision(before, tertiary()).split(1, 2, tmp_path / "after")
    after, was = RunFolder(tmp_path / "after"), load_model(before.model).mixture
    model = load_model(after.model)
    assert made.numbers == model.numbers == (1, 2, 3, 4, 5)
    assert made.clusters[1].name == "Stays"
    assert np.array_equal(model.mixture.means[1:4], was.means[1:4])
    parts = model.mixture.weights[[0, 4]]
    assert parts.sum() == pytest.approx(was.weights[0])
    assert parts[0] == parts.max()
    stayed = numbers(before) != 1
    assert np.mean(numbers(after)[stayed] == numbers(before)[stayed]) > 0.95
    assert np.isin(numbers(after)[~stayed], [1, 5]).mean() > 0.95
    assert "cluster 1 was split by hand" in made.source.reason
    _, groups = Revision(after, tertiary()).merge((1, 5), tmp_path / "again")
    assert groups == (1, 2, 3, 4, 1)
    with pytest.raises(InputError, match="doesn't hold 3 groups that differ"):
        Revision(before, tertiary()).split(1, 3, tmp_path / "no")
    with pytest.raises(InputError, match="changed by hand"):
        Revision(RunFolder(tmp_path / "again"), tertiary(), groups).split(2, 2, tmp_path / "no")


def test_the_parts_of_a_cluster_stand_at_its_place_and_at_the_end():
    whole = Mixture(np.array([0.4, 0.6]), np.array([[0.1, 0.01, 0.2], [0.3, 0.9, 0.4]]))
    parts = Mixture(np.array([0.25, 0.75]), np.array([[0.5, 0.6], [0.7, 0.8]]))
    made = split_component(whole, 0, parts, [0, 2])
    assert made.weights.tolist() == pytest.approx([0.3, 0.6, 0.1])
    assert made.means.tolist() == [[0.7, 0.01, 0.8], [0.3, 0.9, 0.4], [0.5, 0.01, 0.6]]
