"""Slides: a board as a PowerPoint file, its charts native, so that they can be edited there."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from math import isnan
from typing import Any

from comorb.errors import InputError, not_installed
from comorb.messages import Message
from comorb.views.board import Board
from comorb.views.charts import colours, palette, wrap_name
from comorb.views.findings import amount_name
from comorb.views.sheets import DAY, Cell, workbook

_WIDE, _TALL, _EDGE = 13.333, 7.5, 0.6
_LINES_PER_SLIDE = 21  # of the method, to a slide
_MAX_FIGURES = 8  # outcomes of a cluster, at most
_MAX_BARS = 12  # clusters in the chart of burden, at most: the largest users


def slides_installed() -> bool:
    """Tell whether python-pptx is here, without loading it."""
    from importlib.util import find_spec

    return find_spec("pptx") is not None


def check_slides() -> None:
    """Refuse slides where python-pptx is missing, and say how to get it."""
    if not slides_installed():
        raise InputError(not_installed(Message("install.slides"), "slides"))


def slides(board: Board) -> bytes:
    """Return a board as a .pptx file: findings, a slide for each cluster, the method last.

    The same board gives the same bytes.
    """
    check_slides()
    from pptx import Presentation
    from pptx.util import Inches

    deck = Presentation()
    deck.slide_width, deck.slide_height = Inches(_WIDE), Inches(_TALL)
    pen = _Pen(deck, board)
    _first(pen)
    for place in range(board.profile.k):
        _cluster(pen, place)
    _method(pen)
    pen.feet()
    about = deck.core_properties
    about.title, about.author = board.title, f"comorb {board.given.source.version}"
    about.created = about.modified = datetime(*DAY)
    about.last_modified_by, about.revision = "", 1
    packed, dated = io.BytesIO(), io.BytesIO()
    deck.save(packed)
    # Every file in the archive gets the same day, so that the same board gives the same bytes.
    with zipfile.ZipFile(packed) as source, zipfile.ZipFile(dated, "w") as target:
        for name in source.namelist():
            target.writestr(zipfile.ZipInfo(name, DAY), source.read(name), zipfile.ZIP_DEFLATED)
    return dated.getvalue()


class _Pen:
    """Draws on the slides of a deck; places and sizes are in inches."""

    def __init__(self, deck: Any, board: Board) -> None:
        self.deck, self.board, self.words = deck, board, board.words
        self.slide: Any = None

    def new(self, title: str, fill: str = "") -> None:
        """Begin a slide, with a band in a colour above its title."""
        from pptx.enum.shapes import MSO_SHAPE

        self.slide = self.deck.slides.add_slide(self.deck.slide_layouts[5])
        head = self.slide.shapes.title
        head.left, head.top, head.width, head.height = _inches(_EDGE, 0.3, _WIDE - 2 * _EDGE, 0.85)
        _write(head.text_frame, [title], 26, bold=True)
        if fill:
            band = self.slide.shapes.add_shape(MSO_SHAPE.RECTANGLE, *_inches(0, 0, _WIDE, 0.14))
            _fill(band.fill, fill)
            band.line.fill.background()
            band.shadow.inherit = False

    def text(
        self, box: tuple[float, float, float, float], lines: Sequence[str], size: float = 14,
        colour: str = "", *, bold: bool = False, right: bool = False,
    ) -> Any:  # fmt: skip
        """Write lines into a box (left, top, width and height), and return its text frame."""
        frame = self.slide.shapes.add_textbox(*_inches(*box)).text_frame
        _write(frame, lines, size, colour, bold=bold, right=right)
        return frame

    def table(
        self, box: tuple[float, float, float, float], rows: Sequence[Sequence[str]],
        widths: Sequence[float], size: float = 11,
    ) -> None:  # fmt: skip
        """Draw a table whose first row is its head; all columns but the first are numbers."""
        from pptx.enum.text import PP_ALIGN
        from pptx.util import Inches

        frame = self.slide.shapes.add_table(len(rows), len(widths), *_inches(*box))
        frame._element.graphic.graphicData.tbl[0][-1].text = _PLAIN_TABLE
        for column, width in zip(frame.table.columns, widths, strict=True):
            column.width = Inches(width)
        for row, cells in zip(frame.table.rows, rows, strict=True):
            row.height = Inches(box[3] / len(rows))
            for place, (cell, text) in enumerate(zip(row.cells, cells, strict=True)):
                _write(cell.text_frame, [text], size, bold=row is frame.table.rows[0])
                cell.margin_top = cell.margin_bottom = Inches(0.02)
                if place:
                    cell.text_frame.paragraphs[0].alignment = PP_ALIGN.RIGHT

    def chart(
        self, box: tuple[float, float, float, float], names: Sequence[str],
        series: Mapping[str, Sequence[float | None]], fills: Sequence[Sequence[str]],
    ) -> None:  # fmt: skip
        """Draw a native chart of bars, a group of bars for each name, of shares."""
        from pptx.chart.data import CategoryChartData
        from pptx.enum.chart import XL_CHART_TYPE, XL_LEGEND_POSITION
        from pptx.util import Pt

        data = CategoryChartData(number_format="0%")
        data.categories = list(names)
        for name, values in series.items():
            data.add_series(name, values)
        frame = self.slide.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, *_inches(*box), data)
        chart = frame.chart
        sheet: dict[str, list[Cell]] = {"": list(names)}
        sheet |= {name: list(values) for name, values in series.items()}
        chart.part.chart_workbook.update_from_xlsx_blob(workbook({"Sheet1": sheet}))
        chart.font.size = Pt(11)
        chart.font.color.rgb = _colour(palette()["ink"])
        chart.has_legend, chart.has_title = True, False
        chart.legend.position, chart.legend.include_in_layout = XL_LEGEND_POSITION.BOTTOM, False
        chart.category_axis.reverse_order = True
        chart.category_axis.format.line.fill.background()
        chart.category_axis.has_major_gridlines = False
        chart.value_axis.visible = chart.value_axis.has_major_gridlines = False
        chart.value_axis.minimum_scale = 0
        plot = chart.plots[0]
        plot.gap_width, plot.overlap, plot.has_data_labels = 45, -5, True
        plot.data_labels.number_format, plot.data_labels.number_format_is_linked = "0%", False
        plot.data_labels.font.size = Pt(10)
        for one, own in zip(plot.series, fills, strict=True):
            _fill(one.format.fill, own[0])
            for place, fill in enumerate(own[1:], 1):
                if fill != own[0]:
                    _fill(one.points[place].format.fill, fill)

    def feet(self) -> None:
        """Write title, site, day and number at the foot of every slide."""
        board = self.board
        left = " · ".join(part for part in (board.title, board.place_and_day) if part)
        slides = list(self.deck.slides)
        for number, self.slide in enumerate(slides, 1):
            page = board.words("board.page", n=str(number), all=str(len(slides)))
            muted = palette()["muted"]
            self.text((_EDGE, 6.98, 10, 0.35), [left], 10, muted)
            self.text((_WIDE - _EDGE - 2, 6.98, 2, 0.35), [page], 10, muted, right=True)


_PLAIN_TABLE = "{2D5ABB26-0587-4C30-8999-92F81FD0307C}"  # the style of a table without any


def _first(pen: _Pen) -> None:
    board, words = pen.board, pen.words
    pen.new(board.title)
    under = "   ·   ".join(part for part in (board.place_and_day, board.facts) if part)
    pen.text((_EDGE, 1.05, 12, 0.4), [under], 14, palette()["muted"])
    lines = [f"•  {finding.text}" for finding in board.findings]
    pen.text((_EDGE, 1.6, 6.1, 0.4), [words("board.findings")], 18, bold=True)
    pen.text((_EDGE, 2.05, 6.1, 4.3), lines, 15 if sum(map(len, lines)) < 700 else 12.5)
    pen.text((_EDGE, 6.3, 6.1, 0.6), [board.care], 9.5, palette()["muted"])
    profile = board.profile
    shares = [cluster.share or 0.0 for cluster in profile.clusters]
    places = sorted(sorted(range(profile.k), key=lambda j: -shares[j])[:_MAX_BARS])
    names = [_cut_text(f"{profile.numbers[j]}  {profile.cluster_names[j]}", 38) for j in places]
    series = {words("board.share"): [profile.clusters[j].share for j in places]}
    own = colours([profile.numbers[j] for j in places])
    fills = [[palette()["overall"]] * len(places)] if profile.uses else [own]
    for at, (name, row) in enumerate(profile.uses):
        what = amount_name(name, words)
        series[words("sheet.share_of", what=what)] = [_number(row[j]) for j in places]
        fills.append([_SERIES[at % len(_SERIES)]] * len(places))
    pen.chart((6.9, 1.6, 5.9, 5.2), names, series, fills)


_SERIES = ("#0072b2", "#d55e00", "#009e73")


def _cluster(pen: _Pen, place: int) -> None:
    board, words = pen.board, pen.words
    profile, cluster = board.profile, board.profile.clusters[place]
    fill = colours([cluster.number])[0]
    pen.new(" ".join(wrap_name(cluster, 90, 1)), fill)
    top = 1.25
    pen.text((_EDGE, top, 6, 0.4), [words("board.who")], 16, bold=True)
    who = board.describe_people(place)
    pen.text((_EDGE, top + 0.38, 6, 0.3 * len(who)), who, 13)
    top += 0.6 + 0.27 * len(who)
    measures = board.measures_of(place)[:_MAX_FIGURES]
    if measures:
        head = (words("board.outcomes"), words("board.here"), "", words("all"))
        height = 0.29 * (len(measures) + 1)
        pen.table((_EDGE, top, 6.1, height), [head, *measures], (1.9, 1.5, 2.0, 0.7))
        top += height + 0.2
    if sure := board.certainty(cluster):
        pen.text((_EDGE, top, 6.1, 0.35), [words("board.certainty")], 14, bold=True)
        pen.text((_EDGE, top + 0.32, 6.1, 0.9), sure, 11.5)
    rows, room = board.marking_codes(place), 5.3
    if note := board.note(cluster):
        room = 3.9
        pen.text((7, 5.6, 5.8, 0.35), [words("board.note")], 14, bold=True)
        pen.text((7, 5.92, 5.8, 1.0), note, 11.5)
    pen.text((7, 1.25, 5.8, 0.4), [words("board.marks")], 16, bold=True)
    if not rows:
        pen.text((7, 1.65, 5.8, 0.4), [words("board.marks.none")], 13)
        return
    series = {
        words("board.here"): [_number(profile.prevalence[place, i]) for i in rows],
        words("board.all"): [_number(profile.overall[i]) for i in rows],
    }
    fills = [[fill] * len(rows), [palette()["overall"]] * len(rows)]
    names = [_cut_text(profile.labels[i], 40) for i in rows]
    pen.chart((6.9, 1.6, 5.9, min(1.1 + 0.45 * len(rows), room)), names, series, fills)


def _method(pen: _Pen) -> None:
    title = pen.words("board.method")
    lines = list(_method_lines(pen.board))
    for first in range(0, len(lines), _LINES_PER_SLIDE):
        pen.new(title)
        part = lines[first : first + _LINES_PER_SLIDE]
        frame = pen.text((_EDGE, 1.2, _WIDE - 2 * _EDGE, 5.6), [text for text, _ in part], 11.5)
        for paragraph, (_, bold) in zip(frame.paragraphs, part, strict=True):
            paragraph.runs[0].font.bold = bold


def _method_lines(board: Board) -> Iterator[tuple[str, bool]]:
    """Yield the method and the ledger as lines, each with whether it is a head."""
    from textwrap import wrap

    words = board.words
    for head, block in board.method().items():
        if block:
            yield head, True
            yield from ((part, False) for line in block for part in wrap(line, 150))
        if head == words("board.counts"):
            yield words("ledger.title"), True
            for unit, rule, before, removed, after in board.ledger[1]:
                left_out = "" if removed == "–" else f" (−{removed})"
                yield f"{unit}: {rule}: {before} → {after}{left_out}", False


def _number(value: float) -> float | None:
    return None if isnan(value) else round(float(value), 4)


def _cut_text(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1].rstrip(' ,;')}…"


def _inches(*values: float) -> list[Any]:
    from pptx.util import Inches

    return [Inches(value) for value in values]


def _colour(fill: str) -> Any:
    from pptx.dml.color import RGBColor

    return RGBColor.from_string(fill.removeprefix("#").upper())


def _fill(format_: Any, colour: str) -> None:
    format_.solid()
    format_.fore_color.rgb = _colour(colour)


def _write(
    frame: Any, lines: Sequence[str], size: float, colour: str = "", *, bold: bool = False,
    right: bool = False,
) -> None:  # fmt: skip
    """Fill a frame with paragraphs; what can't stand in XML is left out."""
    from pptx.enum.text import MSO_ANCHOR, PP_ALIGN
    from pptx.util import Inches, Pt

    frame.word_wrap, frame.vertical_anchor = True, MSO_ANCHOR.TOP
    frame.margin_left = frame.margin_right = Inches(0.03)
    for place, text in enumerate(lines):
        paragraph = frame.paragraphs[0] if not place else frame.add_paragraph()
        paragraph.alignment = PP_ALIGN.RIGHT if right else PP_ALIGN.LEFT
        paragraph.space_after = Pt(size / 3)
        run = paragraph.add_run()
        run.text = "".join(one for one in text if one >= " ")
        run.font.size, run.font.bold = Pt(size), bold
        run.font.color.rgb = _colour(colour or palette()["ink"])
