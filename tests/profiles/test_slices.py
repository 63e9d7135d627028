"""How records are sliced and small slices pooled; shares and tests against NumPy and SciPy."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2_contingency

from comorb.errors import InputError
from comorb.profiles.intervals import wilson_interval
from comorb.profiles.noise import hash_texts
from comorb.profiles.slices import (
    MAX_TIMES,
    MAX_UNORDERED,
    MIN_POOLED_RECORDS,
    By,
    Slices,
    cut,
    default_slices,
    pool_slices,
    slice_records,
    splits,
    standardise,
    trend,
)

N = 900


def made(weighted: bool = False, order: np.ndarray | None = None) -> Slices:
    rng = np.random.default_rng(5)
    age = rng.integers(20, 90, N)
    site = np.where(rng.random(N) < age / 100, "old town", "new town")
    labels = (rng.random(N) < age / 120).astype(int)
    weights = rng.integers(1, 6, N).astype(float) if weighted else None
    table = pa.table({"age": age, "sex": np.where(rng.random(N) < 0.5, "f", "m"), "site": site})
    keys = hash_texts(map(str, range(N)), b"k" * 32)
    rows = np.arange(N) if order is None else order
    return slice_records(
        table.take(rows), labels[rows], 2, By("site"),
        weights=None if weights is None else weights[rows], keys=keys[rows],
    )  # fmt: skip


def test_shares_intervals_and_the_test_of_difference() -> None:
    found = made()
    assert found.labels == ("new town", "old town")
    assert found.counts.sum() == 2 * N
    table = found.counts[:, :2]
    assert found.share == pytest.approx(table / table.sum(axis=1, keepdims=True), abs=1e-6)
    low, _ = wilson_interval(found.share, table.sum(axis=1)[:, None])
    assert found.low == pytest.approx(low, abs=1e-6)
    expected = chi2_contingency(table, correction=False).pvalue
    assert found.p == pytest.approx([expected, expected], rel=1e-3, abs=1e-8)
    assert np.isnan(found.z).all()


def test_a_trend_is_that_of_cochran_and_armitage() -> None:
    yes, n = np.array([5.0, 12, 30]), np.array([50.0, 60, 80])
    share = np.column_stack([yes / n, 1 - yes / n])
    z, p = trend(share, n, ordered=True)
    scores = np.repeat(np.arange(3), n.astype(int))
    outcome = np.concatenate(
        [np.r_[np.ones(int(a)), np.zeros(int(b - a))] for a, b in zip(yes, n, strict=True)]
    )
    expected = np.corrcoef(scores, outcome)[0, 1] * np.sqrt(n.sum())
    assert z == pytest.approx([expected, -expected], abs=1e-6)
    assert 0 < p[0] < 0.01


def test_what_can_t_be_tested_is_not_told() -> None:
    share = np.array([[0.0, 1.0], [0.0, 1.0]])
    assert np.isnan(trend(share, np.array([50.0, 60.0]), ordered=True)[1]).all()
    assert np.isnan(trend(share, np.array([50.0, 2.0]), ordered=False)[1]).all()


def test_standardised_shares_are_sums_over_the_mix() -> None:
    share = np.array([[[0.2], [0.6]], [[0.4], [0.9]]])
    found, covered = standardise(share, np.array([[1.0, 1.0], [1.0, 0.0]]), np.array([0.75, 0.25]))
    assert found[0, 0] == pytest.approx(0.75 * 0.2 + 0.25 * 0.6)
    assert np.isnan(found[1, 0])
    assert covered.tolist() == [1.0, 0.75]


def test_standardising_takes_the_age_out_of_two_sites() -> None:
    found = made()
    crude = abs(found.share[0, 0] - found.share[1, 0])
    even = abs(found.standardised[0, 0] - found.standardised[1, 0])
    assert found.mix == ("age", "sex")
    assert crude > 0.1 > even


@pytest.mark.parametrize("weighted", [False, True])
def test_the_order_of_records_changes_no_bit(weighted: bool) -> None:
    one = made(weighted)
    two = made(weighted, np.random.default_rng(1).permutation(N))
    for name in ("counts", "share", "low", "high", "p", "standardised", "covered"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes(), name
    assert one.cells is not None
    assert two.cells is not None
    assert one.cells.strata_keys.tobytes() == two.cells.strata_keys.tobytes()


def test_records_of_no_slice_and_slices_that_lack_ages_are_said() -> None:
    table = pa.table({"age": [20] * 30 + [70] * 30, "site": ["a"] * 30 + ["b"] * 28 + [None] * 2})
    found = slice_records(table, np.arange(60) % 2, 2, By("site"))
    assert found.notes == (
        "2 records have no site and are in no slice",
        "no standardised shares for a, b: fewer than 80% of all records are of an age that it has",
    )
    assert np.isnan(found.standardised).all()
    assert found.cells is None


def test_slices_that_can_t_be_made_are_left_out_when_nobody_asked() -> None:
    table = pa.table({"site": [str(i) for i in range(60)], "sex": ["f", "m"] * 30})
    assert default_slices(table) == (By("sex"),)


TABLE = pa.table(
    {
        "age": [10.0, 18, 44, 45, 79, None],
        "sex": ["f", "m", "f", None, "m", "f"],
        "date": [
            date(2008, 1, 1),
            date(2008, 4, 1),
            date(2009, 1, 5),
            None,
            *[date(2009, 2, 1)] * 2,
        ],
        "one": ["x"] * 6,
        "none": pa.array([None] * 6, pa.string()),
        "score": [1, 2, 2, 3, 1, 1],
        "days_of_care": [1, 2, 3, 4, 5, 6],
    }
)


@pytest.mark.parametrize(
    ("by", "labels", "places"),
    [
        ("age", ("≤ 17", "18–44", "45–64", "65–79"), [0, 1, 1, 2, 3, -1]),
        ("age:45", ("≤ 44", "≥ 45"), [0, 0, 0, 1, 1, -1]),
        ("age:q2", ("≤ 43", "≥ 44"), [0, 0, 1, 1, 1, -1]),
        ("age:18.5,46", ("… – 18.5", "18.5 – 46", "46 – …"), [0, 0, 1, 1, 2, -1]),
        ("sex", ("f", "m"), [0, 1, 0, -1, 1, 0]),
        ("score", ("1", "2", "3"), [0, 1, 1, 2, 0, 0]),
        ("year", ("2008", "2009"), [0, 0, 1, -1, 1, 1]),
        ("quarter", ("2008 Q1", "2008 Q2", "2009 Q1"), [0, 1, 2, -1, 2, 2]),
        ("month", ("2008-01", "2008-04", "2009-01", "2009-02"), [0, 1, 2, -1, 3, 3]),
    ],
)
def test_records_are_cut(by: str, labels: tuple[str, ...], places: list[int]) -> None:
    made = cut(TABLE, By.of(by))
    assert (made.labels, made.places.tolist()) == (labels, places)
    assert made.ordered == (by != "sex")


def test_bands_that_hold_nobody_are_left_out() -> None:
    assert cut(TABLE, By.of("age:18,19,20,45")).labels == ("≤ 17", "18", "20–44", "≥ 45")


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("ward", "expected one of the records' columns (age, sex, date"),
        ("one", "'one' has the same value in all records; name another column"),
        ("none", "'none' holds no value; name another column"),
        ("age:200", "'age' has the same value in all records"),
        ("sex:18", "expected numbers to cut, but 'sex' holds texts"),
        ("age:40,20", "cut points in ascending order or a number of quantiles"),
        ("age:q1", "such as 'age', 'age:18,45,65' or 'age:q4', got 'age:q1'"),
        (":18", "expected a column"),
        ("age:x", "expected a column"),
    ],
)
def test_what_can_t_be_cut_is_said(by: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        cut(TABLE, By.of(by))
    assert said in str(error.value)


def test_too_many_values_and_texts_for_dates_are_said() -> None:
    many = pa.table({"ward": [str(i) for i in range(40)], "date": ["soon"] * 40})
    with pytest.raises(InputError, match="at most 24 slices, but 'ward' has 40 different values"):
        cut(many, By("ward"))
    with pytest.raises(InputError, match="the column 'date' holds none that can be read"):
        cut(many, By("year"))


def test_a_column_called_year_is_taken_as_it_is() -> None:
    assert cut(pa.table({"year": [2008, 2009, 2009]}), By("year")).labels == ("2008", "2009")


def test_many_numbers_are_cut_in_four() -> None:
    made = cut(pa.table({"cost": list(range(1, 101))}), By("cost"))
    assert len(made.labels) == 4


def test_what_is_cut_by_when_nothing_is_said() -> None:
    assert [by.name for by in default_slices(TABLE)] == ["age", "sex", "quarter"]
    assert str(By.of("age:q4")) == "age:q4"
    assert str(By.of("age:18,45")) == "age:18,45"


def table(n: int = 3000, seed: int = 0, days: int = 900) -> pa.Table:
    rng = np.random.default_rng(seed)
    dates = np.datetime64("2019-01-01") + rng.integers(0, days, n)
    return pa.table(
        {
            "age": rng.integers(0, 99, n),
            "sex": rng.choice(["f", "m"], n),
            "hospital": [f"h{int(x):02}" for x in rng.exponential(8, n)],
            "date": pa.array(dates.astype("datetime64[D]")),
            "note": [f"n{i}" for i in range(n)],
            "los": rng.normal(5, 2, n),
            "ward_unit": rng.integers(1, 60, n),
            "same": ["x"] * n,
        }
    )


def test_what_can_be_split_by_is_times_people_and_categories() -> None:
    assert splits(table()) == ("month", "quarter", "year", "age", "sex", "hospital")
    assert splits(table(), ("los",))[-1] == "los"
    assert splits(pa.table({"note": ["a", "b", "c"]})) == ("note",)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("by", ["month", "quarter", "age", "hospital", "los"])
def test_every_slice_is_large_enough_and_every_record_in_one(by: str, seed: int) -> None:
    records = table(700 + 500 * seed, seed)
    cuts, _ = pool_slices(records, By.of(by))
    counts = np.bincount(cuts.places, minlength=len(cuts.labels))
    assert counts.sum() == records.num_rows
    assert counts.min() >= MIN_POOLED_RECORDS
    assert len(counts) == len(set(cuts.labels)) <= (MAX_TIMES if cuts.ordered else MAX_UNORDERED)


def test_the_rarest_of_many_become_the_others_and_it_is_said() -> None:
    cuts, notes = pool_slices(table(), By("hospital"))
    assert cuts.labels[-1] == "other"
    assert "became 12: small or rare ones are pooled" in notes[0]


def test_a_long_time_is_told_more_coarsely_and_small_ends_join_their_neighbours() -> None:
    cuts, notes = pool_slices(table(days=2500), By("month"))
    assert cuts.by == "quarter"
    assert notes == ("more than 48 points by month, so it is by quarter",)
    months = pa.table(
        {"date": pa.array(["2020-01-05"] * 3 + ["2020-02-05"] * 40 + ["2020-03-01"] * 50)}
    )
    months = months.set_column(0, "date", months["date"].cast(pa.date32()))
    cuts, notes = pool_slices(months, By("month"))
    assert cuts.labels == ("2020-01 … 2020-02", "2020-03")
    assert notes == ("3 slices became 2: small or rare ones are pooled",)
    with pytest.raises(InputError, match="slices of 60 records"):
        pool_slices(months, By("month"), min_cell=60)


def test_too_little_to_compare_is_refused() -> None:
    few = pa.table({"sex": ["f"] * 100 + ["m"] * 3})
    with pytest.raises(InputError, match="fewer than two"):
        pool_slices(few, By("sex"))
