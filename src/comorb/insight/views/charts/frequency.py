"""The disease-frequency chart: how common the most frequent codes are, by cluster."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from comorb.insight.profile.labels import shorten
from comorb.insight.profile.profile import Profile
from comorb.insight.views import drawing
from comorb.insight.views.palette import colours, palette
from comorb.insight.views.words import ENGLISH, Words


def draw(profile: Profile, n: int = 20, ax: Axes | None = None, words: Words = ENGLISH) -> Axes:
    """Draw a row of bars for each of the n most common codes.

    The first column has the bars of all records, repeated as a tick in each cluster.
    """
    rows = profile.common(n)
    ax = ax or drawing.table_axes(profile.k + 1, len(rows))
    shares = np.vstack([profile.overall[rows], profile.prevalence[:, rows]])
    fills = [palette()["overall"], *colours(profile.numbers)]
    drawing.bars(ax, shares, fills, [profile.labels[i] for i in rows])
    for column in range(1, profile.k + 1):
        drawing.marks(ax, column, profile.overall[rows])
    drawing.heads(ax, [words("all"), *map(str, profile.numbers)], fills)
    drawing.key(ax, profile.clusters, fills[1:])
    title = words("chart.frequency", n=str(len(rows)))
    if profile.universal:
        left_out = ", ".join(profile.labels[i] for i in profile.universal[:3])
        title += "\n" + words("chart.universal", names=shorten(left_out, 60))
    return drawing.titled(ax, title)
