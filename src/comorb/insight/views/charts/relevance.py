"""The most relevant codes of one cluster: how common there, and overall."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from comorb.insight.profile.labels import shorten
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.relevance import LAMBDA
from comorb.insight.views import drawing
from comorb.insight.views.palette import colours, palette
from comorb.insight.views.words import ENGLISH, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(
    profile: Profile,
    cluster: int,
    lam: float = LAMBDA,
    n: int = 10,
    ax: Axes | None = None,
    words: Words = ENGLISH,
) -> Axes:
    """Draw the n most relevant codes of a cluster, counted from 0, the most relevant on top.

    λ (``lam``) is 0 for the most specific codes and 1 for the most frequent.
    """
    rows = profile.top(cluster, lam, n)
    ax = ax or drawing.new_axes(7.5, 1.6 + 0.36 * max(len(rows), 1))
    at = np.arange(len(rows))
    share = profile.prevalence[cluster, rows]
    low, high = profile.low[cluster, rows], profile.high[cluster, rows]
    errors = np.array([share - low, high - share])
    chosen = profile.clusters[cluster]
    colour = colours([chosen.number])[0]
    ax.barh(at - 0.19, share, 0.38, color=colour, label=words("board.here"))
    ax.errorbar(share, at - 0.19, xerr=errors, fmt="none", ecolor=palette()["ink"], elinewidth=0.9)
    every = words("board.all")
    ax.barh(at + 0.19, profile.overall[rows], 0.38, color=palette()["overall"], label=every)
    ax.set_yticks(at, [shorten(profile.labels[i], drawing.CODE_WIDTH) for i in rows])
    ax.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    drawing.percent(ax, float(np.nanmax(high, initial=0.1)), words)
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    name = shorten(chosen.name, drawing.NAME_WIDTH)
    return drawing.titled(ax, f"{chosen.number}  {name}\n{words('relevance.title')}")
