"""Two runs side by side: the prevalences of each cluster of the first and of its match."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from comorb.insight.profile.compare import Comparison, match
from comorb.insight.profile.profile import Profile
from comorb.insight.views import drawing
from comorb.insight.views.palette import colours


def draw(
    profile_a: Profile,
    profile_b: Profile,
    n: int = 20,
    ax: Axes | None = None,
    comparison: Comparison | None = None,
) -> Axes:
    """Draw the n most common codes: bars for the first run, ticks for the second.

    A column is headed by the numbers of two matched clusters: those of ``comparison``, or by
    default those whose codes are alike.
    """
    pairs = comparison.pairs if comparison else match(profile_a, profile_b)
    place = {code: i for i, code in enumerate(profile_b.codes)}
    rows = np.array([i for i in profile_a.common(len(profile_a.codes))
                     if profile_a.codes[i] in place][:n], dtype=np.int64)  # fmt: skip
    other = np.array([place[profile_a.codes[i]] for i in rows], dtype=np.int64)
    ax = ax or drawing.table_axes(len(pairs), len(rows))
    one = np.array([profile_a.prevalence[a][rows] for a, _ in pairs])
    two = np.array([profile_b.prevalence[b][other] for _, b in pairs])
    matched = [(profile_a.clusters[a], profile_b.clusters[b]) for a, b in pairs]
    fills = colours([first.number for first, _ in matched])
    drawing.bars(ax, one, fills, [profile_a.labels[i] for i in rows])
    for column, values in enumerate(two):
        drawing.marks(ax, column, values)
    drawing.heads(ax, [f"{first.number}→{second.number}" for first, second in matched], fills)
    drawing.key(ax, [first for first, _ in matched], fills)
    return drawing.titled(ax, "Bars: first run; ticks: the matched cluster of the second run")
