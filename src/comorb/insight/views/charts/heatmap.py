"""The heat-map: records as lines in the order of their clusters, a column for each code."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from comorb.insight.profile.labels import shorten
from comorb.insight.profile.profile import Profile
from comorb.insight.views import drawing
from comorb.insight.views.palette import colours, palette
from comorb.insight.views.words import ENGLISH, Words
from comorb.model.arrays import Floats, Ints

PIXELS = 900
MANY = 12  # clusters, beyond which their names are smaller


def draw(profile: Profile, ax: Axes | None = None, words: Words = ENGLISH) -> Axes:
    """Draw the heat-map of a profile.

    The darker a place, the more of its records carry the code; the tint is the cluster's.
    """
    cells = profile.heatmap
    ax = ax or drawing.new_axes(10, 9.5)
    columns = list(cells.columns)
    edges = np.concatenate([[0], np.cumsum(cells.lines)])
    for strip, start, end in zip(_strips(profile, edges), edges[:-1], edges[1:], strict=True):
        if end > start:
            box = (-0.5, len(columns) - 0.5, end, start)
            ax.imshow(strip, aspect="auto", interpolation="nearest", extent=box)
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylim(max(int(edges[-1]), 1), 0)
    names = [shorten(profile.labels[i], drawing.CODE_WIDTH) for i in columns]
    ax.set_xticks(range(len(columns)), names)
    ax.tick_params(axis="x", labelrotation=90, labelsize=7.5, length=0)
    _name_clusters(ax, profile, edges)
    ax.set_yticks([])
    ax.hlines(edges[1:-1], -0.5, len(columns) - 0.5, colors="white", lw=0.8)
    key = "chart.heatmap" if cells.per_line == 1 else "chart.heatmap.lines"
    return drawing.titled(ax, words(key, n=words.count(cells.per_line)))


def _strips(profile: Profile, edges: Ints) -> list[Floats]:
    """Return the picture of each cluster, whose lines are between two edges; white is hidden."""
    ink, rows = np.array(to_rgb(palette()["ink"])), profile.heatmap.rows()
    strips = []
    for place, colour in enumerate(colours(profile.numbers)):
        lines = rows[edges[place] : edges[place + 1]]
        pixels = -(-len(lines) * PIXELS // max(int(edges[-1]), 1))
        shade = drawing.density(lines, pixels)[:, :, None]
        strip = shade * ink + (1 - shade) * (1 - 0.22 * (1 - np.array(to_rgb(colour))))
        strip[:, np.isnan(profile.prevalence[place, list(profile.heatmap.columns)])] = 1
        strips.append(strip)
    return strips


def _name_clusters(ax: Axes, profile: Profile, edges: Ints) -> None:
    """Write the names at the left, apart from each other, each with a line to its cluster."""
    height, few = max(int(edges[-1]), 1), profile.k <= MANY
    centres = (edges[:-1] + edges[1:]) / 2
    places = drawing.spread(centres, (0.05 if few else 0.021) * height, height)
    line = {"arrowstyle": "-", "lw": 1.4 if few else 0.5, "shrinkB": 0, "relpos": (1, 0.5)}
    placed = zip(profile.clusters, colours(profile.numbers), places, centres, strict=True)
    for (cluster, colour, place, centre), lines in zip(placed, profile.heatmap.lines, strict=True):
        if lines:
            ax.annotate(
                "\n".join(drawing.named(cluster, 30 if few else 38, 2 if few else 1)),
                (-0.5, centre),
                (-2.6, place),
                annotation_clip=False, ha="right", va="center", fontsize=8 if few else 6.5,
                color=palette()["ink"], arrowprops={**line, "color": colour},
            )  # fmt: skip
