"""Charts of a profile, as Matplotlib axes for print and for library users.

No chart touches pyplot, so that they can be drawn in threads and without a screen.
"""

from __future__ import annotations

from textwrap import fill, wrap
from typing import TYPE_CHECKING

import numpy as np

from comorb.insight.profile.compare import Comparison, match
from comorb.insight.profile.labels import shorten
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.relevance import LAMBDA
from comorb.insight.views import drawing
from comorb.insight.views.drawing import CODE_WIDTH
from comorb.insight.views.palette import colours, palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from comorb.insight.profile.contents import Cluster
    from comorb.model.choose import Choice

NAME_WIDTH = 46
PIXELS = 900


def frequency(profile: Profile, n: int = 20, ax: Axes | None = None) -> Axes:
    """Draw the disease-frequency chart: a row of bars for each of the most common codes.

    Parameters
    ----------
    profile : Profile
        The clusters.
    n : int, default=20
        How many codes.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The first column has the bars of all records, whose tick is repeated in each cluster.
    """
    rows = profile.common(n)
    ax = ax or drawing.table_axes(profile.k + 1, len(rows))
    shares = np.vstack([profile.overall[rows], profile.prevalence[:, rows]])
    fills = [palette()["overall"], *colours(profile.numbers)]
    drawing.bars(ax, shares, fills, [profile.labels[i] for i in rows])
    for column in range(1, profile.k + 1):
        drawing.marks(ax, column, profile.overall[rows])
    drawing.heads(ax, ["All", *map(str, profile.numbers)], fills)
    drawing.key(ax, profile.clusters, fills[1:])
    title = f"How common the {len(rows)} most frequent diagnoses are (%; the tick is all records)"
    if profile.universal:
        left_out = ", ".join(profile.labels[i] for i in profile.universal[:3])
        title += f"\n{shorten(left_out, 60)}: in every record, so not shown"
    return drawing.titled(ax, title)


def heatmap(profile: Profile, ax: Axes | None = None) -> Axes:
    """Draw the heat-map: records as lines in the order of their clusters, a column a code.

    Parameters
    ----------
    profile : Profile
        The clusters.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The darker a place, the more of its records carry the code; the tint is the cluster's.
    """
    from matplotlib.colors import to_rgb

    cells = profile.heatmap
    ax = ax or drawing.new_axes(10, 9.5)
    lines, columns = np.array(cells.lines), list(cells.columns)
    edges = np.concatenate([[0], np.cumsum(lines)])
    height = max(int(edges[-1]), 1)
    ink, rows = np.array(to_rgb(palette()["ink"])), cells.rows()
    strips = []
    for place, colour in enumerate(colours(profile.numbers)):
        part = rows[edges[place] : edges[place + 1]]
        shade = drawing.density(part, -(-len(part) * PIXELS // height))[:, :, None]
        strip = shade * ink + (1 - shade) * (1 - 0.22 * (1 - np.array(to_rgb(colour))))
        strip[:, np.isnan(profile.prevalence[place, columns])] = 1
        strips.append(strip)
    for strip, start, end in zip(strips, edges[:-1], edges[1:], strict=True):
        if end > start:
            box = (-0.5, len(columns) - 0.5, end, start)
            ax.imshow(strip, aspect="auto", interpolation="nearest", extent=box)
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylim(height, 0)
    ax.set_xticks(range(len(columns)), [shorten(profile.labels[i], CODE_WIDTH) for i in columns])
    ax.tick_params(axis="x", labelrotation=90, labelsize=7.5, length=0)
    centres = (edges[:-1] + edges[1:]) / 2
    few = profile.k <= 12
    places = drawing.spread(centres, (0.05 if few else 0.021) * height, height)
    named = zip(profile.clusters, colours(profile.numbers), places, centres, lines, strict=True)
    for cluster, colour, at, middle, count in named:
        if count:
            ax.annotate(
                _named(cluster, 30 if few else 38, 2 if few else 1),
                (-0.5, middle),
                (-2.6, at),
                annotation_clip=False,
                ha="right",
                va="center",
                fontsize=8 if few else 6.5,
                color=palette()["ink"],
                arrowprops={
                    "arrowstyle": "-",
                    "color": colour,
                    "lw": 1.4 if few else 0.5,
                    "shrinkB": 0,
                    "relpos": (1, 0.5),
                },
            )
    ax.set_yticks([])
    ax.hlines(edges[1:-1], -0.5, len(columns) - 0.5, colors="white", lw=0.8)
    each = "a record" if cells.per_line == 1 else f"{cells.per_line} records or more"
    return drawing.titled(ax, f"Each line is {each}, the surest first; dark: has the diagnosis")


def relevance(
    profile: Profile, cluster: int, lam: float = LAMBDA, n: int = 10, ax: Axes | None = None
) -> Axes:
    """Draw the most relevant codes of a cluster: how common there, and overall.

    Parameters
    ----------
    profile : Profile
        The clusters.
    cluster : int
        From 0.
    lam : float, default=0.6
        λ: 0 for the most specific codes first, 1 for the most frequent.
    n : int, default=10
        How many codes, at most.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The most relevant code is on top.
    """
    rows = profile.top(cluster, lam, n)
    ax = ax or drawing.new_axes(7.5, 1.6 + 0.36 * max(len(rows), 1))
    at = np.arange(len(rows))
    low, high = profile.intervals()
    share = profile.prevalence[cluster, rows]
    errors = np.array([share - low[cluster, rows], high[cluster, rows] - share])
    about = profile.clusters[cluster]
    colour = colours([about.number])[0]
    ax.barh(at - 0.19, share, 0.38, color=colour, label="in this cluster")
    ax.errorbar(share, at - 0.19, xerr=errors, fmt="none", ecolor=palette()["ink"], elinewidth=0.9)
    ax.barh(at + 0.19, profile.overall[rows], 0.38, color=palette()["overall"], label="overall")
    ax.set_yticks(at, [shorten(profile.labels[i], CODE_WIDTH) for i in rows])
    ax.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    drawing.percent(ax, float(np.nanmax(high[cluster, rows], initial=0.1)))
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    name = shorten(about.name, NAME_WIDTH)
    return drawing.titled(ax, f"{about.number}  {name}\nMost relevant diagnoses, λ = {lam:g}")


def sizes(profile: Profile, ax: Axes | None = None) -> Axes:
    """Draw the size of each cluster.

    Parameters
    ----------
    profile : Profile
        The clusters.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        A bar for the records most probably in a cluster, a dot for the soft share.
    """
    ax = ax or drawing.new_axes(8, 1.5 + 0.34 * profile.k)
    at = np.arange(profile.k)
    shares = np.array([np.nan if c.share is None else c.share for c in profile.clusters])
    soft = np.array([np.nan if c.soft_share is None else c.soft_share for c in profile.clusters])
    ax.barh(at, np.nan_to_num(shares), 0.66, color=colours(profile.numbers))
    ax.plot(soft, at, "D", ms=4, mec="white", mew=0.8, color=palette()["ink"], label="soft share")
    for place, cluster in enumerate(profile.clusters):
        text = "hidden" if cluster.size is None else f"{cluster.size:,}  ({_share(cluster.share)})"
        ends = [v for v in (cluster.share, cluster.soft_share) if v is not None]
        ax.annotate(
            text, (max(ends, default=0), place), (7, 0), textcoords="offset points", va="center",
            fontsize=8, color=palette()["muted"],
        )  # fmt: skip
    width, rows = (NAME_WIDTH, 2) if profile.k <= 12 else (56, 1)
    ax.set_yticks(at, [_named(cluster, width, rows) for cluster in profile.clusters])
    ax.set_ylim(profile.k - 0.5, -0.5)
    drawing.percent(ax, 1.18 * float(np.nanmax([*shares, *soft], initial=0.1)))
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    return drawing.titled(ax, "Records in each cluster")


def choice_of_k(choice: Choice, ax: Axes | None = None) -> Axes:
    """Draw the criteria over the number of clusters, and the number that was chosen.

    Parameters
    ----------
    choice : Choice
        The way down, from `comorb.model.choose`.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        Criteria in nats a record, more is better, and the stability on the right.
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
    return drawing.titled(ax, fill(choice.reason, 84))


def compare(
    profile_a: Profile,
    profile_b: Profile,
    n: int = 20,
    ax: Axes | None = None,
    comparison: Comparison | None = None,
) -> Axes:
    """Draw the prevalences of two runs, each cluster of the first beside its match.

    Parameters
    ----------
    profile_a, profile_b : Profile
        The runs.
    n : int, default=20
        How many codes.
    ax : Axes, optional
        Where to draw; a new figure by default.
    comparison : Comparison, optional
        Which clusters match, such as by their records; by default by the codes of both runs.

    Returns
    -------
    Axes
        Bars for the first run, ticks for the second; a column is headed by its two numbers.
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


def _named(cluster: Cluster, width: int, rows: int) -> str:
    """Return the number and name of a cluster in at most so many rows."""
    name = f"{cluster.number}  {cluster.name}"
    return "\n".join(wrap(name, width, max_lines=rows, placeholder="…"))


def _share(value: float | None) -> str:
    return "hidden" if value is None else f"{value:.0%}" if value >= 0.0095 else f"{value:.1%}"
