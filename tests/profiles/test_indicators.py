"""Indicators: features ranked, named and counted beside codes."""

import json

import numpy as np
import pyarrow as pa
import pytest

from comorb.model.emissions.base import Feature, FeatureTable
from comorb.model.estimators import LatentClassModel
from comorb.profiles.build import profile as profile_of
from comorb.profiles.indicators import Indicators, in_part
from comorb.profiles.profile import Profile
from comorb.profiles.rules import Condition
from tests.mixed import PREPARATION, SECRET, mixed_table


def indicators_of(feature, values, weights=None):
    table = FeatureTable((feature,), np.array(values, dtype=float)[:, None])
    return Indicators.of(table, np.ones(len(values)) if weights is None else weights)


def test_levels_are_indicators_and_of_yes_and_no_the_yes_is():
    found = indicators_of(Feature("sex", "category", ("F", "M")), [0, 1, np.nan])
    assert [(one.code, one.label) for one in found.indicators] == [
        ("sex=F", "Sex: F"),
        ("sex=M", "Sex: M"),
    ]
    assert found.ones.toarray().tolist() == [[1, 0], [0, 1], [0, 0]]
    yes = indicators_of(Feature("smoker", "binary", ("no", "yes")), [0, 1, np.nan])
    assert [one.label for one in yes.indicators] == ["Smoker"]
    assert yes.ones.toarray().ravel().tolist() == [0, 1, 0]


def test_numbers_are_cut_in_three_at_round_edges():
    values = np.random.default_rng(0).normal(71.234, 9.876, 3000)
    found = indicators_of(Feature("age", "number"), values)
    assert found.edges == ((66.0, 75.0),)
    assert [one.label for one in found.indicators] == ["Age ≤ 66", "Age 66 – 75", "Age > 75"]
    assert found.ones.sum(axis=1).tolist() == [1] * 3000
    shares = found.ones.sum(axis=0) / 3000
    assert (abs(shares - 1 / 3) < 0.04).all()
    assert not np.isin(found.edges[0], values).any()


def test_counts_with_many_ties_have_fewer_parts():
    found = indicators_of(Feature("los", "count"), [0] * 80 + [1] * 10 + [7] * 10)
    assert found.edges == ((0.0,),)
    assert [one.label for one in found.indicators] == ["Length of stay ≤ 0", "Length of stay > 0"]
    assert in_part(np.array([0.0, 1.0, np.nan]), (0.0,), 1).tolist() == [False, True, False]


def test_shares_are_of_the_records_that_have_a_value(mixed):
    cohort, _, profile = mixed
    assert profile.codes[: profile.n_codes] == cohort.codes
    ages = cohort.features.values[:, 0]
    assert sum(profile.overall[list(profile.features[0].columns)]) == pytest.approx(1)
    place = profile.codes.index("sex=F")
    known = cohort.features.values[:, 1]
    assert profile.overall[place] == pytest.approx(
        np.nanmean(known == 0) * 360 / (known >= 0).sum()
    )
    assert profile.totals[place] == (known == 0).sum()
    summary = profile.features[0].summary
    assert summary.known[-1] == np.isfinite(ages).sum()
    assert summary.estimate[0, -1] == pytest.approx(np.nanmean(ages), abs=1e-5)
    assert (profile.low <= profile.prevalence).all()
    assert (profile.prevalence <= profile.high).all()


def test_a_sign_is_relevant_where_it_is_more_common_than_over_all(mixed):
    profile = mixed[2]
    tops = [profile.top(j, n=30).tolist() for j in range(3)]
    signs = [[i for i in top if i >= profile.n_codes] for top in tops]
    assert all(signs)
    for j, own in enumerate(signs):
        assert (profile.low[j, own] >= 1.1 * profile.overall[own]).all()
    assert not any("hba1c" in name for name in profile.cluster_names)
    assert set(profile.common(40)) <= set(range(profile.n_codes))


def test_a_document_keeps_features(mixed):
    profile = mixed[2]
    text = profile.to_json()
    again = Profile.from_json(text)
    assert again.to_json() == text
    assert again.influence == profile.influence
    assert [one["name"] for one in json.loads(text)["features"]] == [
        "age",
        "sex",
        "visits",
        "hba1c",
    ]


def test_protection_covers_features(mixed):
    profile = mixed[2]
    shown = profile.protected()
    assert all(one.model is None for one in shown.features)
    signs = slice(profile.n_codes, None)
    told = shown.counts[:, signs]
    assert (told[~np.isnan(told)] != profile.counts[:, signs][~np.isnan(told)]).any()
    assert ((np.isnan(told)) | (told == 0) | (told >= 11)).all()
    for full, few in zip(profile.features, shown.features, strict=True):
        assert (few.summary.known != full.summary.known).any()
        assert (few.summary.estimate != full.summary.estimate).any()
    assert shown.features[1].influence == round(profile.features[1].influence, 2)


def test_a_level_of_few_records_is_not_named_in_a_protected_profile():
    table = mixed_table()[0]
    sexes = table["sex"].to_pylist()
    sexes[:3] = ["intersex"] * 3
    table = table.set_column(table.column_names.index("sex"), "sex", pa.array(sexes))
    cohort = PREPARATION.cohort(table)
    model = LatentClassModel(2).fit_blocks(cohort.blocks()).mixture_
    full = profile_of(model, cohort, secret=SECRET)
    for place, yes, no in ((0, "has ", "doesn't have "), (full.n_codes, "", "not ")):
        label = full.labels[place]
        assert full.condition_text(Condition(place, True, True)) == yes + label
        assert full.condition_text(Condition(place, False, True)) == no + label
    shown = full.protected()
    assert "intersex" not in shown.to_json()
    assert [code for code in shown.codes if code.startswith("sex=")] == ["sex=F", "sex=M"]
    assert shown.features[1].columns == tuple(
        place for place, code in enumerate(shown.codes) if code.startswith("sex=")
    )
    assert shown.features[1].summary.values == ("F",)
