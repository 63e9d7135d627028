"""Pages of the PDF on slices and rules."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from textwrap import wrap
from typing import TYPE_CHECKING

from comorb.insight.profile.profile import Profile
from comorb.insight.profile.rules import Condition
from comorb.insight.profile.slices import Slices
from comorb.insight.views.board import Board
from comorb.insight.views.drawing import named
from comorb.insight.views.findings import column_name
from comorb.insight.views.palette import colours, palette
from comorb.insight.views.words import Words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    Page = Callable[[str], Figure]

_LEFT, _STEP, _MOST = 0.06, 0.028, 12


def slice_pages(board: Board, page: Page) -> list[Figure]:
    """Return the shares of clusters within slices, a page for each that they are cut by.

    Of more clusters than a page holds, the first are printed.
    """
    return [_slices(board.profile, one, page, board.words) for one in board.profile.slices]


def slice_name(by: str, words: Words) -> str:
    """Return what records are sliced by in words, without its cut points."""
    name = by.partition(":")[0]
    return words.get(f"slices.{name}", column_name(name, words))


def _slices(profile: Profile, slices: Slices, page: Page, words: Words) -> Figure:
    figure = page(words("print.slices", by=slice_name(slices.by, words).lower()))
    shown = range(min(profile.k, _MOST))
    columns = [0.34 + 0.6 * (place + 1) / len(shown) for place in shown]
    fills = colours(profile.numbers)
    for place, left in zip(shown, columns, strict=True):
        number = str(profile.clusters[place].number)
        figure.text(
            left, 0.88, number, fontsize=9, fontweight="bold", color=fills[place], ha="right"
        )
    figure.text(0.34, 0.88, words("records"), fontsize=8, ha="right", color=palette()["muted"])
    height = 0.88
    few = words("print.few")
    for s, label in enumerate(slices.labels):
        height -= _STEP
        told = words.get(f"value.{label.lower()}", label)
        figure.text(_LEFT, height, told, fontsize=8.5, parse_math=False)
        records = slices.counts[s, -1]
        text = few if isnan(records) else words.count(records)
        figure.text(0.34, height, text, fontsize=8, ha="right")
        for place, left in zip(shown, columns, strict=True):
            figure.text(left, height, _cell(slices, s, place, words), fontsize=8, ha="right")
    height -= 1.4 * _STEP
    test = words("slices.trend" if slices.ordered else "slices.difference")
    figure.text(_LEFT, height, test, fontsize=8.5, color=palette()["muted"])
    for place, left in zip(shown, columns, strict=True):
        figure.text(left, height, _chance(slices, place, words), fontsize=8, ha="right")
    mix = [slice_name(one, words).lower() for one in slices.mix]
    lines = [words("slices.standardised", mix=words.listed(mix))] if mix else []
    lines += map(words.said, slices.notes)
    lines += [" ".join(named(cluster, 100, 1)) for cluster in profile.clusters[:_MOST]]
    for text in lines:
        height -= _STEP
        figure.text(_LEFT, height, text, fontsize=7.5, color=palette()["muted"], parse_math=False)
    return figure


def _cell(slices: Slices, s: int, place: int, words: Words) -> str:
    share, even = slices.share[s, place], slices.standardised[s, place]
    told = words("print.few") if isnan(share) else words.number(100 * share, 0)
    return told if not slices.mix or isnan(even) else f"{told} ({words.number(100 * even, 0)})"


def _chance(slices: Slices, place: int, words: Words) -> str:
    p, z = slices.p[place], slices.z[place]
    if isnan(p):
        return "–"
    sign = "" if isnan(z) else "↑ " if z > 0 else "↓ "
    return f"{sign}< {words.number(0.001, 3)}" if p < 0.001 else f"{sign}{words.number(p, 3)}"


def rule_pages(board: Board, page: Page) -> list[Figure]:
    """Return the rules of each cluster, six to a page."""
    profile, words = board.profile, board.words
    told = [
        (cluster, rules)
        for cluster, rules in zip(profile.clusters, profile.rules, strict=bool(profile.rules))
        if rules.conditions
    ]
    few = words("print.few")
    figures = []
    for first in range(0, len(told), 6):
        figure = page(words("print.rules"))
        for place, (cluster, rules) in enumerate(told[first : first + 6]):
            left, height = _LEFT + 0.31 * (place % 3), 0.87 - 0.4 * (place // 3)
            lines = [(text, "bold") for text in named(cluster, 40, 2)]
            for number, one in enumerate(rules.conditions, 1):
                text = f"{number}. {_condition(profile, one, words)}: {_answer(one.member, words)}"
                lines += [(part, "normal") for part in wrap(text, 48, subsequent_indent="    ")]
            answer = _answer(rules.otherwise, words)
            lines.append((f"{words('rules.otherwise')}: {answer}", "normal"))
            missed = few if isnan(rules.recall) else words.percent(1 - rules.recall)
            right = few if isnan(rules.precision) else words.percent(rules.precision)
            judged = words("print.judged", right=right, missed=missed)
            lines += [(part, "normal") for part in wrap(judged, 48)]
            for row, (text, weight) in enumerate(lines):
                figure.text(
                    left, height - 0.024 * row, text, fontsize=8, fontweight=weight,
                    parse_math=False,
                )  # fmt: skip
        figures.append(figure)
    return figures


def _condition(profile: Profile, one: Condition, words: Words) -> str:
    """Return a condition of a rule in the words of a language."""
    label = profile.labels[one.code]
    if one.code >= profile.n_codes:
        return label if one.has else f"{words('rules.isnt')} {label}"
    return f"{words('rules.has' if one.has else 'rules.lacks')} {label}"


def _answer(member: bool, words: Words) -> str:
    return words("rules.yes" if member else "rules.no")
