"""Profiles and other results as tables of pandas, polars and Arrow, and in notebooks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from comorb import (
    BernoulliMixture,
    Cohort,
    Profile,
    choose_k,
    datasets,
    profile,
    read_records,
    stability,
)
from comorb.errors import InputError
from comorb.model import tabular
from comorb.model.relations.outcomes import OutcomeRelation
from comorb.model.relations.predictors import PredictorRelation, RegressionRelation
from comorb.model.relations.survival import SurvivalRelation
from comorb.model.select_k import Choice
from comorb.profiles.comparison import Comparison
from comorb.records.ledger import Ledger
from comorb.runs.stability import Stability


@pytest.fixture(scope="module")
def cohort():
    return read_records(pa.Table.from_batches(datasets.region(2000))).having("585")


@pytest.fixture(scope="module")
def told(cohort):
    return profile(BernoulliMixture(3).fit(cohort).mixture_, cohort, secret=bytes(32))


@pytest.mark.parametrize("what", ["clusters", "codes", "outcomes"])
def test_a_table_is_the_same_in_every_frame(told, what):
    columns = told.columns(what)
    arrow = told.to_arrow(what)
    assert arrow.to_pydict() == {name: list(values) for name, values in columns.items()}
    assert list(told.to_pandas(what).columns) == list(columns)
    polars = told.to_polars(what)
    assert polars.height == arrow.num_rows == len(told.to_pandas(what))
    with pytest.raises(InputError, match="expected a table out of clusters, codes, outcomes"):
        told.to_pandas("else")


def test_the_rows_of_codes_are_the_figures_of_the_profile(told):
    frame = told.to_pandas("codes").set_index(["cluster", "code"])
    for j, number in enumerate(told.numbers):
        for i in (0, 7, len(told.codes) - 1):
            row = frame.loc[(number, told.codes[i])]
            assert row["prevalence"] == told.prevalence[j, i]
            assert row["relevance"] == told.relevance()[j, i]
            assert row["records"] == told.counts[j, i]


def test_a_protected_profile_tells_nothing_more_in_a_table(told):
    shown = told.protected()
    for column in ("records", "prevalence", "low", "high"):
        cells = np.array(shown.columns("codes")[column], dtype=float)
        own = {"records": "counts"}.get(column, column)
        np.testing.assert_array_equal(cells, getattr(shown, own).ravel())
    outcomes = shown.columns("outcomes")
    assert outcomes["estimate"] != told.columns("outcomes")["estimate"]


def test_corrected_and_naive_outcomes_stand_side_by_side(told):
    frame = told.to_pandas("outcomes")
    one = next(outcome for outcome in told.outcomes if outcome.corrected is not None)
    own = frame[(frame["outcome"] == one.name) & (frame["value"] == one.values[0])]
    np.testing.assert_array_equal(own["estimate"], one.corrected.estimate[0, :-1])
    np.testing.assert_array_equal(own["naive"], one.estimate[0, :-1])


def test_other_results_are_tables_too(cohort):
    choice = choose_k(cohort.matrix, range(1, 4))
    assert choice.to_polars()["k"].to_list() == [1, 2, 3]
    assert isinstance(choice.to_arrow(), pa.Table)
    measured = stability(cohort.matrix, choice.models[3])
    assert measured.to_pandas()["stability"].tolist() == list(measured.jaccard)
    ledger = cohort.ledger.to_pandas()
    assert ledger["after"].tolist() == [line.after for line in cohort.ledger.lines]


@pytest.mark.parametrize(
    "kind",
    [
        Choice,
        Cohort,
        Comparison,
        Ledger,
        OutcomeRelation,
        PredictorRelation,
        Profile,
        RegressionRelation,
        Stability,
        SurvivalRelation,
    ],
)
def test_every_result_turns_into_frames_and_shows_itself(kind):
    for name in ("to_pandas", "to_polars", "to_arrow", "_repr_html_"):
        assert callable(getattr(kind, name))


def test_a_notebook_shows_tables_without_markup_of_the_data(told, cohort):
    named = told.renamed({0: "<script>alert(1)</script>"})
    for shown in (named, cohort, cohort.ledger, choose_k(cohort.matrix, range(1, 3))):
        text = shown._repr_html_()
        assert text.count("<table>") == text.count("</table>") == 1
        assert "<script" not in text


def test_the_report_in_a_notebook_is_whole_and_asks_for_nothing(told):
    text = told.show()._repr_html_()
    assert text.startswith('<iframe srcdoc="&lt;!doctype html')
    inside = text.partition('srcdoc="')[2].partition('"')[0]
    assert "<" not in inside
    assert 'sandbox="allow-scripts allow-downloads"' in text


@pytest.mark.parametrize("name", ["sizes", "frequency", "heatmap"])
def test_charts_are_methods_that_return_axes(told, name):
    axes = getattr(told, f"plot_{name}")()
    assert axes.figure is not None
    assert axes.has_data()


def test_a_package_that_is_not_there_is_told(told, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(tabular, "import_module", missing)
    with pytest.raises(InputError, match="needs polars, which is not installed"):
        told.to_polars()
