"""The heat-map: bits in and out, and what is kept when several records share a line."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from comorb.profiles import contents
from comorb.profiles.assignment import assign
from comorb.profiles.build import profile
from comorb.profiles.contents import Heatmap, draw_heatmap, merge_lines, pack_lines
from comorb.profiles.profile import Profile
from comorb.records.cohort import Cohort
from tests.small_cohort import MODEL


def test_lines_are_whole_bytes_with_the_first_column_in_the_highest_bit() -> None:
    packed = bytes([0b10000000, 0b10000000, 0b01000001, 0b00000000])
    heatmap = Heatmap(tuple(range(9)), (1, 1), 1, base64.b64encode(packed).decode())
    expected = np.zeros((2, 9), dtype=bool)
    expected[0, [0, 8]] = expected[1, [1, 7]] = True
    np.testing.assert_array_equal(heatmap.rows(), expected)


def test_lines_are_the_records_by_cluster_the_surest_first(full: Profile, cohort: Cohort) -> None:
    x = cohort.matrix.toarray()[:, list(full.heatmap.columns)].astype(bool)
    found = assign(MODEL, cohort)
    place = {tuple(row): sure for row, sure in zip(x.tolist(), found.top, strict=True)}
    start = 0
    for j, lines in enumerate(full.heatmap.lines):
        rows = full.heatmap.rows()[start : start + lines].tolist()
        assert sorted(rows) == sorted(x[found.labels == j].tolist())
        assert np.all(np.diff([place[tuple(row)] for row in rows]) <= 1e-12)
        start += lines


def test_a_thin_heatmap_keeps_the_shade() -> None:
    rows = np.random.default_rng(0).random((1003, 9)) < np.linspace(0.01, 0.99, 9)
    whole = pack_lines(rows, tuple(range(9)), [700, 303, 0], 1)
    small = merge_lines(whole, 10)
    assert small.lines == (70, 30, 0)
    assert small.per_line == 10
    dots, start = small.rows(), 0
    for first, last, count in ((0, 700, 70), (700, 1003, 30)):
        shade = dots[start : start + count].sum(axis=0) * ((last - first) / count)
        assert np.all(np.abs(shade - rows[first:last].sum(axis=0)) <= 11)
        start += count


def test_a_small_cluster_keeps_one_line() -> None:
    whole = pack_lines(np.ones((3, 2), dtype=bool), (0, 1), [3], 1)
    assert merge_lines(whole, 11).rows().tolist() == [[True, True]]


def test_a_heatmap_of_shares_has_their_shade_and_nothing_of_what_is_not_told() -> None:
    shares = np.array([[0.25, np.nan, 1.0], [0.5, 0.5, 0.5], [np.nan] * 3])
    made = draw_heatmap(shares, np.array([2, 0, 1]), [880, 440, None], 11)
    assert made.lines == (80, 40, 0)
    assert made.per_line == 11
    first, second = np.split(made.rows(), [80])
    assert first.sum(axis=0).tolist() == [80, 20, 0]
    assert second.sum(axis=0).tolist() == [20, 20, 20]


def test_a_large_cohort_is_drawn_several_records_to_a_line(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "MAX_LINES", 100)
    large = profile(MODEL, cohort).heatmap
    assert large.per_line == 6
    assert sum(large.lines) <= 100
