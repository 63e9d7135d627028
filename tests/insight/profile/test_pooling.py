"""Pooling: no slice is small, none is lost, and it is said what became of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from comorb.errors import InputError
from comorb.insight.profile.cutting import By
from comorb.insight.profile.pooling import FEWEST, LONGEST, SHOWN, pooled, splits


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
    cuts, _ = pooled(records, By.of(by))
    counts = np.bincount(cuts.places, minlength=len(cuts.labels))
    assert counts.sum() == records.num_rows
    assert counts.min() >= FEWEST
    assert len(counts) == len(set(cuts.labels)) <= (LONGEST if cuts.ordered else SHOWN)


def test_the_rarest_of_many_become_the_others_and_it_is_said() -> None:
    cuts, notes = pooled(table(), By("hospital"))
    assert cuts.labels[-1] == "other"
    assert "became 12: small or rare ones are pooled" in notes[0]


def test_a_long_time_is_told_more_coarsely_and_small_ends_join_their_neighbours() -> None:
    cuts, notes = pooled(table(days=2500), By("month"))
    assert cuts.by == "quarter"
    assert notes == ("more than 48 points by month, so it is by quarter",)
    months = pa.table(
        {"date": pa.array(["2020-01-05"] * 3 + ["2020-02-05"] * 40 + ["2020-03-01"] * 50)}
    )
    months = months.set_column(0, "date", months["date"].cast(pa.date32()))
    cuts, notes = pooled(months, By("month"))
    assert cuts.labels == ("2020-01 … 2020-02", "2020-03")
    assert notes == ("3 slices became 2: small or rare ones are pooled",)
    with pytest.raises(InputError, match="slices of 60 records"):
        pooled(months, By("month"), least=60)


def test_too_little_to_compare_is_refused() -> None:
    few = pa.table({"sex": ["f"] * 100 + ["m"] * 3})
    with pytest.raises(InputError, match="fewer than two"):
        pooled(few, By("sex"))
