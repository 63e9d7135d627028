"""BernoulliMixture as an estimator: parameters, pipelines, weights, arrays of text, refusals."""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from comorb import BernoulliMixture, LatentClassModel, choose_k, datasets, read_records
from comorb.errors import ComorbWarning, InputError
from comorb.model.blocks import map_blocks, map_tasks, workers
from comorb.model.mixture import Mixture
from tests.model.conftest import dense_to_blocks, draw, random_mixture

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
        (0, "n_components, to be .* or a whole number from 1 to 12, for 300 rows"),
        (13, "n_components, to be .* or a whole number from 1 to 12.*got 13"),
        (2.5, "n_components, to be .* or a whole number from 1 to 12.*got 2.5"),
        (True, "n_components, to be .* or a whole number from 1 to 12.*got True"),
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


WEIGHTS = np.array([0.5, 0.3, 0.2])
MEANS = np.clip(np.eye(3).repeat(5, axis=1), 0.08, 0.75)


def drawn(n, seed):
    return Mixture(WEIGHTS, MEANS).sample(n, seed)[0]


class Coded:
    """Records with codes, as a cohort has them."""

    def __init__(self, rows, codes):
        self.rows, self.codes = rows, codes

    def blocks(self, variables=None):
        return dense_to_blocks(self.rows)


def test_the_whole_walk_on_few_rows():
    rows = drawn(40, 8).toarray()
    start = Mixture(WEIGHTS, MEANS)
    codes = tuple(f"c{i}" for i in range(15))
    frame, twice = pd.DataFrame(rows, columns=list(codes)), np.full(40, 2.0)
    model = BernoulliMixture(3, init=start, max_iter=3, smoothing=1.0, verbose=1)
    with pytest.warns(ConvergenceWarning):
        model.fit(Coded(rows, codes))
    assert model.transform(Coded(rows, codes)).shape == (40, 3)
    assert list(model.get_feature_names_out()) == [f"bernoullimixture{j}" for j in range(3)]
    np.testing.assert_array_equal(model.predict(Coded(rows[:, ::-1], codes[::-1])), model.labels_)
    with pytest.warns(ComorbWarning, match="doesn't know 1 of the 16 codes"):
        model.predict(Coded(np.hstack([rows, rows[:, :1]]), (*codes, "new")))
    with pytest.raises(InputError, match="knows none"):
        model.predict(Coded(rows[:, :1], ("new",)))
    with pytest.warns(ConvergenceWarning):
        model.partial_fit(frame, sample_weight=twice)
    assert model.bic(frame, sample_weight=twice) > model.bic(frame)
    assert model.icl(frame) > model.bic(frame) > model.aic(frame)
    with pytest.warns(ConvergenceWarning):
        fresh = BernoulliMixture(3, init=start, max_iter=1, smoothing=1.0).partial_fit(rows)
    with pytest.raises(InputError, match="without names"):
        fresh.predict(Coded(rows, codes))
    with pytest.raises(InputError, match="weights of its own"):
        model.fit(Coded(rows, codes), sample_weight=np.ones(40))


@pytest.mark.compiled
def test_posteriors_are_features_of_another_model():
    rows = drawn(600, 1).toarray()
    frame = pd.DataFrame(rows, columns=[f"c{i}" for i in range(15)])
    frame["age"] = np.arange(600) % 90
    codes = list(frame.columns[:15])
    parts = ColumnTransformer(
        [("clusters", BernoulliMixture(3), codes), ("others", "passthrough", ["age"])]
    ).set_output(transform="pandas")
    seen = parts.fit_transform(frame)
    assert list(seen.columns) == [
        *(f"clusters__bernoullimixture{j}" for j in range(3)),
        "others__age",
    ]
    alone = BernoulliMixture(3).fit(frame[codes])
    np.testing.assert_array_equal(seen.iloc[:, :3], alone.predict_proba(frame[codes]))
    outcome = alone.labels_ == 0
    model = make_pipeline(BernoulliMixture(3), LogisticRegression()).fit(rows, outcome)
    assert model.score(rows, outcome) > 0.98
    both = FeatureUnion([("as_is", FunctionTransformer()), ("clusters", BernoulliMixture(3))])
    assert both.fit_transform(rows).shape == (600, 18)


@pytest.mark.compiled
def test_labels_are_those_of_the_training_rows():
    rows = drawn(400, 2)
    model = BernoulliMixture(3).fit(rows)
    np.testing.assert_array_equal(model.labels_, model.predict(rows))


@pytest.mark.compiled
@pytest.mark.parametrize("criterion", ["score", "aic", "bic", "icl"])
def test_a_weighted_row_counts_as_so_many(criterion):
    rows = drawn(300, 3)
    counts = np.random.default_rng(4).integers(1, 40, 300)
    model = BernoulliMixture(3).fit(rows, sample_weight=counts)
    weighted = getattr(model, criterion)(rows, sample_weight=counts)
    repeated = getattr(model, criterion)(rows[np.repeat(np.arange(300), counts)])
    assert weighted == pytest.approx(repeated)
    assert weighted != pytest.approx(getattr(model, criterion)(rows), rel=1e-3)


@pytest.mark.compiled
def test_a_cohort_is_taken_where_rows_are():
    cohort = datasets.heart_failure()
    model = BernoulliMixture(4).fit(cohort)
    plain = BernoulliMixture(4).fit(cohort.matrix)
    np.testing.assert_array_equal(model.means_, plain.means_)
    np.testing.assert_array_equal(model.predict(cohort), model.labels_)
    assert tuple(model.feature_names_in_) == cohort.codes
    fewer = cohort.drop_codes(cohort.codes[3], cohort.codes[11])
    without = cohort.matrix.toarray()
    without[:, [3, 11]] = 0
    np.testing.assert_array_equal(model.predict(fewer), plain.predict(without))
    with pytest.raises(InputError, match="has weights of its own"):
        model.fit(cohort, sample_weight=np.ones(len(cohort)))
    with pytest.raises(InputError, match="fitted to a matrix without names"):
        plain.predict(cohort)


@pytest.mark.compiled
def test_a_cohort_with_other_codes_is_told():
    cohort = datasets.heart_failure()
    common = cohort.drop_rare(2000)
    model = BernoulliMixture(3).fit(common)
    with pytest.warns(ComorbWarning, match="doesn't know"):
        told = model.predict(cohort)
    np.testing.assert_array_equal(told, model.labels_)
    other = read_records(pd.DataFrame({"id": [1, 1, 2], "code": ["A00.0", "B01.1", "C50.9"]}))
    with pytest.raises(InputError, match="knows none of the 3 codes"):
        model.predict(other)


@pytest.mark.compiled
def test_the_features_of_a_cohort_are_learned_by_the_model_of_features():
    rows = pd.DataFrame(
        {
            "id": np.arange(200),
            "code": [["I50.0", "N18.9", "E87.1"], ["E11.9", "E66.0", "I10"]] * 100,
            "age": [50, 51, 80, 83] * 50,
        }
    )
    cohort = read_records(rows.explode("code"), features={"age": "number"})
    model = LatentClassModel(2).fit(cohort)
    assert list(model.kinds_) == ["age"]
    assert len(set(model.labels_)) == 2
    np.testing.assert_array_equal(model.predict(cohort), model.labels_)
    assert BernoulliMixture(2).fit(cohort).variables_ == ()


@pytest.mark.compiled
def test_rows_that_come_later_are_added_to_what_was_learned():
    rows = drawn(6000, 5)
    model = BernoulliMixture(3).partial_fit(rows[:2000])
    np.testing.assert_array_equal(model.means_, BernoulliMixture(3).fit(rows[:2000]).means_)
    before = model.means_
    for start in (2000, 4000):
        model.partial_fit(rows[start : start + 2000])
    whole = BernoulliMixture(3).fit(rows)
    np.testing.assert_allclose(model.means_, whole.means_, atol=0.01)
    assert np.abs(model.means_ - whole.means_).max() < 0.4 * np.abs(before - whole.means_).max()
    np.testing.assert_allclose(model.weights_, whole.weights_, atol=0.01)
    assert (np.diff(model.history_) >= 0).all()
    assert model.labels_.size == 2000


@pytest.mark.compiled
def test_rows_that_are_repeated_change_nothing_that_was_learned():
    rows = drawn(3000, 6)
    once = BernoulliMixture(3, smoothing=0).fit(rows)
    again = BernoulliMixture(3, smoothing=0).fit(rows).partial_fit(rows)
    np.testing.assert_allclose(again.means_, once.means_, atol=2e-4)


@pytest.mark.compiled
def test_more_rows_with_features():
    rng = np.random.default_rng(7)
    group = rng.integers(0, 2, 3000)
    table = pd.DataFrame({"x": rng.normal(group * 4.0), "y": rng.normal(group * -3.0)})
    model = LatentClassModel(2, kinds={"x": "number", "y": "number"}).fit(table[:1000])
    model.partial_fit(table[1000:])
    whole = LatentClassModel(2, kinds={"x": "number", "y": "number"}).fit(table)
    found, wanted = (one.parameters_["x"]["mean"] for one in (model, whole))
    np.testing.assert_allclose(np.sort(found), np.sort(wanted), atol=0.02)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": [0, 1], "b": ["yes", "no"]}),
        np.array([["0", "1"], ["secret", "0"]]),
        np.array([[0, "secret"], [1, 0]], dtype=object),
        [["secret", 1], [0, 1]],
    ],
)
@pytest.mark.parametrize("call", [BernoulliMixture(2).fit, choose_k])
def test_text_is_told_in_our_words_without_a_value(table, call):
    with pytest.raises(InputError, match=r"found text.*read_records") as told:
        call(table)
    assert "secret" not in str(told.value)
    assert ("'b'" in str(told.value)) == isinstance(table, pd.DataFrame)


def test_what_runs_in_threads_ends_with_a_ctrl_c():
    blocks, begun, ended = dense_to_blocks(np.eye(4)), threading.Event(), []

    def forever(_):
        begun.set()
        try:
            while True:
                list(map_blocks(lambda rows: rows, blocks))
        except KeyboardInterrupt:
            ended.append(True)
            raise

    def interrupted():
        with workers(2) as executor:
            executor.submit(map_tasks, forever, [0])
            begun.wait()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert ended == [True]
