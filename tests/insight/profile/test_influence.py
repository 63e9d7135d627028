"""Influence: what codes and features tell about clusters."""

import numpy as np
import pytest

from comorb.insight.profile.influence import influence
from comorb.model.features import Feature
from comorb.model.kinds.category import Category
from comorb.model.kinds.count import Count
from comorb.model.kinds.number import Number
from comorb.model.mixture import Mixture

HALVES = np.array([0.5, 0.5])


def mixture(variables=(), parameters=None, means=((0.2,), (0.8,))):
    beside = np.empty((2, 0)) if parameters is None else np.array(parameters)
    return Mixture(HALVES, np.array(means), tuple(variables), beside)


def test_codes_alone_have_all():
    assert influence(mixture()).tolist() == [1.0]
    assert influence(mixture(means=((0.5,), (0.5,)))).tolist() == [1.0]


def test_a_category_with_the_shares_of_a_code_tells_as_much():
    sex = Category(Feature("sex", "category", ("F", "M")), 1.0, (0.5, 0.5))
    assert influence(mixture([sex], [[0.8, 0.2], [0.2, 0.8]])) == pytest.approx([0.5, 0.5])
    half = influence(mixture([sex], [[0.8, 0.2], [0.2, 0.8]]), np.array([0.5]))
    assert half == pytest.approx([2 / 3, 1 / 3])


def test_clusters_that_are_far_apart_tell_log_2_whatever_the_kind():
    kinds = [
        Category(Feature("site", "category", ("a", "b")), 1.0, (0.5, 0.5)),
        Count(Feature("visits", "count"), 1.0, 50.0, 50.0, 400),
        Number(Feature("lab", "number"), 1.0, 7.0, 3.0),
    ]
    far = [[1.0, 0.0, 1.0, -20.0, 1.0], [0.0, 1.0, 150.0, 20.0, 1.0]]
    parts = influence(mixture(kinds, far, means=((1e-9,), (1 - 1e-9,))))
    assert parts == pytest.approx([0.25] * 4, rel=1e-4)


def test_a_tempered_feature_counts_less():
    lab = Number(Feature("lab", "number"), 0.5, 0.0, 1.0)
    whole = Number(Feature("lab", "number"), 1.0, 0.0, 1.0)
    far = [[-1.0, 1.0], [1.0, 1.0]]
    tempered, full = (influence(mixture([one], far)) for one in (lab, whole))
    odds = full[1] / full[0], tempered[1] / tempered[0]
    assert odds[1] == pytest.approx(odds[0] / 2)
