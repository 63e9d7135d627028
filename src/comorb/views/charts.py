"""Charts of a profile, a choice and a comparison; none uses pyplot, so threads may draw."""

from __future__ import annotations

import warnings
from textwrap import fill
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from comorb.model.arrays import Floats, Ints
from comorb.model.select_k import Choice
from comorb.profiles.comparison import Comparison, match_clusters
from comorb.profiles.labels import DEFAULT_LAMBDA, shorten
from comorb.profiles.profile import Profile
from comorb.views import CHARTS as CHARTS
from comorb.views import drawing
from comorb.views.drawing import colours, palette
from comorb.views.findings import amount_name
from comorb.views.words import ENGLISH, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    said = {} if words is None else {"words": words}
    axes: Axes = globals()[f"draw_{name}"](profile, ax=ax, **said)
    return axes


def draw_burden(profile: Profile, ax: Axes | None = None, words: Words = ENGLISH) -> Axes:
    """Draw for each cluster a grey bar of its records, and a bar for each amount that is used."""
    burden = profile.burden
    shown = () if burden is None else (burden.main or burden.columns[:3])
    ax = ax or drawing.new_axes(8, 1.6 + (0.4 + 0.16 * len(shown)) * profile.k)
    at = np.arange(profile.k)
    if burden is None or not shown:
        ax.set_axis_off()
        return drawing.finish_axes(ax, words("chart.burden.none"))
    height = 0.8 / (1 + len(shown))
    bars = [("records", burden.share[:-1])]
    bars += [(name, burden.shares[burden.columns.index(name), :-1]) for name in shown]
    for row, (name, shares) in enumerate(bars):
        y = at - 0.4 + height * (row + 0.5)
        fills = colours(profile.numbers) if row else [palette()["overall"]] * profile.k
        ax.barh(y, np.nan_to_num(np.maximum(shares, 0)), 0.9 * height, color=fills)
        for place, share in zip(y, shares, strict=True):
            told = words("chart.hidden") if np.isnan(share) else words.percent(share)
            what = words("records") if not row else amount_name(name, words)
            text = words("chart.of", share=told, what=what)
            ax.annotate(
                text, (max(np.nan_to_num(share), 0), place), (5, 0),
                textcoords="offset points", va="center", fontsize=7, color=palette()["muted"],
            )  # fmt: skip
    ax.set_yticks(
        at, ["\n".join(drawing.wrap_name(c, drawing.NAME_WIDTH, 2)) for c in profile.clusters]
    )
    ax.set_ylim(profile.k - 0.5, -0.5)
    drawing.set_percent_axis(
        ax, 1.3 * float(np.nanmax([one for _, one in bars], initial=0.1)), words
    )
    return drawing.finish_axes(ax, words("chart.burden"))


def draw_choice(choice: Choice, ax: Axes | None = None) -> Axes:
    """Draw the criteria for each number of clusters, and the number that was chosen.

    They are in nats a record, more is better; the stability has an axis of its own at the right.
    """
    ax = ax or drawing.new_axes(8.6, 4.8)
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
    return drawing.finish_axes(ax, fill(choice.reason, 84))


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
    rows = np.array([i for i in profile_a.common(len(profile_a.codes))
                     if profile_a.codes[i] in place][:n], dtype=np.int64)  # fmt: skip
    other = np.array([place[profile_a.codes[i]] for i in rows], dtype=np.int64)
    ax = ax or drawing.table_axes(len(pairs), len(rows))
    one = np.array([profile_a.prevalence[a][rows] for a, _ in pairs])
    two = np.array([profile_b.prevalence[b][other] for _, b in pairs])
    matched = [(profile_a.clusters[a], profile_b.clusters[b]) for a, b in pairs]
    fills = colours([first.number for first, _ in matched])
    drawing.draw_bars(ax, one, fills, [profile_a.labels[i] for i in rows])
    for column, values in enumerate(two):
        drawing.draw_ticks(ax, column, values)
    drawing.write_headings(
        ax, [f"{first.number}→{second.number}" for first, second in matched], fills
    )
    drawing.draw_legend(ax, [first for first, _ in matched], fills)
    return drawing.finish_axes(ax, "Bars: first run; ticks: the matched cluster of the second run")


def draw_frequency(
    profile: Profile, n: int = 20, ax: Axes | None = None, words: Words = ENGLISH
) -> Axes:
    """Draw a row of bars for each of the n most common codes.

    The first column has the bars of all records, repeated as a tick in each cluster.
    """
    rows = profile.common(n)
    ax = ax or drawing.table_axes(profile.k + 1, len(rows))
    shares = np.vstack([profile.overall[rows], profile.prevalence[:, rows]])
    fills = [palette()["overall"], *colours(profile.numbers)]
    drawing.draw_bars(ax, shares, fills, [profile.labels[i] for i in rows])
    for column in range(1, profile.k + 1):
        drawing.draw_ticks(ax, column, profile.overall[rows])
    drawing.write_headings(ax, [words("all"), *map(str, profile.numbers)], fills)
    drawing.draw_legend(ax, profile.clusters, fills[1:])
    title = words("chart.frequency", n=str(len(rows)))
    if profile.universal:
        left_out = ", ".join(profile.labels[i] for i in profile.universal[:3])
        title += "\n" + words("chart.universal", names=shorten(left_out, 60))
    return drawing.finish_axes(ax, title)


HEATMAP_LINES = 900
MANY_CLUSTERS = 12  # clusters, beyond which their names are smaller


def draw_heatmap(profile: Profile, ax: Axes | None = None, words: Words = ENGLISH) -> Axes:
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
    key = "chart.heatmap.protected" if profile.min_cell else key
    return drawing.finish_axes(ax, words(key, n=words.count(cells.per_line)))


def _strips(profile: Profile, edges: Ints) -> list[Floats]:
    """Return the picture of each cluster, whose lines are between two edges; white is hidden."""
    from matplotlib.colors import to_rgb

    ink, rows = np.array(to_rgb(palette()["ink"])), profile.heatmap.rows()
    strips = []
    for place, colour in enumerate(colours(profile.numbers)):
        lines = rows[edges[place] : edges[place + 1]]
        pixels = -(-len(lines) * HEATMAP_LINES // max(int(edges[-1]), 1))
        shade = drawing.bin_rows(lines, pixels)[:, :, None]
        strip = shade * ink + (1 - shade) * (1 - 0.22 * (1 - np.array(to_rgb(colour))))
        strip[:, np.isnan(profile.prevalence[place, list(profile.heatmap.columns)])] = 1
        strips.append(strip)
    return strips


def _name_clusters(ax: Axes, profile: Profile, edges: Ints) -> None:
    """Write the names at the left, apart from each other, each with a line to its cluster."""
    height, few = max(int(edges[-1]), 1), profile.k <= MANY_CLUSTERS
    centres = (edges[:-1] + edges[1:]) / 2
    places = drawing.spread_apart(centres, (0.05 if few else 0.021) * height, height)
    line = {"arrowstyle": "-", "lw": 1.4 if few else 0.5, "shrinkB": 0, "relpos": (1, 0.5)}
    placed = zip(profile.clusters, colours(profile.numbers), places, centres, strict=True)
    for (cluster, colour, place, centre), lines in zip(placed, profile.heatmap.lines, strict=True):
        if lines:
            ax.annotate(
                "\n".join(drawing.wrap_name(cluster, 30 if few else 38, 2 if few else 1)),
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
    drawing.set_percent_axis(ax, float(np.nanmax(high, initial=0.1)), words)
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    name = shorten(chosen.name, drawing.NAME_WIDTH)
    return drawing.finish_axes(ax, f"{chosen.number}  {name}\n{words('relevance.title')}")


def draw_sizes(profile: Profile, ax: Axes | None = None, words: Words = ENGLISH) -> Axes:
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
    ax.set_yticks(at, ["\n".join(drawing.wrap_name(c, width, rows)) for c in profile.clusters])
    ax.set_ylim(profile.k - 0.5, -0.5)
    drawing.set_percent_axis(ax, 1.18 * float(np.nanmax([*shares, *soft], initial=0.1)), words)
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    return drawing.finish_axes(ax, words("chart.sizes"))
