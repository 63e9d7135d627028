"""Explanations add up to the posterior."""

from __future__ import annotations

import numpy as np
import pytest

from comorb.insight.profile.explain import explain
from comorb.model.mixture import Mixture
from tests.insight.conftest import CODES, MODEL


def posterior(codes: list[str]) -> np.ndarray:
    x = np.array([code in codes for code in CODES], dtype=float)
    mu = np.clip(MODEL.means, 1e-9, 1 - 1e-9)
    logs = np.log(MODEL.weights) + np.log(mu) @ x + np.log(1 - mu) @ (1 - x)
    p = np.exp(logs - logs.max())
    return p / p.sum()


@pytest.mark.parametrize("codes", [[], ["250"], ["250", "585", "428"], ["401", "401", "428"]])
def test_the_parts_add_up_to_the_posterior(codes: list[str]) -> None:
    why = explain(MODEL, CODES, codes)
    np.testing.assert_allclose(why.posterior, posterior(codes))
    total = why.base + why.contributions.sum(axis=0)
    assert total[0] - total[1] == pytest.approx(np.log(why.posterior[0] / why.posterior[1]))


def test_a_code_adds_what_its_absence_would_take_away() -> None:
    why = explain(MODEL, CODES, ["428", "250", "585"])
    odds = np.log(posterior(["428", "250", "585"])) - np.log(posterior(["428", "250"]))
    assert why.against(0, 1)[2] == pytest.approx(odds[0] - odds[1])


def test_unknown_codes_are_told_and_say_nothing() -> None:
    why = explain(MODEL, CODES, ["250", "nonsense"])
    assert (why.codes, why.unknown) == (("250",), ("nonsense",))
    np.testing.assert_allclose(why.posterior, posterior(["250"]))


def test_a_code_of_every_cluster_says_nothing() -> None:
    model = Mixture(np.array([0.5, 0.5]), np.array([[1.0, 0.2], [1.0, 0.7]]))
    assert np.allclose(explain(model, ("a", "b"), ["a"]).contributions, 0, atol=1e-6)
