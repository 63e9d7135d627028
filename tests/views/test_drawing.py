"""What the charts are drawn with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from comorb.profiles.profile import Profile
from comorb.views import charts
from comorb.views.charts import colours, palette


@pytest.mark.parametrize("wanted", [[1.0, 1.5, 9.9], [0.0, 0.1, 0.2], [5.0, 5.0, 5.0]])
def test_labels_are_spread_in_order_inside_the_axes(wanted: list[float]) -> None:
    places = charts.spread_apart(np.array(wanted), 2, 10)
    assert np.all(np.diff(places) >= 2)
    assert places.max() <= 9


def test_labels_that_are_far_apart_stay_where_they_are() -> None:
    assert charts.spread_apart(np.array([1.0, 4.0, 8.0]), 2, 10).tolist() == [1, 4, 8]


def test_density_is_the_share_of_ones_in_each_stretch() -> None:
    rows = np.array([[1, 0], [1, 0], [0, 0], [1, 1]], dtype=bool)
    assert charts.bin_rows(rows, 2).tolist() == [[1, 0], [0.5, 0.5]]
    assert charts.bin_rows(rows, 100).tolist() == rows.tolist()
    assert charts.bin_rows(rows[:0], 5).tolist() == [[0, 0]]


def test_a_name_is_wrapped_and_cut_at_the_last_row(full: Profile) -> None:
    cluster = replace(full.clusters[0], name="Chronic kidney disease and acute kidney failure")
    assert charts.wrap_name(cluster, 26, 2) == [
        "1  Chronic kidney disease",
        "and acute kidney failure",
    ]
    assert charts.wrap_name(cluster, 24, 1) == ["1  Chronic kidney…"]


def test_no_two_clusters_share_a_colour() -> None:
    assert len(set(colours(range(1, 34)))) == 33
    assert colours([3, 12]) == [colours(range(1, 13))[place] for place in (2, 11)]


def test_every_colour_is_six_hexadecimal_digits() -> None:
    table = palette()
    plain = [colour for name, colour in table.items() if name != "clusters"]
    for colour in [*table["clusters"], *plain]:
        assert len(colour) == 7
        assert int(colour.removeprefix("#"), 16) >= 0
