"""Charts from 2 to 33 clusters: every number is drawn, no word is cut, no global state."""

from __future__ import annotations

import sys
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from comorb.errors import InputError
from comorb.model.select_k import Choice, Row
from comorb.profiles.comparison import compare
from comorb.profiles.profile import Profile
from comorb.views import charts
from tests.small_cohort import sampled

PROFILES = {k: sampled(k) for k in (2, 5, 33)}


def drawn(ax: Axes) -> None:
    """Draw the figure for good: a layout that doesn't fit is a warning, and so an error."""
    figure = ax.figure
    assert isinstance(figure, Figure)
    figure.savefig(BytesIO(), dpi=40)


@pytest.fixture(params=[2, 33])
def some(request: pytest.FixtureRequest) -> Profile:
    return PROFILES[request.param]


def test_the_burden_has_a_pair_of_bars_for_each_cluster(full: Profile) -> None:
    assert full.burden is not None
    totals = np.array([[30.0, 70.0, 100.0]])
    used = replace(full.burden, columns=("los",), totals=totals, shares=totals / 100)
    ax = charts.draw_burden(replace(full, burden=used))
    drawn(ax)
    told = [text.get_text() for text in ax.texts]
    assert {"30% of bed-days", "70% of bed-days"} < set(told)
    assert len(ax.patches) == 2 * full.k


def test_every_chart_draws(some: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for name in charts.CHARTS:
        drawn(charts.draw(name, some))
    drawn(charts.draw_relevance(some, some.k - 1))
    drawn(charts.draw_comparison(some, PROFILES[5]))


def test_every_chart_draws_a_protected_profile() -> None:
    shown = PROFILES[5].protected(300)
    assert shown.clusters[-1].size is None
    for name in charts.CHARTS:
        drawn(charts.draw(name, shown))


def test_a_long_name_is_wrapped() -> None:
    name = "Chronic kidney disease, disorders of fluids and electrolytes"
    ax = charts.draw_sizes(PROFILES[2].renamed({0: name}))
    first = ax.get_yticklabels()[0].get_text()
    assert first.split("\n") == [
        "1  Chronic kidney disease, disorders of fluids",
        "and electrolytes",
    ]


def test_a_chart_draws_where_it_is_told() -> None:
    for name in charts.CHARTS:
        ax = Figure().add_subplot()
        assert charts.draw(name, PROFILES[2], ax) is ax
    assert charts.draw_frequency(PROFILES[2], ax=Figure().add_subplot(), n=3).get_yticks().size == 3


@pytest.mark.parametrize(("k", "rows"), [(2, 2), (33, 1)])
def test_the_names_beside_the_heatmap_do_not_meet(k: int, rows: int) -> None:
    ax = charts.draw_heatmap(PROFILES[k])
    texts = [text for text in ax.texts if text.get_text()]
    assert len(texts) == k
    assert max(len(text.get_text().split("\n")) for text in texts) == rows
    heights = [text.get_position()[1] for text in texts]
    assert min(np.diff(heights)) > 0.02 * sum(PROFILES[k].heatmap.lines)


def test_the_bars_are_the_prevalences(full: Profile) -> None:
    ax = charts.draw_frequency(full, n=5)
    rows = full.common(5)
    boxes = [path for bars in ax.collections[1:6:2] for path in bars.get_paths()]
    widths = [np.ptp(box.vertices[:, 0]) for box in boxes]
    expected = 0.86 * np.concatenate([full.overall[rows], full.prevalence[:, rows].ravel()])
    assert widths == pytest.approx(expected.tolist())
    assert "Heart failure: in every record" in ax.get_title(loc="left")


def test_relevant_codes_are_in_their_order(full: Profile) -> None:
    ax = charts.draw_relevance(full, 0, lam=1.0, n=3)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == [full.labels[i] for i in full.top(0, 1.0, 3)]
    with pytest.raises(InputError, match="expected a cluster from 0 to 1, got 7"):
        charts.draw_relevance(full, 7)


@pytest.mark.parametrize("most", [1, 33])
def test_choice_of_k(most: int) -> None:
    rows = tuple(Row(k, -3.0 / k, 10.0 * k, 12.0 * k, -3.0, 0.8, 5) for k in range(1, most + 1))
    ax = charts.draw_choice(Choice(rows, 1, "1 group is recommended", {}, ()))
    drawn(ax)
    assert ax.get_title(loc="left") == "1 group is recommended"


def test_the_pairs_of_a_comparison_are_those_drawn() -> None:
    one, two = PROFILES[2], PROFILES[5]
    found = replace(compare(one, two), pairs=((0, 4), (1, 2)))
    ax = charts.draw_comparison(one, two, comparison=found)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1→5", "2→3"]
