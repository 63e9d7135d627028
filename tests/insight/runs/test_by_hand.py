"""Two clusters made one: they are joined, the others stay."""

import numpy as np
import pytest
from comorb.insight.runs.merging import grouped, merge

from comorb.errors import InputError
from comorb.insight.runs.run import run
from comorb.records.datasets import tertiary


@pytest.fixture(scope="module")
def before():
    return run(tertiary(), 4, repeats=0)


def test_the_first_of_two_numbers_stays_and_so_do_the_others():
    assert grouped((1, 2, 3, 4), (4, 2)) == (1, 2, 3, 2)
    assert grouped((1, 2, 3, 2), (1, 3)) == (1, 2, 1, 2)


@pytest.mark.parametrize("pair", [(1, 1), (0, 4), (2, 5)])
def test_what_are_not_two_clusters_is_refused(pair):
    with pytest.raises(InputError, match="expected two of the clusters 1, 2, 3, 4, got"):
        grouped((1, 2, 3, 4), pair)


def test_the_merged_cluster_gets_the_records_of_both(before):
    named = before.profile.renamed({1: "Stays"})
    after = merge(before.model, grouped((1, 2, 3, 4), (1, 3)), tertiary(), named)
    old, new = before.assigned.assignment, after.assigned.assignment
    stayed = np.isin(old.labels, [0, 2])
    assert np.mean(new.labels[stayed] == 0) == 1.0
    assert np.mean(new.labels[~stayed] != 0) > 0.97
    assert new.soft[0] == pytest.approx(old.soft[0] + old.soft[2])
    assert after.profile.numbers == after.model.numbers == (1, 2, 4)
    assert after.profile.clusters[1].name == "Stays"
    assert after.model.mixture.weights.sum() == pytest.approx(1)
    assert "merged by hand" in after.profile.source.reason


def test_the_mean_of_the_merged_clusters_is_weighted(before):
    mixture = before.model.mixture
    after = merge(
        before.model, grouped((1, 2, 3, 4), (1, 3)), tertiary(), before.profile
    ).model.mixture
    share = mixture.weights[[0, 2]] / mixture.weights[[0, 2]].sum()
    assert after.means[0] == pytest.approx(share @ mixture.means[[0, 2]])
    assert after.means[2] == pytest.approx(mixture.means[3])
