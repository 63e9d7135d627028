"""Pages of the PDF on slices and rules."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from textwrap import wrap
from typing import TYPE_CHECKING

from comorb.insight.profile.profile import Profile
from comorb.insight.profile.slices import Slices
from comorb.insight.views.drawing import named
from comorb.insight.views.palette import colours, palette

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    Page = Callable[[str], Figure]

_LEFT, _STEP, _MOST = 0.06, 0.028, 12


def slice_pages(profile: Profile, page: Page) -> list[Figure]:
    """Return the shares of clusters within slices, a page for each that they are cut by.

    Of more clusters than a page holds, the first are printed.
    """
    return [_slices(profile, one, page) for one in profile.slices]


def _slices(profile: Profile, slices: Slices, page: Page) -> Figure:
    figure = page(f"Clusters by {slices.by.partition(':')[0]} (% of the records of each line)")
    shown = range(min(profile.k, _MOST))
    columns = [0.34 + 0.6 * (place + 1) / len(shown) for place in shown]
    fills = colours(profile.numbers)
    for place, left in zip(shown, columns, strict=True):
        number = str(profile.clusters[place].number)
        figure.text(
            left, 0.88, number, fontsize=9, fontweight="bold", color=fills[place], ha="right"
        )
    figure.text(0.34, 0.88, "records", fontsize=8, ha="right", color=palette()["muted"])
    height = 0.88
    for s, label in enumerate(slices.labels):
        height -= _STEP
        figure.text(_LEFT, height, label, fontsize=8.5)
        records = slices.counts[s, -1]
        figure.text(
            0.34, height, "few" if isnan(records) else f"{records:,.0f}", fontsize=8, ha="right"
        )
        for place, left in zip(shown, columns, strict=True):
            figure.text(left, height, _cell(slices, s, place), fontsize=8, ha="right")
    height -= 1.4 * _STEP
    test = "trend, p" if slices.ordered else "difference, p"
    figure.text(_LEFT, height, test, fontsize=8.5, color=palette()["muted"])
    for place, left in zip(shown, columns, strict=True):
        figure.text(left, height, _chance(slices, place), fontsize=8, ha="right")
    lines = (
        [f"In brackets: with the {' and '.join(slices.mix)} of all records."] if slices.mix else []
    )
    lines += slices.notes
    lines += [" ".join(named(cluster, 100, 1)) for cluster in profile.clusters[:_MOST]]
    for text in lines:
        height -= _STEP
        figure.text(_LEFT, height, text, fontsize=7.5, color=palette()["muted"])
    return figure


def _cell(slices: Slices, s: int, place: int) -> str:
    share, even = slices.share[s, place], slices.standardised[s, place]
    told = "few" if isnan(share) else f"{share:.0%}"
    return told if not slices.mix or isnan(even) else f"{told} ({even:.0%})"


def _chance(slices: Slices, place: int) -> str:
    p, z = slices.p[place], slices.z[place]
    if isnan(p):
        return "–"
    sign = "" if isnan(z) else "↑ " if z > 0 else "↓ "
    return f"{sign}< 0.001" if p < 0.001 else f"{sign}{p:.3f}"


def rule_pages(profile: Profile, page: Page) -> list[Figure]:
    """Return the rules of each cluster, six to a page."""
    told = [
        (cluster, rules)
        for cluster, rules in zip(profile.clusters, profile.rules, strict=bool(profile.rules))
        if rules.conditions
    ]
    figures = []
    for first in range(0, len(told), 6):
        figure = page("Rules: the first line that a record meets decides")
        for place, (cluster, rules) in enumerate(told[first : first + 6]):
            left, height = _LEFT + 0.31 * (place % 3), 0.87 - 0.42 * (place // 3)
            lines = [(text, "bold") for text in named(cluster, 40, 2)]
            for number, one in enumerate(rules.conditions, 1):
                text = f"{number}. {profile.said(one)}: {_answer(one.member)}"
                lines += [(part, "normal") for part in wrap(text, 48, subsequent_indent="    ")]
            lines.append((f"otherwise: {_answer(rules.otherwise)}", "normal"))
            missed = "few" if isnan(rules.recall) else f"{1 - rules.recall:.0%}"
            right = "few" if isnan(rules.precision) else f"{rules.precision:.0%}"
            lines.append((f"right {right} of the time, misses {missed}", "normal"))
            for row, (text, weight) in enumerate(lines):
                figure.text(left, height - 0.024 * row, text, fontsize=8, fontweight=weight)
        figures.append(figure)
    return figures


def _answer(member: bool) -> str:
    return "yes" if member else "no"
