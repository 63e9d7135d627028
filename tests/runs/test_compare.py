"""Saved runs compared; clusters that go on keep their numbers and names."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from comorb.model.mixture import Mixture
from comorb.records.datasets import region, tertiary
from comorb.records.export import export
from comorb.runs import compare
from comorb.runs.assign import assign_records
from comorb.runs.compare import compare_runs, match_earlier, order_by_number
from comorb.runs.folder import load_profile
from comorb.runs.run import Request, fit_records, run
from comorb.storage import load_model


def made(folder, k, earlier=(), cohort=None):
    return run(cohort or tertiary(), Request(k, repeats=0, earlier=tuple(earlier)), folder)


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    return made(tmp_path_factory.mktemp("runs") / "before", 4)


def test_a_run_like_another_keeps_its_order_and_the_names_that_were_given(before, tmp_path):
    mixture = Mixture(before.weights / before.weights.sum(), before.means)
    shuffled = Mixture(mixture.weights[[2, 0, 3, 1]], mixture.means[[2, 0, 3, 1]])
    assert match_earlier(shuffled.means, before.codes, before) == {0: 2, 1: 0, 2: 3, 3: 1}
    again, numbers = order_by_number(shuffled, before.codes, [before])
    assert np.array_equal(again.means, mixture.means)
    assert numbers == (1, 2, 3, 4)
    named = before.renamed({2: "Mine"})
    after = made(tmp_path / "after", 4, [named], tertiary().drop_codes("401"))
    assert after.clusters[2].name == "Mine"
    assert load_model(tmp_path / "after" / "model.comorb").clusters[2] == "Mine"


def test_a_new_cluster_gets_the_first_number_that_neither_run_has(before, tmp_path):
    others = zip(before.clusters, (1, 3, 4, 5), strict=True)
    like = replace(before, clusters=tuple(replace(one, number=number) for one, number in others))
    after = made(tmp_path / "after", 5, [like])
    assert after.numbers == (1, 2, 3, 4, 5)
    assert match_earlier(after.means, after.codes, like) == {0: 0, 2: 1, 3: 2, 4: 3}


def test_those_that_stay_keep_their_numbers_in_every_file(before, tmp_path):
    fewer = made(tmp_path / "run", 3, [before])
    numbers = fewer.numbers
    kept = match_earlier(fewer.means, fewer.codes, before)
    assert numbers == tuple(place + 1 for place in kept.values())
    assert numbers != (1, 2, 3)
    assert load_profile(tmp_path / "run").numbers == numbers
    listed = pa_csv.read_csv(tmp_path / "run" / "assignments.csv")["cluster"]
    assert set(listed.to_pylist()) == set(numbers)
    export(region(500), tmp_path / "new.csv")
    path = tmp_path / "new-clusters.csv"
    tally = assign_records(tmp_path / "run", tmp_path / "new.csv", path, every=True)
    assert set(pa_csv.read_csv(path)["cluster"].to_pylist()) <= set(numbers)
    assert tally.numbers == numbers


def test_a_cluster_that_comes_back_has_its_number_and_name_again(before, tmp_path):
    fewer = made(tmp_path / "fewer", 3, [before])
    gone = next(place for place, n in enumerate(before.numbers) if n not in fewer.numbers)
    named = before.renamed({gone: "Mine"})
    again = made(tmp_path / "again", 4, [fewer, named])
    assert again.numbers == before.numbers
    assert again.clusters[gone].name == "Mine"


def test_runs_without_a_code_in_common_have_nothing_to_go_on(before):
    other = replace(before, codes=tuple(f"x{code}" for code in before.codes))
    assert match_earlier(before.means, before.codes, other) == {}


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    table = pa.Table.from_batches(list(region(1000)))
    for k in (2, 3):
        fit_records(table, folder / str(k), Request(k, repeats=0))
    fit_records(table.slice(0, 900), folder / "fewer", Request(3, repeats=0))
    return folder


def test_runs_on_the_same_records_are_compared_record_by_record(runs):
    compared = compare_runs(runs / "2", runs / "3")
    assert compared.comparison.flows is not None
    assert compared.comparison.flows.sum() == compared.followed == 1000
    assert compare_runs(runs / "2", runs / "2").comparison.ari == 1


def test_runs_on_other_records_are_compared_by_their_codes(runs):
    compared = compare_runs(runs / "fewer", runs / "3")
    assert compared.comparison.flows is None
    assert compared.followed is None
    assert len(compared.comparison.pairs) == 3


def test_records_that_both_have_are_followed_on_request(runs):
    compared = compare_runs(runs / "fewer", runs / "3", follow=True)
    assert compared.followed == compared.comparison.flows.sum() == 900
    assert compare_runs(runs / "2", runs / "3", follow=False).followed is None


def test_too_few_shared_records_are_not_followed(runs, monkeypatch):
    shared = compare._shared_records
    monkeypatch.setattr(compare, "_shared_records", lambda *both: shared(*both).slice(0, 10))
    assert compare_runs(runs / "2", runs / "3", min_cell=11).followed is None
    assert compare_runs(runs / "2", runs / "3", min_cell=10).followed is not None
