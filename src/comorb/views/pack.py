"""The board pack: a board as PDF, slides and workbook, each the same bytes for the same board."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from math import isnan

from comorb.views.board import Board, Measure
from comorb.views.findings import amount_name
from comorb.views.pdf import report_pdf
from comorb.views.sheets import DAY, Cell, Share, Sheet, workbook
from comorb.views.slides import slides, slides_installed

MIN_SHARE = (
    0.005  # share of a cluster or of all records that a diagnosis of the workbook has, at least
)


def board_pdf(board: Board) -> bytes:
    """Return a board as a PDF."""
    printed = io.BytesIO()
    report_pdf(board, printed)
    return printed.getvalue()


def board_workbook(board: Board) -> bytes:
    """Return a board as an .xlsx file: findings, groups, outcomes, diagnoses and method."""
    words = board.words
    sheets = {
        words("sheet.findings"): _findings(board),
        words("sheet.groups"): _groups(board),
        words("sheet.outcomes"): _outcomes(board),
        words("sheet.diagnoses"): _diagnoses(board),
        words("sheet.method"): _method(board),
    }
    about = " · ".join(part for part in (board.title, board.place_and_day) if part)
    foot = words("board.page", n="&P", all="&N")
    return workbook(sheets, f"&L{about.replace('&', '&&')}", f"&R{foot}")


def board_pack(board: Board) -> bytes:
    """Return the parts of a board that can be made here in one zip archive."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, make in PARTS.items():
            if name != "board.pptx" or slides_installed():
                archive.writestr(zipfile.ZipInfo(name, DAY), make(board))
    return packed.getvalue()


PARTS: dict[str, Callable[[Board], bytes]] = {
    "board.pdf": board_pdf,
    "board.pptx": slides,
    "board.xlsx": board_workbook,
}


def _findings(board: Board) -> Sheet:
    told = board.findings
    return {
        board.words("sheet.finding"): [one.text for one in told],
        board.words("sheet.group"): [", ".join(map(str, one.clusters)) for one in told],
    }


def _groups(board: Board) -> Sheet:
    words, profile = board.words, board.profile
    clusters = profile.clusters
    sheet: dict[str, list[Cell]] = {
        words("sheet.group"): [one.number for one in clusters],
        words("sheet.name"): [one.name for one in clusters],
        words("sheet.records"): [one.size for one in clusters],
        words("sheet.share"): [_share(one.share) for one in clusters],
    }
    if profile.burden is not None:
        for name, row in zip(profile.burden.columns, profile.burden.shares, strict=True):
            what = amount_name(name, words)
            at = profile.burden.columns.index(name)
            totals, means = profile.burden.totals[at], profile.burden.means[at]
            sheet[words("sheet.total", what=what)] = [_number(one) for one in totals[:-1]]
            sheet[words("sheet.mean", what=what)] = [_number(one) for one in means[:-1]]
            sheet[words("sheet.share_of", what=what)] = [_share(one) for one in row[:-1]]
    sheet[words("sheet.confidence")] = [_share(one.top) for one in clusters]
    sheet[words("sheet.stability")] = [one.stability for one in clusters]
    if any(map(board.note, clusters)):
        for key in ("note", "owner", "pathway"):
            sheet[words(f"sheet.{key}")] = [getattr(one, key) or None for one in clusters]
    return sheet


def _outcomes(board: Board) -> Sheet:
    words, profile = board.words, board.profile
    every: list[Cell] = [*profile.numbers, words("sheet.all")]
    names = [*profile.cluster_names, words("sheet.all")]
    rows: list[tuple[Cell, ...]] = []
    for one in board.measures:
        outcome, v = one.outcome, one.value
        kind = _share if outcome.kind == "share" else _number
        for place, number in enumerate(every):
            events = _number(outcome.counts[v, place]) if outcome.kind == "share" else None
            own = (events, _number(outcome.known[place]))
            figures = (outcome.estimate, outcome.low, outcome.high)
            told = (*own, *(kind(figure[v, place]) for figure in figures))
            rows.append((one.name, number, names[place], *told, *_corrected(one, place, kind)))
    seen = ("events", "records", "observed", "low", "high")
    better = ("corrected", "corrected_low", "corrected_high")
    return _columns(board, ("outcome", "group", "name", *seen, *better), rows)


def _corrected(measure: Measure, place: int, kind: Callable[[float], Cell]) -> tuple[Cell, ...]:
    """Return the corrected figure of a cluster and its interval; of all records there is none."""
    better, v = measure.outcome.corrected, measure.value
    last = len(measure.outcome.known) - 1
    if better is None or place == last or measure.outcome.values[v] == "median":
        return (None, None, None)
    return tuple(kind(figure[v, place]) for figure in (better.estimate, better.low, better.high))


def _diagnoses(board: Board) -> Sheet:
    profile = board.profile
    rows: list[tuple[Cell, ...]] = [
        (
            cluster.number,
            cluster.name,
            profile.codes[i],
            profile.labels[i],
            _number(profile.counts[place, i]),
            _share(profile.prevalence[place, i]),
            _share(profile.overall[i]),
        )
        for place, cluster in enumerate(profile.clusters)
        for i in range(len(profile.codes))
        if max(profile.prevalence[place, i], profile.overall[i]) >= MIN_SHARE
    ]
    heads = ("group", "name", "code", "diagnosis", "records", "share", "overall")
    return _columns(board, heads, rows)


def _method(board: Board) -> Sheet:
    words = board.words
    rows: list[tuple[Cell, ...]] = [
        (head, text) for head, block in board.method().items() for text in block
    ]
    rows += [
        (words("ledger.title"), f"{unit}: {rule}: {before} → {after}")
        for unit, rule, before, _, after in board.ledger[1]
    ]
    return _columns(board, ("what", "text"), rows)


def _columns(board: Board, heads: tuple[str, ...], rows: list[tuple[Cell, ...]]) -> Sheet:
    """Return rows as the columns of a sheet."""
    columns = list(zip(*rows, strict=True)) or [()] * len(heads)
    return {board.words(f"sheet.{head}"): own for head, own in zip(heads, columns, strict=True)}


def _share(value: float | None) -> Cell:
    return None if value is None or isnan(value) else Share(round(value, 6))


def _number(value: float) -> Cell:
    return None if isnan(value) else round(float(value), 2)
