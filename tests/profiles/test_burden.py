"""Totals, shares and rates against plain NumPy; what can't be added up is said."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from comorb.profiles.burden import Burden, BurdenSums
from comorb.profiles.intervals import wilson_interval
from comorb.profiles.noise import hash_texts

LABELS = np.array([0, 0, 1, 1, 1, 0])
WEIGHTS = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0])
TABLE = pa.table(
    {
        "los": [2, 4, 10, None, -1, 3],
        "total_charges": [1.5, 2.0, None, 4.0, 0.0, 1.0],
        "died": ["no", "yes", "yes", None, "no", "no"],
        "age": [70, 60, 50, 40, 30, 20],
        "who": ["a", "a", "b", "c", "c", None],
    }
)


def burden(table: pa.Table = TABLE, patient: str | None = "who", parts: int = 1) -> Burden:
    sums = BurdenSums(table.schema, 2, patient)
    keys = hash_texts(map(str, range(6)), b"k" * 32)
    for rows in np.array_split(np.arange(6), parts):
        some = slice(rows[0], rows[-1] + 1)
        sums.add(table.take(rows), LABELS[some], WEIGHTS[some], keys[some])
    return sums.result(["of the first visit: all"], b"k" * 32)


def test_totals_and_shares_are_weighted() -> None:
    found = burden()
    assert found.columns == ("los", "total_charges")
    assert found.records.tolist() == [3, 3, 6]
    assert found.share.tolist() == pytest.approx([4 / 9, 5 / 9, 1])
    assert found.totals.tolist() == [[13, 10, 23], [6.5, 12, 18.5]]
    assert found.shares[0].tolist() == pytest.approx([13 / 23, 10 / 23, 1])
    assert found.known.tolist() == [[3, 1, 4], [3, 2, 5]]


def test_rates_have_the_interval_of_effective_records() -> None:
    found = burden()
    assert found.rates == ("died",)
    assert found.rate_counts.tolist() == [[1, 1, 2]]
    assert found.rate[0].tolist() == pytest.approx([2 / 4, 1 / 2, 3 / 6])
    low, high = wilson_interval(np.array(0.5), np.array(16 / 6))
    assert (found.low[0, 0], found.high[0, 0]) == pytest.approx((low, high), abs=1e-6)


def test_patients_are_counted_once_in_each_cluster() -> None:
    found = burden()
    assert found.patients.tolist() == [1, 2, 3]
    assert found.visits_a_patient.tolist() == [3, 1.5, 2]
    assert burden(patient=None).patients.size == 0
    assert burden(patient=None).visits_a_patient.size == 0


def test_visits_of_patients_are_told_from_their_sum() -> None:
    found = burden(pa.table({"visits": [1, 2, 3, 1, 1, 4]}), None)
    assert found.mass.tolist() == [[4, 5, 9]]
    assert found.visits_a_patient.tolist() == pytest.approx([9 / 4, 7 / 5, 16 / 9])


def test_what_is_left_out_is_said() -> None:
    notes = burden().notes
    assert notes == (
        "of the first visit: all",
        "column 'los': 1 values below 0 are not counted",
        "column 'los' is missing in 1 records, which totals leave out",
        "column 'total_charges' is missing in 1 records, which totals leave out",
    )


def test_columns_that_hold_nothing_are_left_out_with_a_note() -> None:
    none = pa.array([None] * 6, pa.float64())
    found = burden(pa.table({"cost": none, "died": pa.array(["?"] * 6)}), None)
    assert (found.columns, found.rates) == ((), ())
    assert found.notes[1:] == (
        "column 'cost' holds no number that can be added up, so it is left out",
        "column 'died' says neither yes nor no, so it is left out",
    )
    assert found.totals.shape == (0, 3)


def test_blocks_change_no_bit() -> None:
    one, two = burden(), burden(parts=4)
    for name in ("records", "share", "totals", "shares", "rate", "low", "high", "patients"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes(), name
    assert one.cells is not None
    assert two.cells is not None
    for name, values in vars(one.cells).items():
        assert values.tobytes() == getattr(two.cells, name).tobytes(), name


def test_only_what_was_asked_for_is_added_up() -> None:
    sums = BurdenSums(TABLE.schema, 2, None, ["died"])
    assert (sums.columns, sums.rates) == ((), ("died",))
