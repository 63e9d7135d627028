from __future__ import annotations

import numpy as np
import pytest

from comorb import BernoulliMixture
from comorb.errors import InputError
from comorb.model.mixture import Mixture
from comorb.records.datasets import paper
from comorb.runs.stability import stability


@pytest.fixture(scope="module")
def drawn():
    return paper(1500, 40, 3, seed=2)


def test_clear_clusters_come_out_again(drawn):
    model = BernoulliMixture(3).fit(drawn.matrix).mixture_
    found = stability(drawn.matrix, model, repeats=2)
    assert found.ari > 0.9
    assert len(found.aris) == 2
    assert len(found.jaccard) == 3
    assert min(found.jaccard) > 0.8
    assert stability(drawn.matrix, model, repeats=2) == found


def test_the_order_of_the_records_changes_nothing(drawn):
    model = BernoulliMixture(3).fit(drawn.matrix).mixture_
    order = np.random.default_rng(5).permutation(drawn.matrix.shape[0])
    one = stability(drawn.matrix, model, repeats=2)
    assert stability(drawn.matrix[order], model, repeats=2) == one


def test_clusters_are_told_in_the_order_of_the_model(drawn):
    model = BernoulliMixture(3).fit(drawn.matrix).mixture_
    turned = Mixture(model.weights[::-1], model.means[::-1])
    one, two = (stability(drawn.matrix, each, repeats=1) for each in (model, turned))
    assert one.jaccard == two.jaccard[::-1]


def test_clusters_of_noise_do_not():
    noise = (np.random.default_rng(0).random((600, 15)) < 0.3).astype(int)
    model = BernoulliMixture(2, smoothing=0).fit(noise).mixture_
    assert stability(noise, model, repeats=2).ari < 0.7


def test_parts_too_small_for_k_are_refused_before_any_work(drawn):
    model = BernoulliMixture(3).fit(drawn.matrix).mixture_
    with pytest.raises(InputError, match="share about 3, too few to compare 3 clusters"):
        stability(drawn.matrix[:10], model)


@pytest.mark.parametrize("arguments", [{"share": 0.5}, {"share": 1.0}, {"repeats": 0}])
def test_a_share_or_a_number_that_makes_no_sense(drawn, arguments):
    model = BernoulliMixture(3).fit(drawn.matrix).mixture_
    with pytest.raises(InputError, match=r"expected a share between .* and at least one repeat"):
        stability(drawn.matrix, model, **arguments)
