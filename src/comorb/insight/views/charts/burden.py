"""The burden: of each cluster its share of the records, and of what all of them use."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from comorb.insight.profile.profile import Profile
from comorb.insight.views import drawing
from comorb.insight.views.findings import amount
from comorb.insight.views.palette import colours, palette
from comorb.insight.views.words import ENGLISH, Words


def draw(profile: Profile, ax: Axes | None = None, words: Words = ENGLISH) -> Axes:
    """Draw for each cluster a grey bar of its records, and a bar for each amount that is used."""
    burden = profile.burden
    shown = () if burden is None else (burden.main or burden.columns[:3])
    ax = ax or drawing.new_axes(8, 1.6 + (0.4 + 0.16 * len(shown)) * profile.k)
    at = np.arange(profile.k)
    if burden is None or not shown:
        ax.set_axis_off()
        return drawing.titled(ax, words("chart.burden.none"))
    height = 0.8 / (1 + len(shown))
    bars = [("records", burden.share[:-1])]
    bars += [(name, burden.shares[burden.columns.index(name), :-1]) for name in shown]
    for row, (name, shares) in enumerate(bars):
        y = at - 0.4 + height * (row + 0.5)
        fills = colours(profile.numbers) if row else [palette()["overall"]] * profile.k
        ax.barh(y, np.nan_to_num(np.maximum(shares, 0)), 0.9 * height, color=fills)
        for place, share in zip(y, shares, strict=True):
            told = words("chart.hidden") if np.isnan(share) else words.percent(share)
            what = words("records") if not row else amount(name, words)
            text = words("chart.of", share=told, what=what)
            ax.annotate(
                text, (max(np.nan_to_num(share), 0), place), (5, 0),
                textcoords="offset points", va="center", fontsize=7, color=palette()["muted"],
            )  # fmt: skip
    ax.set_yticks(
        at, ["\n".join(drawing.named(c, drawing.NAME_WIDTH, 2)) for c in profile.clusters]
    )
    ax.set_ylim(profile.k - 0.5, -0.5)
    drawing.percent(ax, 1.3 * float(np.nanmax([one for _, one in bars], initial=0.1)), words)
    return drawing.titled(ax, words("chart.burden"))
