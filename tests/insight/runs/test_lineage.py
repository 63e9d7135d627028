"""Clusters that go on keep their numbers and names."""

from dataclasses import replace

import numpy as np
import pyarrow.csv as pa_csv
import pytest

from comorb.insight.runs.assign import assign_records
from comorb.insight.runs.folder import load_profile
from comorb.insight.runs.lineage import arrange, forebears
from comorb.insight.runs.run import run
from comorb.model.mixture import Mixture
from comorb.records.datasets import region, tertiary
from comorb.records.export import export


@pytest.fixture(scope="module")
def before():
    return run(tertiary(), 4, repeats=0)


def test_a_run_like_another_keeps_its_order_and_the_names_that_were_given(before):
    mixture = before.model.mixture
    shuffled = Mixture(mixture.weights[[2, 0, 3, 1]], mixture.means[[2, 0, 3, 1]])
    assert forebears(shuffled.means, before.profile.codes, before.profile) == [2, 0, 3, 1]
    again, numbers = arrange(shuffled, before.profile.codes, [before.profile])
    assert np.array_equal(again.means, mixture.means)
    assert numbers == (1, 2, 3, 4)
    named = before.profile.renamed({2: "Mine"})
    after = run(tertiary().drop_codes("401"), 4, repeats=0, earlier=[named])
    assert after.profile.clusters[2].name == "Mine"
    assert after.model.clusters[2] == "Mine"


def test_a_new_cluster_gets_the_first_number_that_neither_run_has(before):
    others = zip(before.profile.clusters, (1, 3, 4, 5), strict=True)
    like = replace(
        before.profile, clusters=tuple(replace(one, number=number) for one, number in others)
    )
    after = run(tertiary(), 5, repeats=0, earlier=[like]).profile
    assert after.numbers == (1, 2, 3, 4, 5)
    assert forebears(after.means, after.codes, like) == [0, None, 1, 2, 3]


def test_those_that_stay_keep_their_numbers_in_every_file(before, tmp_path):
    fewer = run(tertiary(), 3, repeats=0, earlier=[before.profile])
    numbers = fewer.profile.numbers
    kept = forebears(fewer.profile.means, fewer.profile.codes, before.profile)
    assert numbers == tuple(place + 1 for place in kept)
    assert numbers != (1, 2, 3)
    fewer.save(tmp_path / "run")
    assert load_profile(tmp_path / "run").numbers == numbers
    listed = pa_csv.read_csv(tmp_path / "run" / "assignments.csv")["cluster"]
    assert set(listed.to_pylist()) == set(numbers)
    export(region(500), tmp_path / "new.csv")
    new = assign_records(tmp_path / "run", tmp_path / "new.csv", every=True)
    new.save(tmp_path / "new-clusters.csv")
    listed = pa_csv.read_csv(tmp_path / "new-clusters.csv")["cluster"]
    assert set(listed.to_pylist()) <= set(numbers)
    assert new.tally.numbers == numbers


def test_a_cluster_that_comes_back_has_its_number_and_name_again(before):
    fewer = run(tertiary(), 3, repeats=0, earlier=[before.profile]).profile
    gone = next(place for place, n in enumerate(before.profile.numbers) if n not in fewer.numbers)
    named = before.profile.renamed({gone: "Mine"})
    again = run(tertiary(), 4, repeats=0, earlier=[fewer, named]).profile
    assert again.numbers == before.profile.numbers
    assert again.clusters[gone].name == "Mine"


def test_runs_without_a_code_in_common_have_nothing_to_go_on(before):
    other = replace(before.profile, codes=tuple(f"x{code}" for code in before.profile.codes))
    assert forebears(before.profile.means, before.profile.codes, other) == [None] * 4
