"""Relevance against its formula, cell by cell."""

from __future__ import annotations

import math

import numpy as np
import pytest

from comorb.errors import InputError
from comorb.insight.profile.relevance import relevance
from tests.insight.conftest import MODEL


@pytest.mark.parametrize("lam", [0.0, 0.3, 0.6, 1.0])
def test_relevance_is_the_formula(lam: float) -> None:
    found = relevance(MODEL.means, MODEL.weights @ MODEL.means, lam)
    for j in range(2):
        for i in range(8):
            mu = MODEL.means[j, i]
            mixed = sum(MODEL.means[h, i] * MODEL.weights[h] for h in range(2))
            expected = lam * math.log(mu) + (1 - lam) * math.log(mu / mixed)
            assert found[j, i] == pytest.approx(expected)


def test_means_of_nought_and_one_break_no_logarithm() -> None:
    found = relevance(np.array([[0.0, 1.0]]), np.array([0.0, 1.0]), 0.5)
    assert np.isfinite(found).all()
    assert found[0, 1] == 0


@pytest.mark.parametrize("lam", [-0.1, 1.1, math.nan])
def test_lambda_outside_its_range_is_an_error(lam: float) -> None:
    with pytest.raises(InputError, match=r"expected λ from 0 .* to 1 .*, got"):
        relevance(MODEL.means, MODEL.weights @ MODEL.means, lam)
