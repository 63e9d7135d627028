"""The board in print: a PDF that opens with findings, drawn by Matplotlib without a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, BinaryIO

from comorb.messages import render
from comorb.profiles.profile import Profile
from comorb.profiles.rules import Condition
from comorb.profiles.slices import Slices
from comorb.views import charts
from comorb.views.board import Board, Measure
from comorb.views.drawing import colours, palette, wrap_name
from comorb.views.findings import column_name
from comorb.views.words import Words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

if TYPE_CHECKING:
    Page = Callable[[str], Figure]

_USAGE_LEFT, _STEP, _MOST = 0.06, 0.028, 12


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
        figure.text(_USAGE_LEFT, height, told, fontsize=8.5, parse_math=False)
        records = slices.counts[s, -1]
        text = few if isnan(records) else words.count(records)
        figure.text(0.34, height, text, fontsize=8, ha="right")
        for place, left in zip(shown, columns, strict=True):
            figure.text(left, height, _cell(slices, s, place, words), fontsize=8, ha="right")
    height -= 1.4 * _STEP
    test = words("slices.trend" if slices.ordered else "slices.difference")
    figure.text(_USAGE_LEFT, height, test, fontsize=8.5, color=palette()["muted"])
    for place, left in zip(shown, columns, strict=True):
        figure.text(left, height, _chance(slices, place, words), fontsize=8, ha="right")
    mix = [slice_name(one, words).lower() for one in slices.mix]
    lines = [words("slices.standardised", mix=words.listed(mix))] if mix else []
    lines += [render(note, words.language) for note in slices.notes]
    lines += [" ".join(wrap_name(cluster, 100, 1)) for cluster in profile.clusters[:_MOST]]
    for text in lines:
        height -= _STEP
        figure.text(
            _USAGE_LEFT, height, text, fontsize=7.5, color=palette()["muted"], parse_math=False
        )
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
            left, height = _USAGE_LEFT + 0.31 * (place % 3), 0.87 - 0.4 * (place // 3)
            lines = [(text, "bold") for text in wrap_name(cluster, 40, 2)]
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


WIDE, TALL = 11.69, 8.27
_LEFT, _RIGHT = 0.06, 0.94
_FIGURES_PER_PAGE = 4  # of figures, to a page
_MIN_BAR_HEIGHT = 0.036  # height that a cluster needs in the chart of burden, at least
_MAX_COMPARED = 12  # figures of all clusters, at most; the workbook has the others
_TOP, _BOTTOM = 0.88, 0.09


def report_pdf(board: Board, path: str | Path | BinaryIO) -> None:
    """Write a board as a PDF: findings, a page for each cluster, the charts, and the method last.

    Protect its profile first where counts of few must not be seen. The same gives the same bytes.
    """
    from matplotlib.backends.backend_pdf import PdfPages

    figures = list(pages(board))
    metadata = {"Title": board.title, "Creator": f"comorb {board.given.source.version}"}
    with PdfPages(path, metadata={**metadata, "CreationDate": None}) as printed:
        for number, figure in enumerate(figures, 1):
            _foot(figure, board, number, len(figures))
            printed.savefig(figure)


def pages(board: Board) -> Iterator[Figure]:
    """Yield the pages of a board, without their feet."""
    yield from _first(board)
    for place in range(board.profile.k):
        yield _cluster(board, place)
    yield from _comparison_pages(board, board.measures[:_MAX_COMPARED], board.words("board.beside"))
    yield from _comparison_pages(board, board.features, board.words("features.title"))
    yield from (_chart(board, name) for name in charts.CHARTS if name != "burden")
    yield from (*slice_pages(board, _page), *rule_pages(board, _page))
    yield from _method(board)


def _page(title: str = "") -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDE, TALL), facecolor="white")
    if title:
        figure.text(_LEFT, 0.93, title, fontsize=15, fontweight="bold", color=palette()["ink"])
    return figure


def _foot(figure: Figure, board: Board, number: int, pages: int) -> None:
    """Write title, site, day and number of a page at its foot."""
    style: dict[str, Any] = {"fontsize": 8, "color": palette()["muted"], "parse_math": False}
    left = " · ".join(part for part in (board.title, board.place_and_day) if part)
    figure.text(_LEFT, 0.03, "".join(wrap(left, 110, max_lines=1, placeholder="…")), **style)
    told = board.words("board.page", n=str(number), all=str(pages))
    figure.text(_RIGHT, 0.03, told, ha="right", **style)


def _first(board: Board) -> Iterator[Figure]:
    """Yield what was found, with the chart of burden below it or, of many clusters, behind it."""
    words, figure = board.words, _page()
    height = 0.93
    for line in wrap(board.title, 60, max_lines=2, placeholder="…"):
        _text(figure, _LEFT, height, line, 21, bold=True)
        height -= 0.048
    under = "   ·   ".join(part for part in (board.place_and_day, board.facts) if part)
    _text(figure, _LEFT, height, under, 11, palette()["muted"])
    height -= 0.07
    _text(figure, _LEFT, height, words("board.findings"), 14, bold=True)
    height -= 0.045
    for finding in board.findings:
        lines = wrap(finding.text, 112)
        own = finding.clusters if len(finding.clusters) == 1 else ()
        _mark(figure, _LEFT, height, colours(own))
        for line in lines:
            _text(figure, _LEFT + 0.02, height, line, 11.5)
            height -= 0.031
        height -= 0.012
    for line in wrap(board.care, 160):
        _text(figure, _LEFT + 0.02, height, line, 8, palette()["muted"])
        height -= 0.022
    used = board.profile.burden is not None and bool(board.profile.burden.columns)
    name = "burden" if used else "sizes"
    room = height - 0.12
    if room < _MIN_BAR_HEIGHT * board.profile.k:
        yield figure
        yield _chart(board, name)
        return
    axes = figure.add_axes((0.36, 0.085, 0.58, min(room, 0.1 + 0.07 * board.profile.k)))
    charts.draw(name, board.profile, axes, words)
    yield figure


def _mark(figure: Figure, left: float, height: float, fills: Sequence[str]) -> None:
    """Draw a square before a finding, in the colour of the cluster that it is about."""
    from matplotlib.patches import Rectangle

    fill = fills[0] if fills else palette()["overall"]
    figure.add_artist(Rectangle((left, height), 0.009, 0.0127, color=fill, lw=0))


def _text(
    figure: Figure, left: float, height: float, text: str, size: float, colour: str = "",
    *, bold: bool = False,
) -> None:  # fmt: skip
    figure.text(
        left,
        height,
        text,
        fontsize=size,
        color=colour or palette()["ink"],
        fontweight="bold" if bold else "normal",
        parse_math=False,
    )


def _chart(board: Board, name: str) -> Figure:
    figure = _page()
    figure.set_layout_engine("constrained", rect=(0.02, 0.06, 0.96, 0.9))
    charts.draw(name, board.profile, figure.add_subplot(), board.words)
    return figure


def _cluster(board: Board, place: int) -> Figure:
    """Return the page of a cluster: who, what marks it, outcomes, certainty, and its note."""
    from matplotlib.patches import Rectangle

    words, cluster, figure = board.words, board.profile.clusters[place], _page()
    fill = colours([cluster.number])[0]
    figure.add_artist(Rectangle((0, 0.985), 1, 0.015, color=fill, lw=0))
    height = 0.93
    for line in wrap_name(cluster, 66, 2):
        _text(figure, _LEFT, height, line, 18, bold=True)
        height -= 0.045
    top = height - 0.02
    height = _block(figure, words("board.who"), board.describe_people(place), top)
    measures = board.measures_of(place)
    if measures:
        _text(figure, _LEFT, height, words("board.outcomes"), 12, bold=True)
        _text(figure, 0.47, height, words("all"), 8.5, palette()["muted"])
        for name, own, details, every in measures:
            height -= 0.028
            _text(figure, _LEFT, height, _short(name, 34), 9.5)
            figure.text(0.455, height, own, fontsize=9.5, ha="right", color=palette()["ink"])
            _text(figure, 0.47, height, every, 9.5, palette()["muted"])
            if details:
                height -= 0.016
                _under(figure, 0.455, height, details)
        height -= 0.05
    height = _block(figure, words("board.certainty"), board.certainty(cluster), height)
    _block(figure, words("board.note"), board.note(cluster), height)
    _text(figure, 0.56, top, words("board.marks"), 12, bold=True)
    rows = board.marking_codes(place)
    if not rows:
        _text(figure, 0.56, top - 0.035, words("board.marks.none"), 9.5)
        return figure
    tall = min(0.06 + 0.062 * len(rows), top - 0.13)
    axes = figure.add_axes((0.745, top - 0.03 - tall, 0.2, tall))
    charts.draw_relevance(board.profile, place, ax=axes, words=words)
    axes.set_title("", loc="left")
    axes.set_yticks(axes.get_yticks(), [_folded(board.profile.labels[i]) for i in rows])
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(-0.95, -0.06), ncols=2)
    return figure


def _folded(label: str) -> str:
    return "\n".join(wrap(label, 30, max_lines=2, placeholder="…"))


def _short(text: str, width: int) -> str:
    return "".join(wrap(text, width, max_lines=1, placeholder="…"))


def _block(figure: Figure, title: str, lines: Sequence[str], height: float) -> float:
    """Write a titled block of text in the left half; return where the next begins."""
    if not lines:
        return height
    _text(figure, _LEFT, height, title, 12, bold=True)
    for text in [part for line in lines for part in wrap(line, 74)][:10]:
        height -= 0.028
        _text(figure, _LEFT, height, text, 9.5)
    return height - 0.05


def _comparison_pages(board: Board, measures: Sequence[Measure], title: str) -> Iterator[Figure]:
    """Yield the figures of all clusters with their intervals, some columns to a page."""
    profile, words = board.profile, board.words
    step = min(0.05, 0.68 / (profile.k + 1))
    rows = 2 if step > 0.035 else 1
    names = [*(wrap_name(cluster, 44, rows) for cluster in profile.clusters), [words("all")]]
    for first in range(0, len(measures), _FIGURES_PER_PAGE):
        figure = _page(title)
        for row, lines in enumerate(names):
            for at, text in enumerate(lines):
                _text(figure, _LEFT, 0.8 - step * row - 0.018 * at, text, 8.5)
        for column, one in enumerate(measures[first : first + _FIGURES_PER_PAGE]):
            left = 0.5 + 0.145 * column
            for at, text in enumerate(reversed(wrap(one.name, 22, max_lines=3, placeholder="…"))):
                style: dict[str, Any] = {"fontsize": 8.5, "fontweight": "bold", "ha": "right"}
                figure.text(left, 0.84 + 0.021 * at, text, **style)
            for row in range(profile.k + 1):
                figure.text(left, 0.8 - step * row, one.texts[row], fontsize=8, ha="right")
                if rows > 1:
                    _under(figure, left, 0.783 - step * row, one.details[row])
        notes = [words("board.intervals")]
        if any(one.outcome.corrected for one in measures):
            notes.append(words("outcomes.corrected"))
            plain = dict.fromkeys(
                column_name(one.outcome.name, words)
                for one in measures
                if one.outcome.corrected is None
            )
            notes += [words("board.uncorrected", names=", ".join(plain))] if plain else []
        left = len(board.measures) - _MAX_COMPARED
        if left > 0 and measures and measures[0] in board.measures:
            notes.append(words("board.more", n=words.count(left)))
        for at, text in enumerate(wrap(" ".join(notes), 150)):
            _text(figure, _LEFT, 0.095 - 0.02 * at, text, 7.5, palette()["muted"])
        yield figure


def _under(figure: Figure, right: float, height: float, text: str) -> None:
    """Write under a figure of how many it is, and what it is corrected."""
    figure.text(right, height, text, fontsize=6.5, ha="right", color=palette()["muted"])


def _method(board: Board) -> Iterator[Figure]:
    """Yield the method, the ledger and how to do it again, on as many pages as they take."""
    title = board.words("board.method")
    heads, lines = board.ledger
    rows: list[tuple[str, object]] = []
    for head, block in board.method().items():
        texts = [part for line in block for part in (wrap(line, 140) or [""])]
        rows += [("head", head), *(("text", text) for text in texts), ("gap", "")] if texts else []
        if head == board.words("board.counts") and lines:
            rows += [("head", board.words("ledger.title")), ("line", heads)]
            rows += [*(("line", line) for line in lines), ("gap", "")]
    figure, height = _page(title), _TOP
    for kind, row in rows:
        if height < _BOTTOM:
            yield figure
            figure, height = _page(title), _TOP
        if kind == "line" and isinstance(row, tuple):
            _line(figure, row, height, bold=row == heads)
        else:
            _text(figure, _LEFT, height, str(row), 11 if kind == "head" else 9, bold=kind == "head")
        height -= 0.02 if kind == "gap" else 0.026
    yield figure


def _line(figure: Figure, cells: Sequence[str], height: float, *, bold: bool) -> None:
    """Write a line of the ledger: what and rule at the left, numbers at the right."""
    weight = "bold" if bold else "normal"
    places: Mapping[int, tuple[float, str]] = {
        0: (_LEFT, "left"), 1: (0.2, "left"), 2: (0.72, "right"), 3: (0.83, "right"),
        4: (_RIGHT, "right"),
    }  # fmt: skip
    for at, cell in enumerate(cells):
        left, side = places[at]
        text = _short(cell, 82) if at == 1 else cell
        figure.text(left, height, text, fontsize=9, ha=side, fontweight=weight, parse_math=False)
