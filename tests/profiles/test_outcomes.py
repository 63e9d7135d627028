"""Outcomes against plain NumPy, kind by kind; corrected ones, and those of protected counts."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from comorb import relate_outcome
from comorb.errors import InputError
from comorb.model.diagnostics import temper
from comorb.profiles.build import profile
from comorb.profiles.burden import BurdenSums
from comorb.profiles.contents import Outcome
from comorb.profiles.intervals import Z, wilson_interval
from comorb.profiles.noise import NOISE_VARIANCE
from comorb.profiles.outcomes import (
    OTHER,
    classification_of,
    classification_rows,
    correct_estimates,
    correct_shares,
    outcome_rows,
    summarise,
)
from comorb.profiles.profile import Profile
from comorb.records.cohort import Cohort
from tests.small_cohort import MODEL, SECRET, dense, make_cohort

LABELS = np.array([0, 0, 0, 1, 1, 1])
WEIGHTS = np.array([1.0, 2.0, 1.0, 1.0, 1.0, 4.0])


def test_numbers_have_a_weighted_mean_and_median() -> None:
    table = pa.table({"days": pa.array([1.0, 2.0, 9.0, None, 4.5, 8.0])})
    (found,) = summarise(table, LABELS, 2, WEIGHTS)
    assert (found.name, found.kind, found.values) == ("days", "number", ("mean", "median"))
    assert found.known.tolist() == [3, 2, 5]
    assert found.estimate[0] == pytest.approx([14 / 4, 36.5 / 5, 50.5 / 9], abs=1e-6)
    assert found.estimate[1].tolist() == [2, 8, 8]
    assert np.all(found.low[0] < found.estimate[0])


def test_of_two_categories_one_is_enough() -> None:
    table = pa.table({"sex": ["f", "m", "f", "m", "m", None]})
    (found,) = summarise(table, LABELS, 2, WEIGHTS)
    assert (found.kind, found.values) == ("share", ("f",))
    assert found.known.tolist() == [3, 2, 5]
    assert found.counts.tolist() == [[2, 0, 2]]
    assert found.estimate.tolist() == [[0.5, 0, pytest.approx(2 / 6, abs=1e-6)]]
    low, high = wilson_interval(np.array(0.5), np.array(16 / 6))
    assert (found.low[0, 0], found.high[0, 0]) == pytest.approx((low, high), abs=1e-6)


@pytest.mark.parametrize("values", [[True, False, True, False, False, None], [1, 0, 1, 0, 0, None]])
def test_truth_values_show_how_many_are_true(values: list[object]) -> None:
    (found,) = summarise(pa.table({"died": values}), LABELS, 2, WEIGHTS)
    assert found.values in (("true",), ("1",))
    assert found.counts.tolist() == [[2, 0, 2]]


def test_few_whole_numbers_are_categories() -> None:
    (found,) = summarise(pa.table({"region": [1, 10, 2, 2, 1, 1]}), LABELS, 2, WEIGHTS)
    assert found.values == ("1", "2", "10")
    assert found.counts.tolist() == [[1, 2, 3], [1, 1, 2], [1, 0, 1]]


def test_of_many_labels_the_most_common_ones_and_the_others_are_shown() -> None:
    wards = [*("a" * 9), *("b" * 8), *("c" * 7), *("d" * 6), *("e" * 5), *("f" * 4), *("g" * 3)]
    wards = [*wards, "h", "h", "i", "j"]
    n = len(wards)
    found = {
        name: summarise(
            pa.table({name: pa.array([*wards, None])}), np.zeros(n + 1, int), 1, np.ones(n + 1)
        )
        for name in ("ward", "patient_code", "words")
    }
    (shown,) = found["ward"]
    assert shown.values == (*"abcdefg", "other")
    assert shown.counts[:, 0].tolist() == [9, 8, 7, 6, 5, 4, 3, 4]
    assert shown.estimate[:, 0].sum() == pytest.approx(1, abs=1e-5)
    assert found["patient_code"] == found["words"] == ()
    own = pa.table({"ward": [f"w{row}" for row in range(n)]})
    assert summarise(own, np.zeros(n, int), 1, np.ones(n)) == ()


def test_what_cannot_be_summed_up_is_left_out() -> None:
    n = 20
    table = pa.table(
        {
            "note": [f"text {i}" for i in range(n)],
            "date": [date(2020, 1, 1)] * n,
            "empty": pa.array([None] * n, pa.float64()),
        }
    )
    assert summarise(table, np.zeros(n, int), 1, np.ones(n)) == ()


def test_a_cluster_without_values_has_no_estimate() -> None:
    (found,) = summarise(pa.table({"x": [1.5, 2, 3, None, None, None]}), LABELS, 2, WEIGHTS)
    assert np.isnan(found.estimate[:, 1]).all()


def test_wanted_columns_must_be_there() -> None:
    table = pa.table({"age": [1.5] * 6, "cost": [2.5] * 6})
    assert [o.name for o in summarise(table, LABELS, 2, WEIGHTS, ["cost"])] == ["cost"]
    with pytest.raises(InputError, match=r"covariates \(age, cost\), got days; name the columns"):
        summarise(table, LABELS, 2, WEIGHTS, ["days"])


def test_a_column_with_a_role_is_found_by_its_own_name() -> None:
    table = pa.table({"los": [1, 10, 2, 2, 1, 1]})
    (found,) = summarise(table, LABELS, 2, WEIGHTS, ["days_of_care"])
    assert found.name == "los"
    with pytest.raises(InputError, match="got ward"):
        summarise(table, LABELS, 2, WEIGHTS, ["ward"])


@pytest.mark.parametrize(
    ("values", "shown"),
    [([1, 2, 2, 1, 2, 1], ("1", "2")), (["Y", "N", "U", "N", "Y", "N"], ("N", "U", "Y"))],
)
def test_a_death_that_is_not_yes_or_no_is_a_category_and_never_a_rate(
    values: list[object], shown: tuple[str, ...]
) -> None:
    table = pa.table({"died": values})
    (found,) = summarise(table, LABELS, 2, WEIGHTS)
    assert (found.kind, found.values) == ("share", shown)
    sums = BurdenSums(table.schema, 2, None)
    sums.add(table, LABELS, None, None)
    burden = sums.result(())
    assert burden.rates == ()
    assert any("'died' has values that are neither yes nor no" in note for note in burden.notes)


def test_codes_ids_and_weights_have_no_mean() -> None:
    n = 60
    rng = np.random.default_rng(2)
    columns = {
        "died": rng.integers(1, 29, n),
        "chart": rng.permutation(10_000)[:n],
        "survey_weight": rng.integers(20, 90, n),
        "score": rng.integers(20, 90, n),
    }
    found = summarise(pa.table(columns), np.arange(n) % 2, 2, np.ones(n))
    assert [(one.name, one.kind) for one in found] == [("died", "share"), ("score", "number")]


@pytest.mark.parametrize("seed", range(12))
def test_what_is_counted_adds_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(30, 400)), int(rng.integers(1, 7))
    labels = rng.integers(0, k, n)
    died = pd.array(rng.choice([True, False, None], n, p=[0.1, 0.7, 0.2]), dtype="boolean")
    days = rng.integers(-2, 40, n)
    cost = np.where(rng.random(n) < 0.2, np.nan, rng.gamma(2, 500, n))
    frame = pd.DataFrame({"died": died, "los": days, "cost": cost, "label": labels})
    table = pa.Table.from_pandas(frame[["died", "los", "cost"]], preserve_index=False)
    table = table.set_column(2, "cost", pa.array(cost, from_pandas=True))
    sums = BurdenSums(table.schema, k, None)
    sums.add(table, labels, None, None)
    burden = sums.result(())
    found = {one.name: one for one in summarise(table, labels, k, np.ones(n))}

    share = found["died"]
    assert share.counts[0].tolist() == burden.rate_counts[0].tolist()
    assert share.known.tolist() == burden.rate_known[0].tolist()
    events = frame.groupby("label")["died"].sum().reindex(range(k), fill_value=0)
    assert share.counts[0, :-1].tolist() == events.tolist()
    assert share.counts[0, :-1].sum() == share.counts[0, -1] == frame["died"].sum()
    some = share.known > 0
    assert share.estimate[0, some] == pytest.approx(
        share.counts[0, some] / share.known[some], abs=1e-6
    )
    for name in ("los", "cost"):
        row, mean = burden.columns.index(name), found[name].estimate[0]
        kept = frame[frame[name] >= 0]
        totals = kept.groupby("label")[name].sum().reindex(range(k), fill_value=0)
        assert burden.totals[row, :-1] == pytest.approx(totals)
        assert burden.totals[row, :-1].sum() == pytest.approx(burden.totals[row, -1])
        held = burden.known[row] > 0
        assert found[name].known.tolist() == burden.known[row].tolist()
        assert mean[held] * burden.known[row, held] == pytest.approx(
            burden.totals[row, held], abs=1e-3
        )
        assert burden.means[row, held] == pytest.approx(mean[held], abs=1e-5)


@pytest.fixture(scope="module")
def told():
    """Return a cohort with an outcome that differs between clusters, and its profile."""
    cohort = make_cohort(3000)
    posterior = dense(cohort)[1]
    rng = np.random.default_rng(5)
    one = rng.random(3000) < posterior[:, 1]
    days = np.where(one, 12.0, 4.0) + rng.normal(size=3000)
    died = rng.random(3000) < np.where(one, 0.3, 0.1)
    cohort = replace(cohort, covariates=pa.table({"days": days, "died": died}))
    return cohort, posterior, profile(MODEL, cohort, secret=SECRET)


def test_they_are_bch_s(told):
    cohort, posterior, made = told
    posterior = temper(posterior, made.caveats.temperature)
    days, died = made.outcomes
    expected = relate_outcome(posterior, cohort.covariates["days"].to_numpy())
    np.testing.assert_allclose(days.corrected.estimate[0, :2], expected.means, atol=1e-4)
    half = (days.corrected.high - days.corrected.low)[0, :2] / 2
    np.testing.assert_allclose(half, 1.959964 * expected.errors, atol=1e-4)
    np.testing.assert_array_equal(days.corrected.estimate[1], days.estimate[1])
    np.testing.assert_array_equal(days.corrected.estimate[:, -1], days.estimate[:, -1])
    text = np.array(cohort.covariates["died"].to_pylist()).astype(str)
    shares = relate_outcome(posterior, text)
    np.testing.assert_allclose(died.corrected.estimate[0, :2], shares.means[:, 1], atol=1e-4)
    low, p, high = died.corrected.low, died.corrected.estimate, died.corrected.high
    assert ((low <= p) & (p <= high) & (low >= 0)).all()
    assert np.abs(np.diff(days.corrected.estimate[0, :2])) > np.abs(np.diff(days.estimate[0, :2]))


def test_where_both_differ_is_marked(told):
    rows = outcome_rows(told[2])
    means = [row for row in rows if row["value"] == "mean"]
    assert all(row["corrected"] for row in means)
    assert all(row["differs"] == (not row["low"] <= row["naive"] <= row["high"]) for row in means)
    assert any(row["differs"] for row in means)
    assert not any(row["corrected"] for row in rows if row["value"] == "median")


def test_they_are_written_and_read_again(told):
    made = told[2]
    again = Profile.from_json(made.to_json())
    assert again.caveats.classification == made.caveats.classification
    for one, two in zip(made.outcomes, again.outcomes, strict=True):
        np.testing.assert_array_equal(one.corrected.estimate, two.corrected.estimate)
        np.testing.assert_array_equal(one.corrected.high, two.corrected.high)


def test_a_protected_view_has_them_of_what_it_tells_alone(told):
    made = told[2]
    shown = made.protected()
    taken = np.array(shown.caveats.classification)
    np.testing.assert_allclose(taken.sum(axis=1), 1)
    np.testing.assert_allclose(taken, np.round(taken, 2))
    sizes = np.array([cluster.size for cluster in shown.clusters], dtype=float)
    for was, now in zip(made.outcomes, shown.outcomes, strict=True):
        known, naive = now.known[:2], now.estimate[:1, :2]
        half = (now.high - now.low)[:1, :2] / 2
        shares = shown.weights / sizes * known
        means, _ = correct_estimates(naive, half, known, shares, taken)
        off = np.abs(now.corrected.estimate[0, :2] - means[0])
        assert (off <= np.maximum(half[0], 1e-4)).all()
        assert np.abs(now.corrected.estimate - was.corrected.estimate)[0].max() < 0.5


def test_a_hidden_cluster_leaves_nothing_corrected():
    cohort = make_cohort(3000)
    scores = pa.table({"score": np.random.default_rng(8).random(3000)})
    made = profile(MODEL, replace(cohort, covariates=scores), secret=SECRET)
    assert made.protected().outcomes[0].corrected is not None
    huge = made.protected(1500)
    assert huge.caveats.classification == ()
    assert huge.outcomes[0].corrected is None


def test_a_share_of_few_stays_hidden_and_the_others_are_corrected_without_it():
    cohort = make_cohort(3000)
    second = np.flatnonzero(dense(cohort)[1].argmax(axis=1) == 1)
    first = np.setdiff1d(np.arange(3000), second)
    told = []
    for few in (2, 7):
        died = np.zeros(3000, dtype=bool)
        died[first[:200]] = died[second[:few]] = True
        made = profile(MODEL, replace(cohort, covariates=pa.table({"died": died})), secret=SECRET)
        (now,) = made.protected().outcomes
        assert np.isnan(now.estimate[0, 1])
        assert np.isnan(now.corrected.estimate[0, 1])
        told.append(now.corrected.estimate[0, 0])
        assert now.estimate[0, 0] < told[-1] < now.estimate[0, 0] + 0.03
    assert told[0] == pytest.approx(told[1], abs=0.005)


@pytest.mark.parametrize("values", [[5.0] * 6, [1.0, None, None, 2.0, None, None]])
def test_what_can_not_be_corrected_stands_as_it_is(values):
    labels = np.array([0, 0, 0, 1, 1, 1])
    table = np.array([[2.7, 0.3], [0.3, 2.7]])
    column = pa.table({"days": pa.array(values, pa.float64())})
    sure = classification_of(table)
    (found,) = summarise(column, labels, 2, np.ones(6), classification=sure)
    assert found.corrected is None
    assert not found.differs(0, 0)


def test_an_empty_cluster_has_no_classification():
    assert classification_rows(np.array([[3.0, 0.0], [0.0, 0.0]])) == ()
    assert classification_rows(np.array([[3.0]])) == ()


def test_a_share_near_nothing_is_not_told_by_few_records():
    relation = SimpleNamespace(
        means=np.array([[0.0005, 0.9995], [0.2, 0.8]]),
        errors=np.full((2, 2), 0.004),
        effective=np.array(2000.0),
    )
    made = correct_shares(relation, np.array([[0.1], [0.09], [0.11]]), 1)
    assert made.high[0, 0] < 0.02
    np.testing.assert_allclose(made.high[0, 1] - made.low[0, 1], 2 * 1.96 * 0.004, rtol=0.01)


def with_column(cohort: Cohort, name: str, values: object) -> Cohort:
    return replace(cohort, covariates=pa.table({name: pa.array(values)}))


def discharges(rare: float) -> Outcome:
    ways = np.array(["home", "ward", "died", "abroad"])
    drawn = ways[np.random.default_rng(1).choice(4, 3000, p=[0.6, 0.3, 0.1 - rare, rare])]
    cohort = with_column(make_cohort(3000), "discharge", drawn)
    (was,) = profile(MODEL, cohort, secret=SECRET).outcomes
    (now,) = profile(MODEL, cohort, secret=SECRET).protected().outcomes
    kept = [was.values.index(value) for value in now.values if value != OTHER]
    assert np.nanmax(np.abs(now.estimate[: len(kept)] - was.estimate[kept])) < 0.01
    assert np.all((now.low <= now.estimate) & (now.estimate <= now.high))
    return now


def test_a_rare_category_is_not_listed_and_blanks_nothing_large() -> None:
    few, none = discharges(0.003), discharges(0.0)
    assert few.values == none.values == ("died", "home", "ward")
    assert not np.isnan(few.estimate).any()


def test_a_third_value_of_few_is_as_if_there_were_two() -> None:
    n = 3000
    drawn = np.where(np.arange(n) % 3 == 0, "yes", "no")
    for extra in (drawn, np.where(np.arange(n) < 4, "unsure", drawn)):
        (now,) = (
            profile(MODEL, with_column(make_cohort(n), "fell", extra), secret=SECRET)
            .protected()
            .outcomes
        )
        assert now.values == ("yes",)


@pytest.mark.parametrize("few", [0, 6])
@pytest.mark.parametrize("mostly", [False, True])
def test_an_outcome_of_few_or_none_and_of_all_or_all_but_few_is_not_listed(
    few: int, mostly: bool
) -> None:
    rare = (np.arange(3000) < few) != mostly
    made = profile(MODEL, with_column(make_cohort(3000), "moved", rare), secret=SECRET)
    assert made.outcomes
    assert made.protected().outcomes == ()


@pytest.mark.parametrize("extreme", [0.0, 1e6])
def test_means_have_noise_as_large_as_a_few_records_make(extreme: float) -> None:
    cohort = make_cohort(900)
    values = np.random.default_rng(2).normal(60, 8, 900)
    values[0] += extreme
    full = profile(MODEL, with_column(cohort, "cost", values), secret=SECRET)
    (was,), (now,) = full.outcomes, full.protected().outcomes
    assert was.cells is not None
    half = (now.high - now.low)[0] / 2
    step = 10.0 ** np.floor(np.log10(half))
    reach = np.vstack([15 * was.cells.reach.max() * np.ones(3), np.zeros(3)])
    assert np.all(np.abs(now.estimate - was.estimate) <= reach + step + 1e-6)
    near = 0.1 * step
    np.testing.assert_allclose(now.estimate / near, np.round(now.estimate / near), atol=1e-5)
    wide = np.hypot((was.high - was.low)[0] / 2, Z * np.sqrt(NOISE_VARIANCE) * was.cells.reach)
    assert half == pytest.approx(wide, rel=0.25)
    assert now.cells is None


def test_a_mean_of_few_is_not_told_and_one_of_equals_is() -> None:
    cohort = make_cohort(600)
    some = [float(i) if i < 9 else None for i in range(600)]
    (now,) = profile(MODEL, with_column(cohort, "cost", some), secret=SECRET).protected().outcomes
    assert np.isnan(now.estimate[:, -1]).all()
    assert np.isnan(now.known[-1])
    same = profile(MODEL, with_column(cohort, "cost", np.full(600, 3.0)), secret=SECRET)
    np.testing.assert_array_equal(same.protected().outcomes[0].estimate, 3.0)
