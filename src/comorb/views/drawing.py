"""What the charts are drawn with: colours, axes, columns of bars, labels that don't overlap."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from comorb.model.arrays import Floats, Mask
from comorb.profiles.contents import Cluster
from comorb.profiles.labels import shorten
from comorb.storage import write_whole
from comorb.views.words import ENGLISH, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@lru_cache(maxsize=1)
def palette() -> dict[str, Any]:
    """Return the colours: a list for clusters, and one each for overall, ink and the rest."""
    table = resources.files("comorb.views").joinpath("page", "palette.json")
    loaded: dict[str, Any] = json.loads(table.read_text(encoding="utf-8"))
    return loaded


def colours(numbers: Sequence[int]) -> list[str]:
    """Return the colour of each cluster, told apart by the colour-blind as far as may be.

    It follows from the number, which every chart shows as well. Eleven hues; each further round
    of them is lighter, then darker.

    >>> colours([1, 2])
    ['#0072b2', '#d55e00']
    """
    table = palette()["clusters"]
    return [table[(number - 1) % len(table)] for number in numbers]


CODE_WIDTH, NAME_WIDTH = 40, 46
_BAR_WIDTH = 0.86


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure, which belongs to no window."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white").add_subplot()


def save(ax: Axes, path: Path) -> None:
    """Write the figure of some axes to a file, in the format that its name ends with."""
    kind = path.suffix.lower().removeprefix(".")
    with write_whole(path) as file:
        ax.figure.savefig(file, format=kind, bbox_inches="tight", dpi=150)  # type: ignore[union-attr]


def table_axes(columns: int, rows: int) -> Axes:
    """Return new axes for a table of bars."""
    width = 3.4 + columns * (0.95 if columns <= 13 else 0.42)
    return new_axes(max(width, 8.2), 1.5 + 0.29 * rows)


def draw_bars(ax: Axes, shares: Floats, fills: Sequence[str], names: Sequence[str]) -> None:
    """Draw a table of bars, one column for each row of ``shares``, each from 0 to 100%."""
    from matplotlib.collections import PolyCollection

    at = np.arange(len(names))
    for column, (values, fill) in enumerate(zip(shares, fills, strict=True)):
        for width, colour in ((np.ones(at.size), palette()["hidden"]), (values, fill)):
            right = column + _BAR_WIDTH * np.nan_to_num(width)
            left = np.full(at.size, float(column))
            x = np.stack([left, left, right, right], axis=1)
            y = at[:, None] + np.array([-0.31, 0.31, 0.31, -0.31])
            ax.add_collection(PolyCollection(list(np.stack([x, y], axis=2)), facecolors=colour))
        if len(fills) <= 13:
            for row, value in enumerate(values):
                inside = value > 0.74
                ax.text(
                    column + _BAR_WIDTH * (value - 0.03 if inside else 0.97), row,
                    "–" if np.isnan(value) else f"{100 * value:.0f}", ha="right", va="center",
                    fontsize=6.5, color="white" if inside else palette()["muted"], in_layout=False,
                )  # fmt: skip
    ax.set_yticks(at, [shorten(name, CODE_WIDTH) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(-0.05, len(fills) - (1 - _BAR_WIDTH) + 0.05)


def draw_ticks(ax: Axes, column: int, values: Floats) -> None:
    """Draw a tick across each bar of a column."""
    at = np.arange(values.size)
    width = 1.3 if ax.get_xlim()[1] <= 13 else 0.6
    ax.vlines(column + _BAR_WIDTH * values, at - 0.42, at + 0.42, colors=palette()["ink"], lw=width)


def write_headings(ax: Axes, texts: Sequence[str], fills: Sequence[str]) -> None:
    """Write a heading over each column of bars, in its colour."""
    ax.set_xticks([column + _BAR_WIDTH / 2 for column in range(len(texts))], texts)
    ax.tick_params(axis="x", top=False, labeltop=True, bottom=False, labelbottom=False)
    for text, fill in zip(ax.get_xticklabels(), fills, strict=True):
        text.set(color=fill, fontweight="bold", fontsize=10 if len(texts) <= 13 else 8)


def draw_legend(ax: Axes, clusters: Sequence[Cluster], fills: Sequence[str]) -> None:
    """Write the clusters' names below the axes, in two or three columns."""
    from matplotlib.patches import Patch

    handles = [
        Patch(color=fill, label=f"{cluster.number}  {shorten(cluster.name, 44)}")
        for cluster, fill in zip(clusters, fills, strict=True)
    ]
    width = ax.figure.get_figure(root=True).get_size_inches()[0]
    columns = max(1, min(len(clusters), int(width // 3.6)))
    ax.legend(handles=handles, loc="upper right", bbox_to_anchor=(1, -0.01), ncols=columns,
              frameon=False, fontsize=8, handlelength=1)  # fmt: skip


def wrap_name(cluster: Cluster, width: int, rows: int) -> list[str]:
    """Return the number and name of a cluster in at most so many rows."""
    return wrap(f"{cluster.number}  {cluster.name}", width, max_lines=rows, placeholder="…")


def bin_rows(rows: Mask, lines: int) -> Floats:
    """Return the share of ones in each of at most ``lines`` stretches of rows."""
    count = max(min(lines, len(rows)), 1)
    edges = np.arange(count + 1) * len(rows) // count
    heaped = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rows, axis=0)])
    return np.asarray(np.diff(heaped[edges], axis=0) / np.maximum(np.diff(edges), 1)[:, None])


def set_percent_axis(ax: Axes, end: float, words: Words = ENGLISH) -> None:
    """Make the lower axis one of shares, from 0 to a little beyond the end."""
    ax.set_xlim(0, min(1.04 * end, 1.2))
    ax.xaxis.set_major_formatter(lambda share, _: words.percent(share))
    ax.grid(axis="x", color=palette()["line"], lw=0.6)
    ax.set_axisbelow(True)


def finish_axes(ax: Axes, title: str) -> Axes:
    """Finish the axes: a title at the left, no frame."""
    ax.set_title(title, loc="left", fontsize=10.5, color=palette()["ink"], pad=10)
    ax.spines[:].set_visible(False)
    ax.tick_params(axis="y", length=0, labelsize=8.5, labelcolor=palette()["ink"])
    return ax


def spread_apart(wanted: Floats, gap: float, end: float) -> Floats:
    """Return places at least ``gap`` apart and inside (0, end), near the wanted ones, in order."""
    places = wanted.astype(float).copy()
    for i in range(1, places.size):
        places[i] = max(places[i], places[i - 1] + gap)
    limit = end - gap / 2
    for i in range(places.size - 1, -1, -1):
        places[i] = min(places[i], limit)
        limit = places[i] - gap
    return places
