from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score

from comorb import BernoulliMixture, Mixture
from comorb.errors import ComorbWarning, InputError
from tests.model.conftest import draw, random_mixture

pytestmark = pytest.mark.compiled


@pytest.fixture
def fitted(sample):
    return BernoulliMixture(3).fit(sample)


def test_clear_clusters_are_found():
    means = np.full((3, 12), 0.05)
    for j in range(3):
        means[j, 4 * j : 4 * j + 4] = 0.9
    matrix, labels = draw(Mixture(np.array([0.5, 0.3, 0.2]), means), 300)
    model = BernoulliMixture(3).fit(matrix)
    assert adjusted_rand_score(labels, model.predict(matrix)) > 0.95
    np.testing.assert_allclose(model.weights_, [0.5, 0.3, 0.2], atol=0.08)
    assert model.converged_


def as_frame_names(d):
    return [f"code{i}" for i in range(d)]


@pytest.mark.parametrize(
    "convert",
    [
        np.asarray,
        lambda x: x.astype(bool),
        lambda x: x.astype(float),
        lambda x: x.astype(object),
        lambda x: x.tolist(),
        sparse.csr_array,
        sparse.csc_matrix,
        sparse.coo_array,
        sparse.lil_array,
        sparse.dok_array,
        sparse.bsr_array,
        lambda x: pd.DataFrame(x, columns=as_frame_names(x.shape[1])),
        lambda x: pl.DataFrame(x, schema=as_frame_names(x.shape[1])),
    ],
    ids=lambda f: getattr(f, "__name__", "?"),
)
def test_every_kind_of_matrix_gives_the_same_bits(sample, fitted, convert):
    model = BernoulliMixture(3).fit(convert(sample))
    assert model.means_.tobytes() == fitted.means_.tobytes()
    np.testing.assert_array_equal(model.predict(convert(sample)), fitted.predict(sample))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_the_names_of_the_columns_are_kept(sample, frame):
    data = frame(sample)
    data.columns = as_frame_names(12)
    model = BernoulliMixture(2).fit(data)
    assert model.feature_names_in_.tolist() == as_frame_names(12)
    renamed = frame(sample)
    renamed.columns = [f"other{i}" for i in range(12)]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(renamed)


def test_explicit_zeros_and_repeated_entries_are_understood(sample, fitted):
    matrix = sparse.csr_array(sample)
    zeros = sparse.csr_array((np.zeros(300), (np.arange(300), np.zeros(300, int))), shape=(300, 12))
    padded = sparse.coo_array(matrix) + 0
    padded = sparse.csr_array(
        (
            np.concatenate([padded.tocoo().data, zeros.tocoo().data]),
            (
                np.concatenate([padded.tocoo().row, np.arange(300)]),
                np.concatenate([padded.tocoo().col, np.zeros(300, int)]),
            ),
        ),
        shape=(300, 12),
    )
    before = padded.copy()
    assert BernoulliMixture(3).fit(padded).means_.tobytes() == fitted.means_.tobytes()
    assert (padded.indices == before.indices).all()


def test_fit_predict_is_fit_then_predict(sample):
    labels = BernoulliMixture(3).fit_predict(sample)
    np.testing.assert_array_equal(labels, BernoulliMixture(3).fit(sample).predict(sample))


def test_the_log_likelihood_is_that_of_the_final_model(fitted, sample):
    assert fitted.score_samples(sample).sum() == pytest.approx(fitted.log_likelihood_, rel=1e-12)
    assert fitted.score(sample) * 300 == pytest.approx(fitted.log_likelihood_, rel=1e-12)
    plain = BernoulliMixture(3, smoothing=0).fit(sample)
    assert plain.history_[-1] * 300 == pytest.approx(plain.log_likelihood_, rel=1e-12)
    assert fitted.n_iter_ >= fitted.history_.size - 1


def test_the_criteria_are_their_formulas(fitted, sample):
    deviance, parameters = -2 * fitted.log_likelihood_, 2 + 3 * 12
    assert fitted.aic(sample) == pytest.approx(deviance + 2 * parameters)
    assert fitted.bic(sample) == pytest.approx(deviance + np.log(300) * parameters)
    p = fitted.predict_proba(sample)
    entropy = -np.sum(p[p > 0] * np.log(p[p > 0]))
    assert fitted.icl(sample) == pytest.approx(fitted.bic(sample) + 2 * entropy)


def test_a_sample_of_the_fit_is_a_matrix_it_takes(fitted):
    matrix, labels = fitted.sample(40, seed=2)
    assert matrix.shape == (40, 12)
    assert fitted.predict(matrix).shape == labels.shape == (40,)


def test_clusters_are_ordered_by_size(fitted):
    assert (np.diff(fitted.weights_) <= 0).all()


def test_permuting_the_columns_permutes_the_answer(sample, fitted):
    order = np.random.default_rng(0).permutation(12)
    model = BernoulliMixture(3).fit(sample[:, order])
    np.testing.assert_allclose(model.means_, fitted.means_[:, order], atol=1e-6)


def test_the_number_of_threads_changes_nothing(sample, fitted):
    for jobs in (1, 2, 4):
        model = BernoulliMixture(3, n_jobs=jobs).fit(sample)
        assert model.means_.tobytes() == fitted.means_.tobytes()


def test_weights_count_as_repeated_rows(sample):
    weights = np.random.default_rng(1).integers(0, 3, size=300)
    weighted = BernoulliMixture(3).fit(sample, sample_weight=weights)
    repeated = BernoulliMixture(3).fit(np.repeat(sample, weights, axis=0))
    np.testing.assert_allclose(weighted.means_, repeated.means_, atol=1e-6)


def test_smoothing_draws_rare_codes_to_their_prevalence(sample):
    plain = BernoulliMixture(3, smoothing=0).fit(sample)
    smooth = BernoulliMixture(3, smoothing=5.0, init=plain.mixture_)
    smooth.fit(sample)
    overall = sample.mean(axis=0)
    assert np.abs(smooth.means_ - overall).mean() < np.abs(plain.means_ - overall).mean()


def test_a_mixture_can_be_the_start(sample, truth):
    model = BernoulliMixture(3, init=truth, max_iter=0).fit(sample)
    np.testing.assert_allclose(model.means_, truth.ordered().means)


def test_verbose_tells_each_pass_in_one_line(sample, capsys):
    model = BernoulliMixture(2, verbose=1).fit(sample)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\r") == model.n_iter_ + 1
    assert told.err.count("\n") == 1


def test_no_convergence_is_a_warning(sample):
    with pytest.warns(ConvergenceWarning, match="did not converge in 2 passes; raise max_iter"):
        BernoulliMixture(3, max_iter=2).fit(sample)


@pytest.mark.parametrize(
    ("k", "message"),
    [
        (0, "n_components, to be 'auto' or a whole number from 1 to 12, for 300 rows"),
        (13, "n_components, to be 'auto' or a whole number from 1 to 12.*got 13"),
        (2.5, "n_components, to be 'auto' or a whole number from 1 to 12.*got 2.5"),
        (True, "n_components, to be 'auto' or a whole number from 1 to 12.*got True"),
    ],
)
def test_a_number_of_clusters_that_can_not_be(sample, k, message):
    with pytest.raises(InputError, match=message):
        BernoulliMixture(k).fit(sample)


def test_a_collapsed_fit_is_said():
    independent = np.random.default_rng(0).integers(0, 2, size=(200, 4))
    start = Mixture(np.array([0.5, 0.5]), np.full((2, 4), 0.5))
    with pytest.warns(ComorbWarning, match="clusters 1 and 2 have the same profile"):
        BernoulliMixture(2, init=start).fit(independent)


def test_more_clusters_than_rows():
    with pytest.raises(InputError, match="from 1 to 2, for 2 rows and 3 columns, got 3"):
        BernoulliMixture(3).fit([[1, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2, "expected a matrix of zeros and ones, found 2 among 1 other values; turn each"),
        (-1, "found -1 among 1 other values"),
        (0.5, "found 0.5 among 1 other values"),
        (np.nan, "found NaN among 1 other values"),
        (np.inf, "found inf among 1 other values"),
    ],
)
def test_values_other_than_zero_and_one(sample, value, message):
    matrix = sample.astype(type(value))
    matrix[3, 4] = value
    for data in (matrix, sparse.csc_array(matrix)):
        with pytest.raises(InputError, match=message):
            BernoulliMixture(2).fit(data)


def test_words_instead_of_numbers():
    with pytest.raises(InputError, match="found text; give a table of records to read_records"):
        BernoulliMixture(2).fit([["I10", "E11"], ["N18", "I50"]])


def test_an_empty_matrix():
    with pytest.raises(ValueError, match="0 sample"):
        BernoulliMixture(2).fit(np.empty((0, 5)))
    with pytest.raises(ValueError, match="0 feature"):
        BernoulliMixture(2).fit(np.empty((5, 0)))


def test_another_number_of_columns_at_predict(fitted, sample):
    with pytest.raises(ValueError, match="X has 11 features, but BernoulliMixture is expecting 12"):
        fitted.predict(sample[:, :11])


def test_predict_before_fit(sample):
    with pytest.raises(NotFittedError):
        BernoulliMixture(2).predict(sample)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"init": "kmeans"}, "expected init to be 'best', 'asvtd' or a Mixture, got 'kmeans'"),
        ({"init": random_mixture(2, 5, 0)}, r"expected init to have means of shape \(2, 12\)"),
        ({"smoothing": -1.0}, "expected smoothing to be 'auto' or zero or more, got -1.0"),
        ({"stop": "soon"}, "expected stop to be 'likelihood' or 'weights', got 'soon'"),
        ({"n_jobs": 0}, "expected n_jobs to be a positive whole number or -1, got 0"),
    ],
)
def test_parameters_that_make_no_sense(sample, parameters, message):
    with pytest.raises(InputError, match=message):
        BernoulliMixture(2, **parameters).fit(sample)


ODD = {
    "all-zero rows": (np.vstack([np.zeros((20, 4)), np.eye(4)]), 2),
    "duplicate rows": (np.tile([[1, 0, 1], [0, 1, 1]], (30, 1)), 2),
    "a column of ones": (np.hstack([np.ones((40, 1)), np.tile(np.eye(4), (10, 1))]), 3),
    "a column of zeros": (np.hstack([np.zeros((40, 1)), np.tile(np.eye(4), (10, 1))]), 3),
    "one cluster": (np.tile(np.eye(3), (5, 1)), 1),
    "one column": (np.array([[1], [0], [1]]), 1),
    "as many clusters as rows": (np.eye(3), 3),
    "one row": (np.array([[1, 0, 1]]), 1),
    "nothing but zeros": (np.zeros((6, 3)), 2),
    "nothing but ones": (np.ones((6, 3)), 2),
    "more clusters than the rank": (np.tile([[1, 0, 0, 0], [0, 1, 1, 0]], (20, 1)), 4),
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.filterwarnings("ignore::comorb.errors.ComorbWarning")
def test_odd_data_give_a_model_and_never_nan(case):
    matrix, k = ODD[case]
    model = BernoulliMixture(k).fit(matrix)
    assert np.isfinite(model.means_).all()
    assert model.weights_.sum() == pytest.approx(1)
    assert np.isfinite(model.score_samples(matrix)).all()
    assert np.isfinite(model.predict_proba(1 - matrix)).all()


@pytest.mark.filterwarnings("ignore:.*ask for fewer than:comorb.errors.ComorbWarning")
@pytest.mark.parametrize("case", ["nothing but zeros", "more clusters than the rank"])
def test_a_weaker_answer_is_said(case):
    matrix, k = ODD[case]
    with pytest.warns(ComorbWarning, match="can be told apart"):
        BernoulliMixture(k).fit(matrix)
