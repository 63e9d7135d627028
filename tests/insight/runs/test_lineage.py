"""Clusters that go on keep their numbers and names."""

from dataclasses import replace

import numpy as np
import pyarrow.csv as pa_csv
import pytest

from comorb.insight.runs.assign import assign_records
from comorb.insight.runs.folder import load_profile
from comorb.insight.runs.lineage import arrange, forebears
from comorb.insight.runs.run import Request, run
from comorb.model.mixture import Mixture
from comorb.records.datasets import region, tertiary
from comorb.records.export import export
from comorb.storage import load_model


def made(folder, k, earlier=(), cohort=None):
    return run(cohort or tertiary(), Request(k, repeats=0, earlier=tuple(earlier)), folder)


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    return made(tmp_path_factory.mktemp("runs") / "before", 4)


def test_a_run_like_another_keeps_its_order_and_the_names_that_were_given(before, tmp_path):
    mixture = Mixture(before.weights / before.weights.sum(), before.means)
    shuffled = Mixture(mixture.weights[[2, 0, 3, 1]], mixture.means[[2, 0, 3, 1]])
    assert forebears(shuffled.means, before.codes, before) == {0: 2, 1: 0, 2: 3, 3: 1}
    again, numbers = arrange(shuffled, before.codes, [before])
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
    assert forebears(after.means, after.codes, like) == {0: 0, 2: 1, 3: 2, 4: 3}


def test_those_that_stay_keep_their_numbers_in_every_file(before, tmp_path):
    fewer = made(tmp_path / "run", 3, [before])
    numbers = fewer.numbers
    kept = forebears(fewer.means, fewer.codes, before)
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
    assert forebears(before.means, before.codes, other) == {}
