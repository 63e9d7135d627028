"""Explanations add up to the posterior; with features, in full and by protected counts."""

from __future__ import annotations

import numpy as np
import pytest

from comorb.errors import InputError
from comorb.model.emissions.base import FeatureTable
from comorb.model.features import prepare_for
from comorb.model.mixture import Mixture
from comorb.profiles.explain import explain
from tests.small_cohort import CODES, MODEL


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


def posterior_of(cohort, model, codes, values):
    """The posterior by the model itself, of one record."""
    from comorb.model.blocks import Rows

    table = FeatureTable(tuple(v.feature for v in model.variables), np.array([values]))
    ones = np.array(sorted(cohort.codes.index(code) for code in codes), dtype=np.int32)
    seen = prepare_for(model.variables, table).values
    rows = Rows(np.array([0, ones.size]), ones, np.empty(0), seen)
    return model.posterior(rows)[0][0]


def test_an_explanation_is_the_posterior_taken_apart(mixed):
    cohort, model, profile = mixed
    given = ["428", "age=60", "sex=male", "visits=2", "hba1c=5.4"]
    explained = profile.explain(given)
    assert explained.codes == ("428", "age=60", "sex=male", "visits=2", "hba1c=5.4")
    expected = posterior_of(cohort, model, ["428"], [60, 1, 2, 5.4])
    logs = explained.base + explained.contributions.sum(axis=0)
    odds = np.exp(logs - logs.max())
    assert odds / odds.sum() == pytest.approx(expected, abs=1e-6)
    assert explained.posterior.argmax() == expected.argmax()


def test_what_is_not_given_is_missing(mixed):
    cohort, model, profile = mixed
    explained = profile.explain(["585"])
    expected = posterior_of(cohort, model, ["585"], [np.nan] * 4)
    assert explained.posterior.argmax() == expected.argmax()


def test_a_level_that_is_not_known_says_nothing(mixed):
    explained = mixed[2].explain(["428", "sex=unheard", "AGE=60", "age=70"])
    assert explained.unknown == ("sex=unheard",)
    assert explained.codes == ("428", "age=70")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("age=old", "expected a number for 'age', got 'old'"),
        ("age=inf", "expected a number for 'age'"),
        ("visits=-1", "expected a whole number of 0 or more for 'visits', got '-1'"),
        ("visits=1.5", "expected a whole number of 0 or more"),
    ],
)
def test_a_value_that_is_none_is_refused(mixed, given, message):
    with pytest.raises(InputError, match=message):
        mixed[2].explain(["428", given])


def test_a_protected_explanation_goes_by_protected_counts(mixed):
    full, shown = mixed[2], mixed[2].protected()
    given = ["428", "age=50", "sex=M", "hba1c=5.4"]
    told = shown.explain(given)
    assert told.posterior.argmax() == full.explain(given).posterior.argmax()
    assert (told.posterior * 20 == np.round(told.posterior * 20)).all()
    same = shown.explain(["428", "age=51", "sex=M", "hba1c=5.4"])
    assert same.posterior.tolist() == told.posterior.tolist()
