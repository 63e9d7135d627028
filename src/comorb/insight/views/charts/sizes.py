"""The size of each cluster: the records most probably in it, and the soft share."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from comorb.insight.profile.profile import Profile
from comorb.insight.views import drawing
from comorb.insight.views.palette import colours, palette
from comorb.insight.views.words import ENGLISH, Words


def draw(profile: Profile, ax: Axes | None = None, words: Words = ENGLISH) -> Axes:
    """Draw a bar for the records most probably in a cluster, and a dot for the soft share."""
    ax = ax or drawing.new_axes(8, 1.5 + 0.34 * profile.k)
    at = np.arange(profile.k)
    shares, soft = (
        np.array([getattr(cluster, name) for cluster in profile.clusters], dtype=np.float64)
        for name in ("share", "soft_share")
    )
    ax.barh(at, np.nan_to_num(shares), 0.66, color=colours(profile.numbers))
    soft_share = words("chart.soft")
    ax.plot(soft, at, "D", ms=4, mec="white", mew=0.8, color=palette()["ink"], label=soft_share)
    for place, cluster in enumerate(profile.clusters):
        text = words("chart.hidden")
        if cluster.size is not None:
            text = f"{words.count(cluster.size)}  ({words.percent(cluster.share)})"
        ends = [v for v in (cluster.share, cluster.soft_share) if v is not None]
        ax.annotate(
            text, (max(ends, default=0), place), (7, 0), textcoords="offset points", va="center",
            fontsize=8, color=palette()["muted"],
        )  # fmt: skip
    width, rows = (drawing.NAME_WIDTH, 2) if profile.k <= 12 else (56, 1)
    ax.set_yticks(at, ["\n".join(drawing.named(c, width, rows)) for c in profile.clusters])
    ax.set_ylim(profile.k - 0.5, -0.5)
    drawing.percent(ax, 1.18 * float(np.nanmax([*shares, *soft], initial=0.1)), words)
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    return drawing.titled(ax, words("chart.sizes"))
