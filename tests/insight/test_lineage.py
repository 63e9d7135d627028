"""Clusters that go on keep their places, names and colours."""

from dataclasses import replace

import numpy as np
import pytest

from comorb.insight.lineage import arrange, colours, forebears
from comorb.insight.run import run
from comorb.model.mixture import Mixture
from comorb.records.datasets import tertiary


@pytest.fixture(scope="module")
def before():
    return run(tertiary(), 4, repeats=0)


def test_a_run_like_another_keeps_its_order_and_the_names_that_were_given(before):
    mixture = before.model.mixture
    shuffled = Mixture(mixture.weights[[2, 0, 3, 1]], mixture.means[[2, 0, 3, 1]])
    assert forebears(shuffled.means, before.profile.codes, before.profile) == [2, 0, 3, 1]
    again = arrange(shuffled, before.profile.codes, before.profile)
    assert np.array_equal(again.means, mixture.means)
    named = before.profile.renamed({2: "Mine"})
    after = run(tertiary().drop_codes("401"), 4, repeats=0, like=named)
    assert after.profile.clusters[2].name == "Mine"
    assert after.model.clusters[2] == "Mine"


def test_a_new_cluster_comes_last_with_a_colour_that_neither_run_has(before):
    after = run(tertiary(), 5, repeats=0, like=before.profile).profile
    old = forebears(after.means, after.codes, before.profile)
    assert old[:4] == [0, 1, 2, 3]
    assert old[4] is None
    assert colours(after, before.profile, [0, 4, 2, 3]) == [0, 4, 2, 3, 1]


def test_runs_without_a_code_in_common_have_nothing_to_go_on(before):
    other = replace(before.profile, codes=tuple(f"x{code}" for code in before.profile.codes))
    assert forebears(before.profile.means, before.profile.codes, other) == [None] * 4
