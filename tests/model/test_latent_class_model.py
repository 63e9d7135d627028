"""LatentClassModel: tables of every sort, kinds, properties, figures of peers, bad input.

With the modules tables, features and mixture_estimator.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from comorb import BernoulliMixture, LatentClassModel
from comorb.errors import ComorbWarning, InputError
from comorb.model.diagnostics import adjusted_rand
from comorb.model.emissions.base import Feature, FeatureTable
from comorb.model.frames import columns_of, infer_kind, make_feature
from tests.model.mixed_rows import mixed_rows

pytestmark = pytest.mark.compiled

LCA = Path(__file__).parents[3] / "shared" / "data" / "lca"
KINDS = {
    "age": "number",
    "race": "category",
    "visits": "count",
    "smoker": "binary",
    "crp": "number",
}
LOG = {"crp": "log"}


@pytest.fixture(scope="module")
def drawn():
    return mixed_rows(300, d=20)


@pytest.fixture(scope="module")
def columns(drawn):
    return drawn[1].columns()


@pytest.fixture(scope="module")
def fitted(columns) -> LatentClassModel:
    return LatentClassModel(3, KINDS, transforms=LOG, n_jobs=1).fit(columns)


def read(name):
    if not (LCA / name).exists():
        pytest.skip(f"needs {name} in ../shared/data/lca")
    header, *rows = csv.reader((LCA / name).read_text().splitlines())
    return {
        title: [None if cell in ("", "NA") else cell for cell in column]
        for title, column in zip(header, zip(*rows, strict=True), strict=True)
    }


@pytest.mark.parametrize(("k", "value", "count"), [(2, -6516.216, 45), (3, -6519.699, 68)])
def test_heart_has_the_published_likelihood(k, value, count):
    table = read("heart.csv")
    del table["Class"]
    table["Age"][0] = None
    kinds = dict.fromkeys(table, "category") | {"Age": "count"}
    numbers = ("RestBloodPressure", "SerumCholestoral", "MaxHeartRate")
    model = LatentClassModel(k, kinds | dict.fromkeys(numbers, "number"), smoothing=0).fit(table)
    assert model.n_parameters_ == count
    assert model.log_likelihood_ - count / 2 * np.log(270) == pytest.approx(value, abs=6e-4)
    assert model.bic(table) == pytest.approx(-2 * value, abs=2e-3)
    if k == 2:
        assert model.log_likelihood_ == pytest.approx(-6390.251, abs=6e-4)


def test_lsay_with_gaps_has_the_published_likelihood():
    table = read("lsay.csv")
    items = ["enjoym", "goodm", "undrstdm", "nervousm", "scaredm"]
    rows = [one for one in zip(*(table[item] for item in items), strict=True) if any(one)]
    table = dict(zip(items, map(list, zip(*rows, strict=True)), strict=True))
    model = LatentClassModel(4, dict.fromkeys(items, "binary"), smoothing=0).fit(table)
    assert len(rows) == 2675
    assert model.log_likelihood_ == pytest.approx(-7062.701, abs=6e-4)


def test_gss82_has_the_published_likelihood():
    table = read("gss82.csv")
    model = LatentClassModel(3, dict.fromkeys(table, "category"), smoothing=0).fit(table)
    assert model.log_likelihood_ == pytest.approx(-2754.5454, abs=6e-5)


def test_the_clusters_come_out_and_people_read_their_units(drawn, fitted, columns):
    _, _, labels = drawn
    assert adjusted_rand(fitted.predict(columns), labels) > 0.75
    told = fitted.parameters_
    assert np.sort(told["age"]["mean"]) == pytest.approx([40, 55, 70], abs=2.5)
    assert set(told["race"]) == {"a", "b", "c"}
    assert set(told["crp"]) == {"median", "low", "high"}
    np.testing.assert_allclose(told["smoker"]["no"] + told["smoker"]["yes"], 1)
    assert np.sort(told["visits"]["mean"]) == pytest.approx([1, 3, 5], abs=0.6)
    assert fitted.kinds_ == KINDS
    assert fitted.n_features_in_ == 5
    assert fitted.means_.shape == (3, 0)


def frames(columns):
    yield pd.DataFrame(columns)
    yield pd.DataFrame(columns).astype({"visits": "Int64", "race": "category"})
    plain = {name: np.array(column, dtype=object).tolist() for name, column in columns.items()}
    blank = {
        name: [None if one is None or one != one else one for one in column]
        for name, column in plain.items()
    }
    yield pl.DataFrame(blank)
    yield pa.table(blank)


def test_every_sort_of_table_is_the_same_table(columns, fitted):
    for frame in frames(columns):
        assert np.array_equal(fitted.predict_proba(frame), fitted.predict_proba(columns))
        for name, column in columns_of(frame).items():
            one = make_feature(name, column, KINDS[name])
            two = make_feature(name, columns[name], KINDS[name])
            assert one[0] == two[0]
            assert np.array_equal(one[1], two[1], equal_nan=True)
    array = np.column_stack([columns["age"], columns["visits"]])
    kinds = {"x0": "number", "x1": "count"}
    named = {"age": "number", "visits": "count"}
    one = LatentClassModel(2, kinds, init="asvtd").fit(array)
    two = LatentClassModel(2, named, init="asvtd").fit(
        pd.DataFrame(array, columns=["age", "visits"])
    )
    assert one.traits_.tobytes() == two.traits_.tobytes()


def test_codes_and_a_table_are_fitted_together(drawn):
    matrix, table, labels = drawn
    model = LatentClassModel(3).fit((matrix, table))
    assert model.means_.shape == (3, 20)
    assert adjusted_rand(model.predict((matrix, table)), labels) > 0.9
    assert model.score((matrix, table)) == pytest.approx(model.log_likelihood_ / 300)
    with pytest.raises(InputError, match="expected 20 codes, as the model was fitted with, got 5"):
        model.predict((matrix[:, :5], table))


def test_codes_alone_are_the_bernoulli_mixture(drawn):
    matrix, _, _ = drawn
    one, two = LatentClassModel(3).fit(matrix), BernoulliMixture(3).fit(matrix)
    assert one.means_.tobytes() == two.means_.tobytes()
    assert one.log_likelihood_ == two.log_likelihood_


def test_order_weights_and_threads_change_nothing(drawn):
    matrix, table, _ = drawn
    whole = LatentClassModel(3).fit((matrix, table))
    order = np.random.default_rng(3).permutation(300)
    shuffled = FeatureTable(table.features, table.values[order])
    again = LatentClassModel(3, n_jobs=2).fit((matrix[order], shuffled))
    assert again.traits_.tobytes() == whole.traits_.tobytes()
    assert again.means_.tobytes() == whole.means_.tobytes()
    twice = np.repeat(np.arange(300), 2)
    doubled = LatentClassModel(3).fit(
        (matrix[twice], FeatureTable(table.features, table.values[twice]))
    )
    heavy = LatentClassModel(3).fit((matrix, table), sample_weight=np.full(300, 2.0))
    np.testing.assert_allclose(doubled.traits_, heavy.traits_, atol=1e-3)
    places = [4, 2, 0, 3, 1]
    moved = FeatureTable(tuple(table.features[at] for at in places), table.values[:, places])
    turned = LatentClassModel(3).fit((matrix, moved))
    np.testing.assert_allclose(turned.weights_, whole.weights_, atol=1e-3)
    for name, told in whole.parameters_.items():
        for key, values in told.items():
            np.testing.assert_allclose(turned.parameters_[name][key], values, rtol=0.01)


def test_influence_lets_a_feature_say_less(columns):
    settings = {"transforms": LOG, "init": "asvtd"}
    strong = LatentClassModel(3, KINDS, **settings).fit(columns)
    weak = LatentClassModel(3, KINDS, influence={"age": 1e-3}, **settings).fit(columns)
    spread = [np.ptp(model.parameters_["age"]["mean"]) for model in (strong, weak)]
    assert spread[1] < 0.7 * spread[0]


def test_the_number_of_clusters_is_chosen():
    matrix, table, _ = mixed_rows(400, d=12, k=2, seed=3)
    model = LatentClassModel().fit((matrix, table))
    assert model.weights_.size == model.choice_.best >= 2
    assert model.choice_.models[2].variables == model.variables_


def test_draws_can_be_fitted_again(fitted, drawn):
    table, labels = fitted.sample(500, seed=1)
    assert isinstance(table, FeatureTable)
    assert adjusted_rand(fitted.predict(table), labels) > 0.6
    again, _ = fitted.sample(500, seed=1)
    assert np.array_equal(table.values, again.values)
    matrix, features, _ = drawn
    (codes, beside), _ = LatentClassModel(2, init="asvtd").fit((matrix, features)).sample(7)
    assert codes.shape == (7, 20)
    assert beside.values.shape == (7, 5)
    assert LatentClassModel(2).fit(matrix).sample(4)[0].shape == (4, 20)


def test_what_is_inferred_is_told_in_one_line(columns, capsys):
    plain = {name: columns[name] for name in ("age", "race", "visits", "smoker")}
    model = LatentClassModel(2, {"age": "number"}, init="asvtd").fit(plain)
    assert capsys.readouterr().err == (
        "kinds inferred: race category, visits number (whole numbers), smoker category; if whole "
        "numbers are counts or categories, say so in kinds\n"
    )
    assert model.kinds_["visits"] == "number"
    LatentClassModel(2, {name: KINDS[name] for name in plain}, init="asvtd").fit(plain)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False, None], "binary"),
        ([0, 1, 1], "binary"),
        ([0.0, 1.0, np.nan], "binary"),
        (["a", "b", ""], "category"),
        ([1, 2, 7], "number"),
        ([1.5, 2.0, np.nan], "number"),
        ([pd.Timestamp(2020, 1, 1), None], "category"),
    ],
)
def test_kinds_are_inferred(values, kind):
    assert infer_kind(columns_of({"x": values})["x"])[0] == kind


def test_levels_do_not_depend_on_how_they_are_written():
    feature, values = make_feature("stage", np.array([2.0, 10.0, 1.0, np.nan]), "category")
    assert feature == Feature("stage", "category", ("1", "2", "10"))
    assert values[:3].tolist() == [1, 2, 0]
    assert np.isnan(values[3])
    texts, _ = make_feature("stage", np.array(["2", "10", "1"], dtype=object), "category")
    assert texts == feature


def test_a_level_unseen_at_fit_is_missing_with_a_warning(fitted, columns):
    other = dict(columns) | {"race": np.array(["z"] * 300, dtype=object)}
    with pytest.warns(ComorbWarning, match="'race' has the level z that the model was not fitted"):
        unseen = fitted.predict_proba(other)
    blank = dict(columns) | {"race": np.array([None] * 300, dtype=object)}
    assert np.array_equal(unseen, fitted.predict_proba(blank))


BAD = {
    "infinite": (
        {"age": [1.0, np.inf, 3.0] * 9},
        {"age": "number"},
        "'age' holds a number that is",
    ),
    "text": (
        {"age": [1, "old", 3] * 9},
        {"age": "number"},
        "numbers in column 'age', .* got 'old'",
    ),
    "negative": ({"stay": [1, -2, 3] * 9}, {"stay": "count"}, "'stay' to hold counts: .* got -2"),
    "no counts": ({"stay": [1, 2.5, 3] * 9}, {"stay": "count"}, "'stay' to hold counts"),
    "not binary": ({"s": [1, 2, 3] * 9}, {"s": "binary"}, "two values in column 's', .* got 3"),
    "an id": ({"id": [*range(27)]}, {"id": "category"}, "a few levels in column 'id', .* got 27"),
    "a list": ({"x": [[1], [2], [3]] * 9}, {"x": "number"}, "texts and numbers .* got a list"),
    "no kind": ({"x": [1, 2, 3] * 9}, {"x": "float"}, "the kind of column 'x' to be one of"),
    "no column": ({"x": [1, 2, 3] * 9}, {"y": "number"}, "expected kinds of columns .* got 'y'"),
    "empty": ({"x": [None] * 27}, {"x": "number"}, "column 'x' has no value in 27 rows; leave"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name):
    table, kinds, said = BAD[name]
    table = {"other": [0.5, 1.5, 2.25] * 9} | table
    with pytest.raises(InputError, match=said):
        LatentClassModel(2, {"other": "number"} | kinds).fit(table)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([4.0] * 40, "'x' has one value alone and separates no clusters; leave it out"),
        ([1.0, 2.0, *[None] * 38], "'x' has 2 values in 40 rows and is almost empty"),
        ([1.0, *np.linspace(1, 2, 38), 1e4], r"far from normal .* transforms=.'x': 'log'."),
        ([-1.0, *np.linspace(1, 2, 38), 1e4], r"far from normal .* transforms=.'x': 'rank'."),
    ],
)
def test_a_column_that_says_little_is_named(values, said):
    table = {"x": values, "y": np.r_[np.zeros(20), np.ones(20)] + np.linspace(0, 0.1, 40)}
    with pytest.warns(ComorbWarning, match=said):
        model = LatentClassModel(2, {"x": "number", "y": "number"}).fit(table)
    assert adjusted_rand(model.predict(table), np.repeat([0, 1], 20)) > 0.5


def test_names_and_parameters_that_make_no_sense_are_refused(columns):
    twice = pd.DataFrame([[1.0, 2.0]] * 20, columns=["x", "x"])
    with pytest.raises(InputError, match="different names, got 'x' more than once"):
        LatentClassModel(1).fit(twice)
    for kinds, options, said in [
        ("guess", {}, "kinds to be 'infer' or a dict"),
        (KINDS, {"transforms": {"visits": "log"}}, "transform of column 'visits'"),
        (KINDS, {"transforms": {"height": "log"}}, "expected transforms of columns"),
        (KINDS, {"influence": {"height": 1.0}}, "influence of a feature, got 'height'"),
        (KINDS, {"influence": {"age": -1.0}}, "influence of 'age' to be above 0"),
    ]:
        with pytest.raises(InputError, match=said):
            LatentClassModel(2, kinds, **options).fit(columns)


def test_more_clusters_than_columns_can_be_asked_for(columns):
    table = {name: columns[name] for name in ("age", "visits")}
    kinds = {name: KINDS[name] for name in table}
    assert LatentClassModel(3, kinds, init="asvtd").fit(table).weights_.size == 3
    with pytest.raises(InputError, match="from 1 to 8, for 300 rows and 2 columns"):
        LatentClassModel(9, kinds).fit(table)
