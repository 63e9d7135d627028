"""Charts of a profile, a choice and a comparison; none uses pyplot, so threads may draw."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from textwrap import wrap
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from comorb.model.arrays import Floats, Ints, Mask
from comorb.model.select_k import Choice
from comorb.profiles.comparison import Comparison, match_clusters
from comorb.profiles.contents import Cluster
from comorb.profiles.labels import DEFAULT_LAMBDA, shorten
from comorb.profiles.profile import Profile
from comorb.storage import write_whole
from comorb.views import CHARTS as CHARTS
from comorb.views.findings import amount_name
from comorb.views.report import asset
from comorb.views.words import ENGLISH, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CODE_WIDTH, NAME_WIDTH = 40, 46
HEATMAP_LINES = 900
MANY_CLUSTERS = 12  # clusters, beyond which their names are smaller
_BAR_WIDTH = 0.86


def __getattr__(name: str) -> SimpleNamespace:
    """Return a chart as the module that it was in version 0.1, with its function ``draw``."""
    if f"draw_{name}" not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"{name}.draw is draw_{name} now", DeprecationWarning, stacklevel=2)
    return SimpleNamespace(draw=globals()[f"draw_{name}"])


def draw(name: str, profile: Profile, ax: Axes | None = None, words: Words | None = None) -> Axes:
    """Draw one of the ``CHARTS``.

    Parameters
    ----------
    name : str
        Which chart.
    profile : Profile
        The clusters.
    ax : Axes, optional
        Where to draw; a new figure by default.
    words : Words, optional
        The language of what is written; English by default.

    Returns
    -------
    Axes
        What was drawn in.
    """
    axes: Axes = globals()[f"draw_{name}"](profile, ax=ax, words=words or ENGLISH)
    return axes


def draw_burden(profile: Profile, ax: Axes | None = None, words: Words = ENGLISH) -> Axes:
    """Draw for each cluster a grey bar of its records, and a bar for each amount that is used."""
    burden, shown = profile.burden, profile.uses
    ax = ax or new_axes(8, 1.6 + (0.4 + 0.16 * len(shown)) * profile.k)
    at = np.arange(profile.k)
    if burden is None or not shown:
        ax.set_axis_off()
        return finish_axes(ax, words("chart.burden.none"))
    height = 0.8 / (1 + len(shown))
    bars = [("records", burden.share[:-1]), *shown]
    for row, (name, shares) in enumerate(bars):
        y = at - 0.4 + height * (row + 0.5)
        fills = colours(profile.numbers) if row else [palette()["overall"]] * profile.k
        ax.barh(y, np.nan_to_num(np.maximum(shares, 0)), 0.9 * height, color=fills)
        for place, share in zip(y, shares, strict=True):
            shown_share = words("chart.hidden") if np.isnan(share) else words.percent(share)
            what = words("records") if not row else amount_name(name, words)
            text = words("chart.of", share=shown_share, what=what)
            _annotate(ax, text, max(np.nan_to_num(share), 0), place, 5, 7)
    _write_names(ax, profile, NAME_WIDTH, 2)
    end = 1.3 * float(np.nanmax([one for _, one in bars], initial=0.1))
    set_percent_axis(ax, end, words)
    return finish_axes(ax, words("chart.burden"))


def draw_choice(choice: Choice, ax: Axes | None = None) -> Axes:
    """Draw the criteria for each number of clusters, and the number that was chosen.

    They are in nats a record, more is better; the stability has an axis of its own at the right.
    """
    ax = ax or new_axes(8.6, 4.8)
    numbers = [row.k for row in choice.rows]
    criteria = {
        "evidence": [row.evidence for row in choice.rows],
        "records left out of the fit": [row.held_out for row in choice.rows],
        "−BIC/2": [-row.bic / 2 for row in choice.rows],
        "−ICL/2": [-row.icl / 2 for row in choice.rows],
    }
    for (name, values), colour in zip(criteria.items(), colours(range(1, 5)), strict=True):
        decides = name == "evidence"
        ax.plot(numbers, values, "o-", ms=4, lw=2.4 if decides else 1.1, color=colour, label=name,
                zorder=3 if decides else 2)  # fmt: skip
    ax.set_ylabel("log-likelihood a record, adjusted\n(more is better)")
    ax.set_xlabel("number of clusters")
    ax.axvline(choice.best, color=palette()["ink"], lw=1, ls=":", label=f"chosen: {choice.best}")
    ax.set_xticks(numbers if len(numbers) <= 20 else numbers[:: -(-len(numbers) // 16)])
    right = ax.twinx()
    right.plot(numbers, [row.stability for row in choice.rows], "s--", ms=3.5, lw=1.1,
               color=palette()["muted"], label="stability")  # fmt: skip
    right.set_ylim(0, 1.03)
    right.set_ylabel("stability (ARI; 1 is the same clusters)")
    right.spines[:].set_visible(False)
    handles, names = ax.get_legend_handles_labels()
    ax.legend([*handles, *right.lines], [*names, "stability"], frameon=False, fontsize=8,
              loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3)  # fmt: skip
    return finish_axes(ax, "\n".join(wrap(choice.reason, 84)))


def draw_comparison(
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
    pairs = comparison.pairs if comparison else match_clusters(profile_a, profile_b)
    place = {code: i for i, code in enumerate(profile_b.codes)}
    common = profile_a.common(len(profile_a.codes))
    rows = [i for i in common if profile_a.codes[i] in place][:n]
    other = [place[profile_a.codes[i]] for i in rows]
    ax = ax or table_axes(len(pairs), len(rows))
    one = np.array([profile_a.prevalence[a][rows] for a, _ in pairs])
    two = np.array([profile_b.prevalence[b][other] for _, b in pairs])
    matched = [(profile_a.clusters[a], profile_b.clusters[b]) for a, b in pairs]
    fills = colours([first.number for first, _ in matched])
    draw_bars(ax, one, fills, [profile_a.labels[i] for i in rows])
    for column, values in enumerate(two):
        draw_ticks(ax, column, values)
    write_headings(ax, [f"{one.number}→{two.number}" for one, two in matched], fills)
    draw_legend(ax, [first for first, _ in matched], fills)
    return finish_axes(ax, "Bars: first run; ticks: the matched cluster of the second run")


def draw_frequency(
    profile: Profile, n: int = 20, ax: Axes | None = None, words: Words = ENGLISH
) -> Axes:
    """Draw a row of bars for each of the n most common codes.

    The first column has the bars of all records, repeated as a tick in each cluster.
    """
    rows = profile.common(n)
    ax = ax or table_axes(profile.k + 1, len(rows))
    shares = np.vstack([profile.overall[rows], profile.prevalence[:, rows]])
    fills = [palette()["overall"], *colours(profile.numbers)]
    draw_bars(ax, shares, fills, [profile.labels[i] for i in rows])
    for column in range(1, profile.k + 1):
        draw_ticks(ax, column, profile.overall[rows])
    write_headings(ax, [words("all"), *map(str, profile.numbers)], fills)
    draw_legend(ax, profile.clusters, fills[1:])
    title = words("chart.frequency", n=str(len(rows)))
    if profile.universal:
        left_out = ", ".join(profile.labels[i] for i in profile.universal[:3])
        title += "\n" + words("chart.universal", names=shorten(left_out, 60))
    return finish_axes(ax, title)


def draw_heatmap(profile: Profile, ax: Axes | None = None, words: Words = ENGLISH) -> Axes:
    """Draw the heat-map of a profile.

    The darker a place, the more of its records carry the code; the tint is the cluster's.
    """
    cells = profile.heatmap
    ax = ax or new_axes(10, 9.5)
    columns = list(cells.columns)
    edges = np.concatenate([[0], np.cumsum(cells.lines)])
    for strip, start, end in zip(_strips(profile, edges), edges[:-1], edges[1:], strict=True):
        if end > start:
            box = (-0.5, len(columns) - 0.5, end, start)
            ax.imshow(strip, aspect="auto", interpolation="nearest", extent=box)
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylim(max(int(edges[-1]), 1), 0)
    names = [shorten(profile.labels[i], CODE_WIDTH) for i in columns]
    ax.set_xticks(range(len(columns)), names)
    ax.tick_params(axis="x", labelrotation=90, labelsize=7.5, length=0)
    _name_clusters(ax, profile, edges)
    ax.set_yticks([])
    ax.hlines(edges[1:-1], -0.5, len(columns) - 0.5, colors="white", lw=0.8)
    key = "chart.heatmap" if cells.per_line == 1 else "chart.heatmap.lines"
    key = "chart.heatmap.protected" if profile.min_cell else key
    return finish_axes(ax, words(key, n=words.count(cells.per_line)))


def _strips(profile: Profile, edges: Ints) -> list[Floats]:
    """Return the picture of each cluster, whose lines are between two edges; white is hidden."""
    from matplotlib.colors import to_rgb

    ink, rows = np.array(to_rgb(palette()["ink"])), profile.heatmap.rows()
    strips = []
    for place, colour in enumerate(colours(profile.numbers)):
        lines = rows[edges[place] : edges[place + 1]]
        pixels = -(-len(lines) * HEATMAP_LINES // max(int(edges[-1]), 1))
        shade = bin_rows(lines, pixels)[:, :, None]
        strip = shade * ink + (1 - shade) * (1 - 0.22 * (1 - np.array(to_rgb(colour))))
        strip[:, np.isnan(profile.prevalence[place, list(profile.heatmap.columns)])] = 1
        strips.append(strip)
    return strips


def _name_clusters(ax: Axes, profile: Profile, edges: Ints) -> None:
    """Write the names at the left, apart from each other, each with a line to its cluster."""
    height, few = max(int(edges[-1]), 1), profile.k <= MANY_CLUSTERS
    centres = (edges[:-1] + edges[1:]) / 2
    places = spread_apart(centres, (0.05 if few else 0.021) * height, height)
    line = {"arrowstyle": "-", "lw": 1.4 if few else 0.5, "shrinkB": 0, "relpos": (1, 0.5)}
    placed = zip(profile.clusters, colours(profile.numbers), places, centres, strict=True)
    for (cluster, colour, place, centre), lines in zip(placed, profile.heatmap.lines, strict=True):
        if lines:
            ax.annotate(
                "\n".join(wrap_name(cluster, 30 if few else 38, 2 if few else 1)),
                (-0.5, centre),
                (-2.6, place),
                annotation_clip=False, ha="right", va="center", fontsize=8 if few else 6.5,
                color=palette()["ink"], arrowprops={**line, "color": colour},
            )  # fmt: skip


def draw_relevance(
    profile: Profile,
    cluster: int,
    lam: float = DEFAULT_LAMBDA,
    n: int = 10,
    ax: Axes | None = None,
    words: Words = ENGLISH,
) -> Axes:
    """Draw the n most relevant codes of a cluster, counted from 0, the most relevant on top.

    λ (``lam``) is 0 for the most specific codes and 1 for the most frequent.
    """
    rows = profile.top(cluster, lam, n)
    ax = ax or new_axes(7.5, 1.6 + 0.36 * max(len(rows), 1))
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
    ax.set_yticks(at, [shorten(profile.labels[i], CODE_WIDTH) for i in rows])
    ax.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    set_percent_axis(ax, float(np.nanmax(high, initial=0.1)), words)
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    name = shorten(chosen.name, NAME_WIDTH)
    return finish_axes(ax, f"{chosen.number}  {name}\n{words('relevance.title')}")


def draw_sizes(profile: Profile, ax: Axes | None = None, words: Words = ENGLISH) -> Axes:
    """Draw a bar for the records most probably in a cluster, and a dot for the soft share."""
    ax = ax or new_axes(8, 1.5 + 0.34 * profile.k)
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
        _annotate(ax, text, max(ends, default=0), place, 7, 8)
    _write_names(ax, profile, *((NAME_WIDTH, 2) if profile.k <= MANY_CLUSTERS else (56, 1)))
    set_percent_axis(ax, 1.18 * float(np.nanmax([*shares, *soft], initial=0.1)), words)
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    return finish_axes(ax, words("chart.sizes"))


def _annotate(ax: Axes, text: str, end: float, place: float, gap: int, size: int) -> None:
    """Write a text behind the end of a bar."""
    ax.annotate(text, (end, place), (gap, 0), textcoords="offset points", va="center",
                fontsize=size, color=palette()["muted"])  # fmt: skip


def _write_names(ax: Axes, profile: Profile, width: int, rows: int) -> None:
    """Write the names of the clusters at the left, the first on top."""
    names = ["\n".join(wrap_name(cluster, width, rows)) for cluster in profile.clusters]
    ax.set_yticks(np.arange(profile.k), names)
    ax.set_ylim(profile.k - 0.5, -0.5)


@lru_cache(maxsize=1)
def palette() -> dict[str, Any]:
    """Return the colours: a list for clusters, and one each for overall, ink and the rest."""
    loaded: dict[str, Any] = json.loads(asset("palette.json"))
    return loaded


def colours(numbers: Sequence[int]) -> list[str]:
    """Return the colour of each cluster, as distinct to the colour-blind as may be.

    It follows from the number, which every chart shows as well. Eleven hues; each later round
    of them is lighter, then darker.

    >>> colours([1, 2])
    ['#0072b2', '#d55e00']
    """
    table = palette()["clusters"]
    return [table[(number - 1) % len(table)] for number in numbers]


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
