"""What the fit of the model adds to errors, against fits in which a record counts a little more."""

from __future__ import annotations

import numpy as np
import pytest

from comorb import Mixture, first_step, relate_outcome, relate_predictors
from comorb.errors import InputError
from comorb.model.emissions.base import Feature
from comorb.model.emissions.number import Number
from comorb.model.relations.classification import (
    Part,
    classify,
    outcome_influence,
    predictor_influence,
)
from tests.model.relations.conftest import classes

MEANS = np.array([[0.8, 0.75, 0.7, 0.8, 0.7], [0.25, 0.3, 0.2, 0.3, 0.25]])


@pytest.fixture(scope="module")
def fitted():
    items, labels = Mixture(np.array([0.6, 0.4]), MEANS).sample(400, 3)
    items = items.toarray().astype(float)
    _, posterior, shares, means = classes(items, MEANS)
    return items, labels, posterior, Mixture(shares, means)


def matrix(posterior, labels, weight):
    taken = np.eye(2)[labels]
    mass = posterior * weight[:, None]
    return mass.T @ taken / mass.sum(axis=0)[:, None]


def test_the_influence_is_what_a_little_more_of_a_record_does(fitted):
    items, _, posterior, model = fitted
    found = first_step(model, items).influence
    assert found.shape == (400, 2, 2)
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-4)
    labels = posterior.argmax(axis=1)
    for record in (0, 7, 100):
        ends = []
        for more in (0.05, -0.05):
            weight = np.ones(400)
            weight[record] += more
            moved = classes(items, MEANS, weight)[1]
            ends.append(matrix(moved, labels, weight))
        np.testing.assert_allclose(found[record], (ends[0] - ends[1]) / 0.1, atol=2e-4)


def test_errors_are_of_what_each_record_does(fitted):
    items, labels, posterior, model = fitted
    rng = np.random.default_rng(4)
    y, z = labels + rng.normal(size=400), labels + rng.normal(size=400)
    step = first_step(model, items)
    found = relate_outcome(posterior, y, first_step=step)
    odds = relate_predictors(posterior, z, first_step=step)
    part = Part(posterior.argmax(axis=1), posterior, np.ones(400), y[:, None])
    taken = classify(400.0, part).matrix
    moves = outcome_influence(y[:, None], found.means[:, None], taken, part, step.influence)
    beta = np.zeros((2, 2))
    beta[odds.clusters[0]] = odds.coefficients
    design = np.column_stack([np.ones(400), z])
    bends = predictor_influence(design, beta, taken, part, step.influence)
    np.testing.assert_allclose(found.errors**2, (moves**2).sum(axis=0))
    np.testing.assert_allclose(odds.errors[0] ** 2, (bends**2).sum(axis=0))
    for record in (1, 50):
        ends = []
        for more in (0.02, -0.02):
            weight = np.ones(400)
            weight[record] += more
            moved = classes(items, MEANS, weight)[1]
            means = relate_outcome(moved, y, sample_weight=weight).means
            lines = relate_predictors(moved, z, sample_weight=weight).coefficients[0]
            ends.append([*means, *lines])
        expected = (np.array(ends[0]) - ends[1]) / 0.04
        np.testing.assert_allclose([*moves[record], *bends[record]], expected, atol=2e-4)


def test_shares_count_the_first_step_too(fitted):
    items, labels, posterior, model = fitted
    text = np.where(labels + np.random.default_rng(4).normal(size=400) > 0.5, "high", "low")
    shares = relate_outcome(posterior, text, first_step=first_step(model, items))
    np.testing.assert_allclose(shares.errors[:, 0], shares.errors[:, 1])
    assert (shares.errors != relate_outcome(posterior, text).errors).all()


def test_what_does_not_fit_is_refused(fitted):
    items, _, posterior, model = fitted
    with pytest.raises(InputError, match="expected the 5 columns that the model was fitted to"):
        first_step(model, items[:, :3])
    step = first_step(model, items)
    with pytest.raises(InputError, match=r"the first step of 300 records and 2 clusters, got one"):
        relate_outcome(posterior[:300], np.arange(300.0), first_step=step)
    values = np.random.default_rng(1).normal(size=400)
    number = Number.learn(Feature("age", "number"), values, None, 400.0)
    mixed = Mixture(model.weights, model.means, (number,), np.ones((2, number.n_parameters)))
    with pytest.raises(InputError, match="with features besides the codes can't be counted yet"):
        first_step(mixed, items)
    wide = Mixture(np.array([0.5, 0.5]), np.full((2, 1500), 0.5))
    with pytest.raises(InputError, match="3,001 parameters, and the errors of 2,500 at most"):
        first_step(wide, np.zeros((2, 1500)))
