"""The report in print: a PDF of a few pages, drawn by Matplotlib without a browser."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, BinaryIO

from comorb.insight import charts
from comorb.insight.labels import shorten
from comorb.insight.outcomes import YES
from comorb.insight.palette import colours, palette
from comorb.insight.parts import Outcome
from comorb.insight.profile import Profile
from comorb.insight.relevance import LAMBDA

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE, TALL = 11.69, 8.27
_PER_PAGE, _FEW, _FIGURES = 8, 12, 6
_LEFT = 0.06


def report_pdf(profile: Profile, path: str | Path | BinaryIO) -> None:
    """Write a profile as a PDF: a summary, the charts and the table of relevance.

    Parameters
    ----------
    profile : Profile
        The clusters; suppress it first where small counts must not be seen.
    path : str, Path or open binary file
        Where to write. The same profile gives the same bytes.
    """
    from matplotlib.backends.backend_pdf import PdfPages

    about = {"Title": profile.source.title, "Creator": f"comorb {profile.source.version}"}
    with PdfPages(path, metadata={**about, "CreationDate": None}) as pages:
        figures = [_summary(profile), *_charts(profile), *_tables(profile), *_outcomes(profile)]
        for figure in figures:
            pages.savefig(figure)


def _page() -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDE, TALL), facecolor="white")


def _charts(profile: Profile) -> list[Figure]:
    figures = []
    draws: list[Callable[..., Axes]] = [charts.frequency, charts.heatmap]
    for draw in [charts.sizes, *draws] if profile.k > _FEW else draws:
        figure = _page()
        figure.set_layout_engine("constrained", rect=(0.02, 0.02, 0.96, 0.96))
        draw(profile, ax=figure.add_subplot())
        figures.append(figure)
    return figures


def _summary(profile: Profile) -> Figure:
    source, figure = profile.source, _page()
    figure.text(_LEFT, 0.92, shorten(source.title, 90), fontsize=20, fontweight="bold")
    facts = [f"{source.records:,} records", f"{source.features:,} codes", f"{profile.k} clusters"]
    if source.weight is not None:
        facts.append(f"standing for {source.weight:,.0f} patients")
    figure.text(_LEFT, 0.875, "   ·   ".join(facts), fontsize=12)
    blocks = [
        ("Number of clusters", [source.reason]),
        ("Data", [_told(*line) for line in _ledger(profile)]),
        ("Notes", list(source.notes)),
        ("Hidden", _hidden(profile)),
        (
            "How to do it again",
            [source.command, f"comorb {source.version}", f"SHA-256 of the data: {source.digest}"],
        ),
    ]
    height = 0.82
    for title, lines in blocks:
        texts = [part for line in lines if line for part in wrap(line, 135)]
        if not texts:
            continue
        figure.text(_LEFT, height, title, fontsize=11, fontweight="bold")
        for text in texts[:12]:
            height -= 0.026
            figure.text(_LEFT, height, text, fontsize=9, color=palette()["ink"])
        height -= 0.05
    if profile.k <= _FEW:
        room = min(0.1 + 0.045 * profile.k, height - 0.08)
        charts.sizes(profile, ax=figure.add_axes((0.36, 0.06, 0.58, max(room, 0.2))))
    return figure


def _ledger(profile: Profile) -> list[tuple[str, str, int, int]]:
    return [(line.unit, line.rule, line.before, line.after) for line in profile.source.lines]


def _told(unit: str, rule: str, before: int, after: int) -> str:
    left_out = f" ({before - after:,} left out)" if before > after else ""
    return f"{after:,} {unit}: {rule}{left_out}"


def _hidden(profile: Profile) -> list[str]:
    if not profile.min_cell:
        return []
    least = profile.min_cell
    return [f"Counts below {least} are not shown, nor those from which they could be worked out."]


def _tables(profile: Profile) -> list[Figure]:
    """Return the table of relevance, eight clusters to a page in two rows of four."""
    figures = []
    for first in range(0, profile.k, _PER_PAGE):
        figure = _page()
        title = f"Most relevant diagnoses of each cluster (λ = {LAMBDA:g})"
        figure.text(_LEFT, 0.94, title, fontsize=13, fontweight="bold")
        for place, cluster in enumerate(range(first, min(first + _PER_PAGE, profile.k))):
            _column(
                profile, cluster, figure, _LEFT + 0.23 * (place % 4), 0.88 - 0.44 * (place // 4)
            )
        figures.append(figure)
    return figures


def _column(profile: Profile, cluster: int, figure: Figure, left: float, top: float) -> None:
    from matplotlib.lines import Line2D

    about = profile.clusters[cluster]
    colour = colours([about.number])[0]
    ends = [left, left + 0.2]
    figure.add_artist(Line2D(ends, [top + 0.02] * 2, color=colour, lw=4, solid_capstyle="butt"))
    for row, text in enumerate(wrap(f"{about.number}  {about.name}", 34)[:2]):
        figure.text(left, top - 0.008 - 0.021 * row, text, fontsize=8.5, fontweight="bold")
    if about.size is None:
        size = "too few records to show"
    else:
        size = f"{about.size:,} records, {about.share:.1%}"
    figure.text(left, top - 0.055, size, fontsize=8, color=palette()["muted"])
    for row, code in enumerate(profile.top(cluster)):
        height = top - 0.085 - 0.026 * row
        share = f"{profile.prevalence[cluster, code]:.0%}"
        figure.text(left, height, shorten(profile.labels[code], 34), fontsize=8)
        figure.text(left + 0.2, height, share, fontsize=8, ha="right")


def _outcomes(profile: Profile) -> list[Figure]:
    """Return the outcomes of each cluster with their intervals, six to a page."""
    every = [
        (outcome, v)
        for outcome in profile.outcomes
        for v, estimates in enumerate(outcome.estimate)
        if not all(isnan(estimate) for estimate in estimates)
    ]
    figures = []
    for first in range(0, len(every), _FIGURES):
        figure = _page()
        title = "Outcomes and patients (with 95% intervals)"
        figure.text(_LEFT, 0.94, title, fontsize=13, fontweight="bold")
        step = min(0.05, 0.8 / (profile.k + 1))
        names = [f"{c.number}  {shorten(c.name, 34)}" for c in profile.clusters]
        for row, name in enumerate([*names, "All"]):
            figure.text(_LEFT, 0.84 - step * row, name, fontsize=8)
        for place, (outcome, v) in enumerate(every[first : first + _FIGURES]):
            left = 0.4 + 0.1 * place
            head = wrap(_heading(outcome, v), 15)
            for row, text in enumerate(reversed(head[:2])):
                figure.text(
                    left, 0.875 + 0.022 * row, text, fontsize=8, fontweight="bold", ha="right"
                )
            for row in range(profile.k + 1):
                text = _estimate(outcome, v, row)
                figure.text(left, 0.84 - step * row, text, fontsize=7.5, ha="right")
        figures.append(figure)
    return figures


def _heading(outcome: Outcome, v: int) -> str:
    name = outcome.name.replace("_", " ").capitalize()
    value = outcome.values[v].replace("_", " ")
    only = len(outcome.values) == 1 and value.lower() in YES
    return name if only else f"{name}: {value}"


def _estimate(outcome: Outcome, v: int, place: int) -> str:
    values = (outcome.estimate[v, place], outcome.low[v, place], outcome.high[v, place])
    if isnan(values[0]):
        return "–"
    scale = 100 if outcome.kind == "share" else 1
    centre, low, high = (f"{scale * value:.1f}" for value in values)
    unit = "%" if outcome.kind == "share" else ""
    return f"{centre}{unit}" if isnan(values[1]) else f"{centre}{unit} ({low}–{high})"
