"""Rows with features: exact sums, the E-step against a dense one, EM, thinning, views, balance.

The modules are traits, feature_kernels, prepared, exact, views and balance.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

from comorb.errors import ComorbWarning, InputError
from comorb.model import features as traits
from comorb.model.agglomeration import cheapest_merge, merge_sums, merge_sums_to
from comorb.model.blocks import Rows, workers
from comorb.model.diagnostics import balance, collapse_warning, temperature
from comorb.model.em import em, expect, maximise
from comorb.model.emissions.base import Feature, FeatureTable
from comorb.model.features import check_values, prepare_for
from comorb.model.mixture import Mixture
from comorb.model.moments import prevalence
from comorb.model.prior import Prior, learn_strength
from comorb.model.start import binarise, drop_features, gather_rows, max_clusters, transfer_clusters
from comorb.model.subsample import distinct_rows, row_uniforms, thin_rows
from tests.model.mixed_rows import FEATURES, mixed_blocks, mixed_rows


@pytest.fixture(scope="module")
def drawn():
    return mixed_rows()


@pytest.fixture(scope="module")
def blocks(drawn):
    return mixed_blocks(*drawn[:2])


def some_model(blocks, k=3, seed=1) -> Mixture:
    rng = np.random.default_rng(seed)
    whole = np.tile(traits.population_parameters(blocks.variables), (k, 1))
    parameters = traits.map_parameters(
        blocks.variables, lambda v, own, _: v.shift(own, rng.normal(size=own.shape)), whole
    )
    means = rng.uniform(0.05, 0.9, (k, blocks.n_columns))
    return Mixture(rng.dirichlet(np.full(k, 5.0)), means, blocks.variables, parameters)


def dense_density(model, matrix, table):
    """log ω + log P(x | j), (n, k), by SciPy from the values that people write."""
    x = matrix.toarray()
    out = np.log(model.weights) + x @ np.log(model.means).T + (1 - x) @ np.log(1 - model.means).T
    for at, (variable, own) in enumerate(traits.parameter_slices(model.variables)):
        values = table.values[:, at]
        there = ~np.isnan(values)
        known = np.where(there, values, 1.0)
        for j, parameters in enumerate(model.parameters[:, own]):
            if variable.feature.levels:
                found = np.log(parameters)[known.astype(int)]
            elif variable.feature.kind == "count":
                found = stats.poisson.logpmf(known, parameters[0])
            else:
                mean = variable.centre + variable.spread * parameters[0]
                deviation = variable.spread * np.sqrt(parameters[1])
                found = stats.norm.logpdf(variable.transform(known), mean, deviation)
            out[:, j] += variable.influence * found * there
    return out


@pytest.mark.parametrize("influence", [1.0, 0.4])
def test_the_e_step_is_that_of_dense_arrays(drawn, blocks, influence):
    matrix, table, _ = drawn
    variables = tuple(replace(variable, influence=influence) for variable in blocks.variables)
    blocks = replace(blocks, variables=variables)
    model = some_model(blocks)
    joint = dense_density(model, matrix, table)
    densities = logsumexp(joint, axis=1)
    posterior = np.exp(joint - densities[:, None])
    found, log_density = model.posterior(gather_rows(blocks))
    np.testing.assert_allclose(found, posterior, atol=1e-12)
    np.testing.assert_allclose(log_density, densities, atol=1e-10)
    expected = expect(model, blocks)
    assert expected.log_likelihood == pytest.approx(densities.sum(), abs=1e-8)
    np.testing.assert_allclose(expected.positive_counts, matrix.T @ posterior, atol=1e-9)
    values = gather_rows(blocks).values
    rows = [
        traits.statistics(variable, column)
        for variable, column in zip(variables, values.T, strict=True)
    ]
    np.testing.assert_allclose(expected.statistics, np.hstack(rows).T @ posterior, atol=1e-8)


def test_a_row_with_nothing_observed_has_the_prior_shares():
    matrix, table, _ = mixed_rows(d=0)
    table.values[5] = np.nan
    blocks = mixed_blocks(matrix, table)
    model = some_model(blocks)
    np.testing.assert_allclose(
        model.posterior(gather_rows(blocks))[0][5], model.weights, atol=1e-12
    )


def test_order_blocks_and_threads_change_no_bit(drawn, blocks):
    matrix, table, _ = drawn
    model = some_model(blocks)
    order = np.random.default_rng(4).permutation(matrix.shape[0])
    mixed = mixed_blocks(
        matrix[order], FeatureTable(table.features, table.values[order]), block_rows=37
    )
    assert mixed.variables == blocks.variables
    with workers(2) as executor:
        one, two = expect(model, blocks), expect(model, mixed, executor)
    assert one.sums.tobytes() == two.sums.tobytes()
    assert one.log_likelihood == two.log_likelihood


def test_a_row_twice_is_a_row_of_weight_two(drawn):
    matrix, table, _ = drawn
    twice = np.repeat(np.arange(matrix.shape[0]), 2)
    one = mixed_blocks(matrix, table, np.full(matrix.shape[0], 2.0))
    two = mixed_blocks(matrix[twice], FeatureTable(table.features, table.values[twice]))
    for left, right in zip(one.variables, two.variables, strict=True):
        np.testing.assert_allclose(left.facts, right.facts, rtol=1e-9)
        assert left.key == right.key
    model = some_model(one)
    again = Mixture(model.weights, model.means, two.variables, model.parameters)
    np.testing.assert_allclose(expect(model, one).sums, expect(again, two).sums, rtol=1e-9)
    first = prevalence(two)
    assert (
        distinct_rows(two, first, None).n_rows
        == distinct_rows(one, first, None).n_rows
        == len(twice) // 2
    )


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_em_never_falls_with_features(blocks, strength):
    prior = None
    if strength:
        prior = Prior.around(prevalence(blocks), strength, blocks.weight, blocks.variables)
    result = em(blocks, some_model(blocks), prior)
    assert result.converged
    assert np.diff(result.history).min() > -1e-12
    step = maximise(result.expected, prior)
    np.testing.assert_allclose(step.parameters, result.model.parameters, atol=0.02)


def test_merging_clusters_adds_their_statistics(blocks):
    prior = Prior.around(prevalence(blocks), 1.0, blocks.weight, blocks.variables)
    sums = expect(some_model(blocks, 4), blocks).sums
    worth = {}
    for a in range(4):
        for b in range(a + 1, 4):
            joined = merge_sums(sums, a, b)
            worth[a, b] = prior.log_marginal(joined) + gammaln(joined[-1] + 1).sum()
    assert cheapest_merge(sums, prior) == max(worth, key=worth.get)
    down = merge_sums_to(sums, 2, prior)
    np.testing.assert_allclose(down.sum(axis=1), sums.sum(axis=1), rtol=1e-12)
    step = merge_sums(sums, *cheapest_merge(sums, prior))
    np.testing.assert_allclose(down, merge_sums(step, *cheapest_merge(step, prior)), rtol=1e-12)


def test_strength_is_learned_from_features_alone():
    even = mixed_rows(600, k=1, d=0, seed=2)
    parted = mixed_rows(600, k=3, d=0, seed=2)
    strengths = []
    for matrix, table, _ in (even, parted):
        blocks = mixed_blocks(matrix, table)
        labels = np.random.default_rng(0).integers(0, 3, 600) if matrix is even[0] else parted[2]
        posterior = np.eye(3)[labels]
        values = gather_rows(blocks).values
        rows = [
            traits.statistics(v, c).T @ posterior
            for v, c in zip(blocks.variables, values.T, strict=True)
        ]
        sums = np.concatenate([*rows, posterior.sum(axis=0)[None]])
        strengths.append(learn_strength(sums, np.empty(0), 600.0, blocks.variables))
    assert strengths[0] > 5 * strengths[1]


def test_the_rows_that_stand_for_all_keep_their_values():
    matrix, table, _ = mixed_rows(3000)
    blocks = mixed_blocks(matrix, table)
    first = prevalence(blocks)
    order = np.random.default_rng(1).permutation(3000)
    mixed = mixed_blocks(matrix[order], FeatureTable(table.features, table.values[order]))
    one, two = thin_rows(blocks, first, 500, None), thin_rows(mixed, first, 500, None)
    assert 350 < one.n_rows < 650
    assert one.variables == blocks.variables
    left, right = gather_rows(one), gather_rows(two)
    assert np.array_equal(
        np.sort(left.values, axis=0), np.sort(right.values, axis=0), equal_nan=True
    )
    assert left.weights.sum() == right.weights.sum()
    assert np.array_equal(
        row_uniforms(blocks, first, None)[order], row_uniforms(mixed, first, None)
    )


def test_views_hold_zeros_and_ones_and_lead_back(blocks):
    view = binarise(blocks)
    assert view.n_columns == 6 + 4 + 3 + 4 + 2 + 4
    assert drop_features(blocks).n_columns == 6
    assert max_clusters(blocks) == 6 + 4 + 3 + 4 + 2 + 4
    assert not view.variables
    rng = np.random.default_rng(0)
    binary = Mixture(np.full(2, 0.5), rng.uniform(0.2, 0.8, (2, view.n_columns)))
    posterior, _ = binary.posterior(gather_rows(view))
    model = transfer_clusters(binary, view, blocks, None)
    np.testing.assert_allclose(model.weights, posterior.mean(axis=0), atol=1e-9)
    ages = gather_rows(blocks).values[:, 0]
    there = ~np.isnan(ages)
    mean = (posterior[there].T @ ages[there]) / posterior[there].sum(axis=0)
    np.testing.assert_allclose(model.parameters[:, 0], mean, atol=1e-7)


def test_balance_says_what_separates(drawn):
    matrix, table, _ = drawn
    same = np.random.default_rng(0).normal(size=table.values.shape[0])
    values = np.column_stack([table.values[:, 0], same])
    features = (Feature("age", "number"), Feature("noise", "number"))
    blocks = mixed_blocks(matrix, FeatureTable(features, values))
    model = em(blocks, some_model(blocks)).model
    codes, (age, noise) = balance(model, blocks)
    assert codes + age + noise == pytest.approx(1)
    assert age > 10 * noise
    half = tuple(replace(variable, influence=0.5) for variable in blocks.variables)
    tempered = replace(model, variables=half)
    less = balance(tempered, replace(blocks, variables=half))
    assert less[0] > codes
    alone = Mixture(np.ones(1), model.means[:1], model.variables, model.parameters[:1])
    assert balance(alone, blocks) == (0.0, (0.0, 0.0))


def test_posteriors_of_the_true_model_are_not_tempered():
    matrix, table, _ = mixed_rows(4000, seed=5)
    blocks = mixed_blocks(matrix, table)
    assert temperature(em(blocks, some_model(blocks)).model, blocks) > 0.9


def test_a_bundle_of_copies_is_tempered():
    matrix, table, _ = mixed_rows(2000, d=0, seed=5)
    features = tuple(Feature(f"copy {i}", "number") for i in range(6))
    copies = np.repeat(table.values[:, :1] + np.random.default_rng(0).normal(0, 5, (2000, 1)), 6, 1)
    blocks = mixed_blocks(matrix, FeatureTable(features, copies))
    assert temperature(em(blocks, some_model(blocks, 2)).model, blocks) < 0.5


def test_features_tell_clusters_apart_where_codes_do_not(blocks):
    model = some_model(blocks, 2)
    same = replace(model, means=np.tile(model.means[:1], (2, 1)))
    assert collapse_warning(same, 1000.0) is None
    alike = replace(same, parameters=np.tile(model.parameters[:1], (2, 1)))
    assert "have the same profile" in collapse_warning(alike, 1000.0)


def test_a_mixture_without_its_features_is_refused(blocks):
    model = some_model(blocks)
    with pytest.raises(InputError, match="expected parameters of shape"):
        Mixture(model.weights, model.means, blocks.variables)
    wrong = model.parameters.copy()
    wrong[0, 1] = -1.0
    with pytest.raises(InputError, match="'age' to have finite means, and variances above 0"):
        replace(model, parameters=wrong)
    with pytest.raises(InputError, match="5 features that the model has"):
        expect(model, drop_features(blocks))
    rows = gather_rows(drop_features(blocks))
    with pytest.raises(InputError, match="values of 5 features"):
        model.posterior(Rows(rows.indptr, rows.indices, rows.weights))


def test_features_of_other_rows_are_refused(drawn):
    matrix, table, _ = drawn
    with pytest.raises(InputError, match="features of 300 rows, got those of 299"):
        mixed_blocks(matrix, FeatureTable(table.features, table.values[1:]))


def test_a_larger_count_than_was_known_has_its_density(blocks, drawn):
    matrix, table, _ = drawn
    values = table.values[:5].copy()
    values[:, 2] = 40.0
    seen = prepare_for(blocks.variables, FeatureTable(FEATURES, values))
    model = some_model(blocks)
    rows = gather_rows(blocks)
    indptr = rows.indptr[:6]
    part = Rows(indptr, rows.indices[: indptr[-1]], np.empty(0), seen.values)
    joint = dense_density(model, matrix[:5], FeatureTable(FEATURES, values))
    np.testing.assert_allclose(model.posterior(part)[1], logsumexp(joint, axis=1), atol=1e-9)


def test_a_model_is_applied_by_the_names_of_features_and_levels(blocks, drawn):
    _, table, _ = drawn
    own = prepare_for(blocks.variables, table).values
    features = [*reversed(FEATURES)]
    at = [FEATURES.index(feature) for feature in features]
    place = features.index(FEATURES[1])
    features[place] = replace(FEATURES[1], levels=("c", "new", "a", "b"))
    values = table.values[:, at].copy()
    values[:, place] = np.array([2.0, 3.0, 0.0, np.nan])[
        np.where(np.isnan(values[:, place]), 3, values[:, place]).astype(int)
    ]
    again = prepare_for(blocks.variables, FeatureTable(tuple(features), values)).values
    assert np.array_equal(own, again, equal_nan=True)
    values[0, place] = 1.0
    with pytest.warns(ComorbWarning, match="'race' has the level new .* 1 values count as missing"):
        lost = prepare_for(blocks.variables, FeatureTable(tuple(features), values)).values
    assert np.isnan(lost[0, 1])


@pytest.mark.parametrize(
    ("features", "said"),
    [
        (FEATURES[1:], "expected the feature 'age'"),
        ((Feature("age", "count"), *FEATURES[1:]), "'age' to be a number, .* got a count"),
    ],
)
def test_a_table_without_what_the_model_needs_is_refused(blocks, features, said):
    values = np.zeros((2, len(features)))
    with pytest.raises(InputError, match=said):
        prepare_for(blocks.variables, FeatureTable(features, values))


@pytest.mark.parametrize(
    ("feature", "value", "said"),
    [
        (Feature("hba1c", "number"), np.inf, "column 'hba1c' holds a number that is infinite"),
        (Feature("stay", "count"), -1.0, "'stay' to hold counts: .* got -1; mend it"),
        (Feature("stay", "count"), 1.5, "'stay' to hold counts: .* got 1.5"),
        (Feature("cost", "count"), 1e6, "counts up to 65,535 in column 'cost', got 1e.06"),
        (Feature("crp", "number", (), "log"), 0.0, "above 0 in column 'crp', whose logarithm"),
        (Feature("sex", "binary", ("f", "m")), 2.0, "levels, 0 to 1, in column 'sex'"),
    ],
)
def test_values_that_a_feature_cannot_have_are_named(feature, value, said):
    check_values(feature, np.array([np.nan, 1.0]))
    with pytest.raises(InputError, match=said):
        check_values(feature, np.array([1.0, value]))
