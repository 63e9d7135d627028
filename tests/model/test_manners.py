"""Manners of the estimators beyond scikit-learn's checks: pipelines, weights, arrays of text."""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from comorb import BernoulliMixture, LatentClassModel, choose_k, datasets, read_records
from comorb.errors import ComorbWarning, InputError
from comorb.model.blocks import map_blocks, map_tasks
from comorb.model.mixture import Mixture
from comorb.model.threads import workers
from tests.model.conftest import dense_to_blocks

WEIGHTS = np.array([0.5, 0.3, 0.2])
MEANS = np.clip(np.eye(3).repeat(5, axis=1), 0.08, 0.75)


def drawn(n, seed):
    return Mixture(WEIGHTS, MEANS).sample(n, seed)[0]


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


def test_labels_are_those_of_the_training_rows():
    rows = drawn(400, 2)
    model = BernoulliMixture(3).fit(rows)
    np.testing.assert_array_equal(model.labels_, model.predict(rows))


@pytest.mark.parametrize("criterion", ["score", "aic", "bic", "icl"])
def test_a_weighted_row_counts_as_so_many(criterion):
    rows = drawn(300, 3)
    counts = np.random.default_rng(4).integers(1, 40, 300)
    model = BernoulliMixture(3).fit(rows, sample_weight=counts)
    weighted = getattr(model, criterion)(rows, sample_weight=counts)
    repeated = getattr(model, criterion)(rows[np.repeat(np.arange(300), counts)])
    assert weighted == pytest.approx(repeated)
    assert weighted != pytest.approx(getattr(model, criterion)(rows), rel=1e-3)


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


def test_rows_that_are_repeated_change_nothing_that_was_learned():
    rows = drawn(3000, 6)
    once = BernoulliMixture(3, smoothing=0).fit(rows)
    again = BernoulliMixture(3, smoothing=0).fit(rows).partial_fit(rows)
    np.testing.assert_allclose(again.means_, once.means_, atol=2e-4)


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
