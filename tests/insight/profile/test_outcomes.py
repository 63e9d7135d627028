"""Outcomes against plain NumPy, kind by kind."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from comorb.errors import InputError
from comorb.insight.profile.intervals import wilson
from comorb.insight.profile.outcomes import summarise

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
    low, high = wilson(np.array(0.5), np.array(16 / 6))
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
