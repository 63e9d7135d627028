"""The heat-map: bits in and out, and what is kept when several records share a line."""

from __future__ import annotations

import numpy as np
import pytest

from comorb.insight.profile import heatmap
from comorb.insight.profile.assignment import assign
from comorb.insight.profile.heatmap import masked, pack, thin
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.profiling import profile
from comorb.records.cohort import Cohort
from tests.insight.conftest import MODEL


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
    whole = pack(rows, tuple(range(9)), [700, 303, 0], 1)
    small = thin(whole, 10)
    assert small.lines == (70, 30, 0)
    assert small.per_line == 10
    dots, start = small.rows(), 0
    for first, last, count in ((0, 700, 70), (700, 1003, 30)):
        shade = dots[start : start + count].sum(axis=0) * ((last - first) / count)
        assert np.all(np.abs(shade - rows[first:last].sum(axis=0)) <= 11)
        start += count


def test_a_small_cluster_keeps_one_line() -> None:
    whole = pack(np.ones((3, 2), dtype=bool), (0, 1), [3], 1)
    assert thin(whole, 11).rows().tolist() == [[True, True]]


def test_masked_cells_have_no_dots_and_hidden_clusters_no_lines() -> None:
    whole = pack(np.ones((5, 2), dtype=bool), (2, 0), [2, 3], 1)
    hidden = np.array([[True, False, False], [True, True, True]])
    part = masked(whole, hidden)
    assert part.lines == (2, 0)
    assert part.rows().tolist() == [[True, False]] * 2


def test_a_large_cohort_is_drawn_several_records_to_a_line(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heatmap, "MOST_LINES", 100)
    drawn = profile(MODEL, cohort).heatmap
    assert drawn.per_line == 6
    assert sum(drawn.lines) <= 100
