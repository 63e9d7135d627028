"""The size of each cluster: the records most probably in it, and the soft share."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from comorb.insight.profile.profile import Profile
from comorb.insight.views import drawing
from comorb.insight.views.palette import colours, palette


def draw(profile: Profile, ax: Axes | None = None) -> Axes:
    """Draw a bar for the records most probably in a cluster, and a dot for the soft share."""
    ax = ax or drawing.new_axes(8, 1.5 + 0.34 * profile.k)
    at = np.arange(profile.k)
    shares, soft = (
        np.array([getattr(cluster, name) for cluster in profile.clusters], dtype=np.float64)
        for name in ("share", "soft_share")
    )
    ax.barh(at, np.nan_to_num(shares), 0.66, color=colours(profile.numbers))
    ax.plot(soft, at, "D", ms=4, mec="white", mew=0.8, color=palette()["ink"], label="soft share")
    for place, cluster in enumerate(profile.clusters):
        text = "hidden" if cluster.size is None else f"{cluster.size:,}  ({_share(cluster.share)})"
        ends = [v for v in (cluster.share, cluster.soft_share) if v is not None]
        ax.annotate(
            text, (max(ends, default=0), place), (7, 0), textcoords="offset points", va="center",
            fontsize=8, color=palette()["muted"],
        )  # fmt: skip
    width, rows = (drawing.NAME_WIDTH, 2) if profile.k <= 12 else (56, 1)
    ax.set_yticks(at, ["\n".join(drawing.named(c, width, rows)) for c in profile.clusters])
    ax.set_ylim(profile.k - 0.5, -0.5)
    drawing.percent(ax, 1.18 * float(np.nanmax([*shares, *soft], initial=0.1)))
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    return drawing.titled(ax, "Records in each cluster")


def _share(value: float | None) -> str:
    return "hidden" if value is None else f"{value:.0%}" if value >= 0.0095 else f"{value:.1%}"
