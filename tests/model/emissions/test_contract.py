"""Every kind has the duties of a variable: category, count, number, with cuts for the start."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from comorb.model.emissions import KINDS, from_dict, to_dict
from comorb.model.emissions.base import Feature, quartile_columns
from comorb.model.emissions.category import Category
from comorb.model.emissions.count import Count
from comorb.model.emissions.number import MIN_VARIANCE, Number
from comorb.model.features import statistics

RNG = np.random.default_rng(3)
VALUES = {
    "category": RNG.integers(0, 3, 200).astype(float),
    "count": RNG.poisson(3.0, 200).astype(float),
    "number": RNG.normal(50, 10, 200),
    "log": np.exp(RNG.normal(1, 1, 200)),
    "rank": RNG.gamma(1.0, 1.0, 200),
}
FEATURES = {
    "category": Feature("race", "category", ("a", "b", "c")),
    "count": Feature("visits", "count"),
    "number": Feature("age", "number"),
    "log": Feature("crp", "number", (), "log"),
    "rank": Feature("stay", "number", (), "rank"),
}
PARAMETERS = {
    "category": np.array([[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]]),
    "count": np.array([[2.0], [4.5]]),
    "number": np.array([[-0.5, 0.6], [0.8, 1.2]]),
}


@pytest.fixture(params=FEATURES)
def name(request):
    return request.param


@pytest.fixture
def variable(name):
    feature = FEATURES[name]
    return KINDS[feature.kind].learn(feature, VALUES[name], None, 200.0)


@pytest.fixture
def parameters(variable):
    return PARAMETERS[variable.feature.kind]


@pytest.fixture
def seen(name, variable):
    values = variable.prepare(VALUES[name])
    values[::7] = np.nan
    return values


def density(variable, parameters, seen):
    """The log-density by SciPy, zero where a value is missing, (n, k)."""
    there = ~np.isnan(seen)
    known = np.where(there, seen, 0.0)[:, None]
    if isinstance(variable, Category):
        found = np.log(parameters.T)[known[:, 0].astype(int)]
    elif isinstance(variable, Count):
        found = stats.poisson.logpmf(known, parameters[:, 0])
    else:
        mean, deviation = parameters[:, 0], np.sqrt(parameters[:, 1])
        found = stats.norm.logpdf(known, mean, deviation) - np.log(variable.spread)
    return found * there[:, None]


def test_statistics_times_the_table_are_the_log_density(variable, parameters, seen):
    found = statistics(variable, seen) @ variable.natural(parameters)
    np.testing.assert_allclose(found, density(variable, parameters, seen), atol=1e-10)


def test_no_parameters_fit_the_sums_better(variable, parameters, seen):
    weights = RNG.random((seen.size, 2))
    sums = statistics(variable, seen).T @ weights
    best = variable.fit(sums)
    most = np.sum(sums * variable.natural(best), axis=0)
    for scale in (0.01, 0.3):
        other = variable.shift(best, scale * RNG.normal(size=best.shape))
        assert np.all(np.sum(sums * variable.natural(other), axis=0) <= most + 1e-9)


def test_nothing_observed_fits_the_whole_population(variable):
    fitted = variable.fit(np.zeros((variable.n_statistics, 1)))
    np.testing.assert_allclose(fitted[0], variable.population, atol=1e-6)


def test_the_prior_is_the_whole_population_and_the_stronger_the_nearer(variable, parameters, seen):
    sums = statistics(variable, seen)[:20].sum(axis=0)[:, None]
    own = variable.fit(sums)[0]
    gaps = [
        np.abs(
            variable.fit(sums + variable.prior_statistics(alpha, 200.0)[:, None])[0]
            - variable.population
        )
        for alpha in (1e-6, 10.0, 1e7)
    ]
    np.testing.assert_allclose(gaps[0], np.abs(own - variable.population), rtol=1e-3, atol=1e-4)
    assert gaps[0].sum() > gaps[1].sum() > gaps[2].sum()
    assert gaps[2].max() < 1e-3


def test_influence_multiplies_the_statistics(variable, seen):
    half = type(variable).from_facts(variable.feature, 0.5, variable.facts)
    np.testing.assert_allclose(statistics(half, seen), 0.5 * statistics(variable, seen))
    sums = statistics(half, seen).sum(axis=0)[:, None]
    assert half.n_observed(sums)[0] == pytest.approx(np.count_nonzero(~np.isnan(seen)))


def test_angles_lead_back_to_the_parameters(variable, parameters):
    np.testing.assert_allclose(variable.from_angles(variable.angles(parameters)), parameters)
    far = variable.from_angles(variable.angles(parameters) - 30.0)
    assert variable.find_problem(far) is None


def test_expectations_and_contrasts_are_those_of_draws(variable, parameters):
    rng = np.random.default_rng(1)
    table = variable.natural(parameters)
    contrast = table[:, :, None] - table[:, None, :]
    if variable.feature.transform == "rank":
        pytest.skip("draws beyond the knots are put at the last one")
    drawn = np.array([variable.draw(one, rng, 40_000) for one in parameters])
    for j in range(2):
        rows = statistics(variable, variable.prepare(drawn[j]))
        shown = variable.expectation(parameters)[:, j]
        if isinstance(variable, Count):
            rows = rows[:, :2]
            shown = shown[:2]
        np.testing.assert_allclose(rows.mean(axis=0), shown, atol=0.05)
        ratio = statistics(variable, variable.prepare(drawn[j])) @ contrast[:, j]
        variance = variable.contrast_variance(parameters, contrast)[j]
        np.testing.assert_allclose(ratio.var(axis=0), variance, rtol=0.08, atol=1e-9)


def test_a_variable_comes_back_from_plain_values(variable):
    assert from_dict(to_dict(variable)) == variable


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "colour"}, "not known"),
        ({"transform": "square"}, "not known"),
        ({"levels": ["a", "a"]}, "different texts"),
        ({"influence": 0.0}, "influence above 0"),
        ({"facts": [float("nan")]}, "facts that are numbers"),
        ({"facts": []}, "must have"),
        ({"facts": [-1.0, -1.0, -1.0]}, "must have"),
    ],
)
def test_plain_values_that_make_no_variable_are_refused(variable, change, said):
    with pytest.raises(ValueError, match=said):
        from_dict(to_dict(variable) | change)


def test_a_transform_of_what_is_no_number_is_refused():
    plain = {"name": "n", "kind": "count", "levels": [], "transform": "log"}
    with pytest.raises(ValueError, match="is no number"):
        Feature.from_dict(plain)


def test_wrong_parameters_are_named(variable, parameters):
    assert variable.find_problem(parameters) is None
    assert variable.find_problem(-np.abs(parameters) - 1) is not None


def test_zeros_and_ones_have_one_one_a_value_and_none_for_a_gap(variable, seen):
    ones = np.sum(variable.binarise(seen), axis=0)
    assert np.array_equal(ones, (~np.isnan(seen)).astype(int))


def test_cuts_of_many_ties_are_fewer():
    assert len(quartile_columns(np.array([1.0] * 9 + [2.0]))) == 2
    assert len(quartile_columns(np.arange(8.0))) == 4
    assert quartile_columns(np.array([np.nan])) == []


def test_the_evidence_of_a_count_is_its_likelihood_integrated():
    variable = Count(FEATURES["count"], 1.0, 3.0, 1.7, 9)
    x = np.array([1.0, 4.0, 2.0])
    b, a, _ = variable.prior_statistics(1.5, 100.0)

    def value(rate):
        return np.exp(stats.poisson.logpmf(x, rate).sum()) * stats.gamma.pdf(rate, a, scale=1 / b)

    sums = statistics(variable, x).sum(axis=0)[:, None]
    found = variable.log_marginal(sums, variable.prior_statistics(1.5, 100.0))
    assert found[0] == pytest.approx(np.log(integrate.quad(value, 0, 60)[0]), abs=1e-6)


def test_the_evidence_of_a_category_is_its_likelihood_integrated():
    variable = Category(Feature("sex", "binary", ("f", "m")), 1.0, (0.7, 0.3))
    a = variable.prior_statistics(0.8, 100.0)
    np.testing.assert_allclose(a, [0.8 / 0.3, 0.8 / 0.7])

    def value(share):
        return share**2 * (1 - share) * stats.beta.pdf(share, *a)

    found = variable.log_marginal(np.array([[2.0], [1.0]]), a)
    assert found[0] == pytest.approx(np.log(integrate.quad(value, 0, 1)[0]), abs=1e-6)


def test_the_evidence_of_a_number_is_its_likelihood_integrated():
    variable = Number(FEATURES["number"], 1.0, 0.0, 1.0)
    z, alpha = np.array([0.3, -1.0, 0.8]), 2.0

    def over(means, variance):
        prior = stats.norm.pdf(means, 0, np.sqrt(variance / alpha))
        prior *= stats.invgamma.pdf(variance, alpha / 2, scale=alpha / 2)
        likelihood = stats.norm.logpdf(z[:, None], means, np.sqrt(variance)).sum(axis=0)
        return np.exp(likelihood) * prior

    sums = statistics(variable, z).sum(axis=0)[:, None]
    found = variable.log_marginal(sums, variable.prior_statistics(alpha, 100.0))
    logs, means = np.linspace(-7, 7, 141), np.linspace(-15, 15, 1501)
    each = [np.trapezoid(over(means, np.exp(u)), means) * np.exp(u) for u in logs]
    assert found[0] == pytest.approx(np.log(np.trapezoid(each, logs)), abs=2e-3)


def test_a_cluster_s_variance_has_a_floor():
    variable = Number(FEATURES["number"], 1.0, 0.0, 1.0)
    assert variable.fit(np.array([[5.0], [5.0], [5.0]]))[0, 1] == MIN_VARIANCE


def test_people_read_their_own_units():
    number = Number(FEATURES["number"], 1.0, 50.0, 10.0)
    shown = number.describe(np.array([[1.0, 0.25]]))
    assert (shown["mean"][0], shown["sd"][0]) == (60.0, 5.0)
    log = Number(FEATURES["log"], 1.0, np.log(8.0), 1.0)
    assert log.describe(np.array([[0.0, 1.0]]))["median"][0] == pytest.approx(8.0)
    values = VALUES["rank"]
    rank = Number.learn(FEATURES["rank"], values, None, 200.0)
    shown = rank.describe(np.array([[0.0, 1.0]]))
    assert shown["median"][0] == pytest.approx(np.median(values), rel=0.05)
    assert shown["low"][0] == pytest.approx(np.quantile(values, 0.05), abs=0.05)
    category = Category(FEATURES["category"], 1.0, (0.2, 0.3, 0.5))
    assert list(category.describe(PARAMETERS["category"])) == ["a", "b", "c"]


def test_what_is_known_does_not_depend_on_the_order_of_the_rows(name, variable):
    order = np.random.default_rng(0).permutation(200)
    again = type(variable).learn(variable.feature, VALUES[name][order], None, 200.0)
    assert again.facts == variable.facts
    assert again.key == variable.key


def test_a_column_without_a_value_or_with_one_alone_is_a_variable(name):
    feature = FEATURES[name]
    for values in (np.full(5, np.nan), np.full(5, 1.0)):
        variable = KINDS[feature.kind].learn(feature, values, None, 5.0)
        assert np.isfinite(variable.natural(np.array([variable.population]))).all()
