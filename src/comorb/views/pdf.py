"""The board in print: a PDF that opens with findings, drawn by Matplotlib without a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, BinaryIO

from comorb.messages import render
from comorb.profiles.profile import Profile
from comorb.profiles.rules import Condition
from comorb.profiles.slices import Slices
from comorb.views import charts
from comorb.views.board import Board, Measure
from comorb.views.charts import colours, palette, wrap_name
from comorb.views.findings import column_name
from comorb.views.words import Words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDE, TALL = 11.69, 8.27
_LEFT, _RIGHT, _TOP, _BOTTOM = 0.06, 0.94, 0.88, 0.09
_LEDGER_COLUMNS = [(_LEFT, "left"), (0.2, "left")]  # unit and rule, and then numbers
_LEDGER_COLUMNS += [(left, "right") for left in (0.72, 0.83, _RIGHT)]
_STEP = 0.028  # between two lines of a table of slices
_MAX_CLUSTERS = 12  # that a page of slices holds
_FIGURES_PER_PAGE = 4
_MIN_BAR_HEIGHT = 0.036  # height that a cluster needs in the chart of burden, at least
_MAX_COMPARED = 12  # figures of all clusters, at most; the workbook has the others


def report_pdf(board: Board, path: str | Path | BinaryIO) -> None:
    """Write a board as a PDF: findings, a page for each cluster, the charts, and the method last.

    Protect its profile first where counts of few must not be seen. The same gives the same bytes.
    """
    from matplotlib.backends.backend_pdf import PdfPages

    figures = list(pages(board))
    metadata = {"Title": board.title, "Creator": f"comorb {board.given.source.version}"}
    left = " · ".join(part for part in (board.title, board.place_and_day) if part)
    with PdfPages(path, metadata={**metadata, "CreationDate": None}) as printed:
        for number, figure in enumerate(figures, 1):
            _text(figure, _LEFT, 0.03, _short(left, 110), 8, palette()["muted"])
            page = board.words("board.page", n=str(number), all=str(len(figures)))
            _text(figure, _RIGHT, 0.03, page, 8, palette()["muted"], ha="right")
            printed.savefig(figure)


def pages(board: Board) -> Iterator[Figure]:
    """Yield the pages of a board, without their feet."""
    yield from _first(board)
    for place in range(board.profile.k):
        yield _cluster(board, place)
    yield from _comparison_pages(board, board.measures[:_MAX_COMPARED], board.words("board.beside"))
    yield from _comparison_pages(board, board.features, board.words("features.title"))
    yield from (_chart(board, name) for name in charts.CHARTS if name != "burden")
    yield from (*slice_pages(board), *rule_pages(board))
    yield from _method(board)


def _page(title: str = "") -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDE, TALL), facecolor="white")
    if title:
        figure.text(_LEFT, 0.93, title, fontsize=15, fontweight="bold", color=palette()["ink"])
    return figure


def _text(  # noqa: PLR0913 - a place and a style
    figure: Figure, left: float, height: float, text: str, size: float, colour: str = "",
    *, bold: bool = False, ha: str = "left",
) -> None:  # fmt: skip
    weight = "bold" if bold else "normal"
    figure.text(left, height, text, fontsize=size, color=colour or palette()["ink"],
                fontweight=weight, ha=ha, parse_math=False)  # fmt: skip


def _short(text: str, width: int) -> str:
    return "".join(wrap(text, width, max_lines=1, placeholder="…"))


def slice_pages(board: Board) -> list[Figure]:
    """Return the shares of clusters within slices, a page for each that they are cut by.

    Of more clusters than a page holds, the first are printed.
    """
    return [_slices(board.profile, one, board.words) for one in board.profile.slices]


def slice_name(by: str, words: Words) -> str:
    """Return what records are sliced by in words, without its cut points."""
    name = by.partition(":")[0]
    return words.get(f"slices.{name}", column_name(name, words))


def _slices(profile: Profile, slices: Slices, words: Words) -> Figure:
    figure = _page(words("print.slices", by=slice_name(slices.by, words).lower()))
    shown = range(min(profile.k, _MAX_CLUSTERS))
    columns = [0.34 + 0.6 * (place + 1) / len(shown) for place in shown]
    height, black, muted = 0.88, "black", palette()["muted"]
    for number, fill, left in zip(profile.numbers, colours(profile.numbers), columns, strict=False):
        _text(figure, left, height, str(number), 9, fill, bold=True, ha="right")
    _text(figure, 0.34, height, words("records"), 8, muted, ha="right")
    few = words("print.few")
    for s, label in enumerate(slices.labels):
        height -= _STEP
        _text(figure, _LEFT, height, words.get(f"value.{label.lower()}", label), 8.5, black)
        records = slices.counts[s, -1]
        text = few if isnan(records) else words.count(records)
        _text(figure, 0.34, height, text, 8, black, ha="right")
        for place, left in zip(shown, columns, strict=True):
            share, even = slices.share[s, place], slices.standardised[s, place]
            text = few if isnan(share) else words.number(100 * share, 0)
            if slices.mix and not isnan(even):
                text = f"{text} ({words.number(100 * even, 0)})"
            _text(figure, left, height, text, 8, black, ha="right")
    height -= 1.4 * _STEP
    test = words("slices.trend" if slices.ordered else "slices.difference")
    _text(figure, _LEFT, height, test, 8.5, muted)
    for place, left in zip(shown, columns, strict=True):
        _text(figure, left, height, _p_value(slices, place, words), 8, black, ha="right")
    mix = [slice_name(one, words).lower() for one in slices.mix]
    lines = [words("slices.standardised", mix=words.listed(mix))] if mix else []
    lines += [render(note, words.language) for note in slices.notes]
    lines += [" ".join(wrap_name(one, 100, 1)) for one in profile.clusters[:_MAX_CLUSTERS]]
    for text in lines:
        height -= _STEP
        _text(figure, _LEFT, height, text, 7.5, muted)
    return figure


def _p_value(slices: Slices, place: int, words: Words) -> str:
    p, z = slices.p[place], slices.z[place]
    if isnan(p):
        return "–"
    sign = "" if isnan(z) else "↑ " if z > 0 else "↓ "
    return f"{sign}< {words.number(0.001, 3)}" if p < 0.001 else f"{sign}{words.number(p, 3)}"


def rule_pages(board: Board) -> list[Figure]:
    """Return the rules of each cluster, six to a page."""
    profile, words = board.profile, board.words
    pairs = zip(profile.clusters, profile.rules, strict=bool(profile.rules))
    shown = [(cluster, rules) for cluster, rules in pairs if rules.conditions]
    few = words("print.few")
    figures = []
    for first in range(0, len(shown), 6):
        figure = _page(words("print.rules"))
        for place, (cluster, rules) in enumerate(shown[first : first + 6]):
            left, height = _LEFT + 0.31 * (place % 3), 0.87 - 0.4 * (place // 3)
            names, lines = wrap_name(cluster, 40, 2), []
            for number, one in enumerate(rules.conditions, 1):
                text = f"{number}. {_condition(profile, one, words)}: {_answer(one.member, words)}"
                lines += wrap(text, 48, subsequent_indent="    ")
            lines.append(f"{words('rules.otherwise')}: {_answer(rules.otherwise, words)}")
            missed = few if isnan(rules.recall) else words.percent(1 - rules.recall)
            right = few if isnan(rules.precision) else words.percent(rules.precision)
            lines += wrap(words("print.judged", right=right, missed=missed), 48)
            for row, text in enumerate([*names, *lines]):
                at = height - 0.024 * row
                _text(figure, left, at, text, 8, "black", bold=row < len(names))
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


def _first(board: Board) -> Iterator[Figure]:
    """Yield what was found, with the chart of burden below it or, of many clusters, behind it."""
    from matplotlib.patches import Rectangle

    words, figure, overall = board.words, _page(), palette()["overall"]
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
        (fill,) = colours(finding.clusters) if len(finding.clusters) == 1 else (overall,)
        figure.add_artist(Rectangle((_LEFT, height), 0.009, 0.0127, color=fill, lw=0))
        for line in wrap(finding.text, 112):
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
            _text(figure, 0.455, height, own, 9.5, ha="right")
            _text(figure, 0.47, height, every, 9.5, palette()["muted"])
            if details:
                height -= 0.016
                _text(figure, 0.455, height, details, 6.5, palette()["muted"], ha="right")
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
    labels = (wrap(board.profile.labels[i], 30, max_lines=2, placeholder="…") for i in rows)
    axes.set_yticks(axes.get_yticks(), ["\n".join(lines) for lines in labels])
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(-0.95, -0.06), ncols=2)
    return figure


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
    heads = [*(wrap_name(cluster, 44, rows) for cluster in profile.clusters), [words("all")]]
    for first in range(0, len(measures), _FIGURES_PER_PAGE):
        figure = _page(title)
        for row, lines in enumerate(heads):
            for at, text in enumerate(lines):
                _text(figure, _LEFT, 0.8 - step * row - 0.018 * at, text, 8.5)
        for column, one in enumerate(measures[first : first + _FIGURES_PER_PAGE]):
            left = 0.5 + 0.145 * column
            for at, text in enumerate(reversed(wrap(one.name, 22, max_lines=3, placeholder="…"))):
                _text(figure, left, 0.84 + 0.021 * at, text, 8.5, "black", bold=True, ha="right")
            for row in range(profile.k + 1):
                _text(figure, left, 0.8 - step * row, one.texts[row], 8, "black", ha="right")
                if rows > 1:
                    below = (left, 0.783 - step * row, one.details[row], 6.5, palette()["muted"])
                    _text(figure, *below, ha="right")
        notes = [words("board.intervals")]
        if any(one.outcome.corrected for one in measures):
            notes.append(words("outcomes.corrected"))
            plain = [one.outcome.name for one in measures if one.outcome.corrected is None]
            names = ", ".join(dict.fromkeys(column_name(name, words) for name in plain))
            notes += [words("board.uncorrected", names=names)] if plain else []
        left = len(board.measures) - _MAX_COMPARED
        if left > 0 and measures and measures[0] in board.measures:
            notes.append(words("board.more", n=words.count(left)))
        for at, text in enumerate(wrap(" ".join(notes), 150)):
            _text(figure, _LEFT, 0.095 - 0.02 * at, text, 7.5, palette()["muted"])
        yield figure


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
            for (left, side), cell in zip(_LEDGER_COLUMNS, row, strict=True):
                text = _short(cell, 82) if left == 0.2 else cell
                _text(figure, left, height, text, 9, "black", bold=row == heads, ha=side)
        else:
            _text(figure, _LEFT, height, str(row), 11 if kind == "head" else 9, bold=kind == "head")
        height -= 0.02 if kind == "gap" else 0.026
    yield figure
