import pytest
from sklearn.metrics import adjusted_rand_score

from comorb.records.datasets.simulate import paper
from comorb_reproduction.methods import METHODS


@pytest.fixture(scope="module")
def drawn():
    return paper(600, d=30, k=2, seed=1)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_finds_easy_clusters(name, drawn):
    found = METHODS[name](drawn, 2, 0)
    assert found.labels.shape == found.start.shape == (600,)
    assert adjusted_rand_score(drawn.labels, found.labels) > 0.3
    assert found.decomposing > 0
    assert found.refining >= 0
