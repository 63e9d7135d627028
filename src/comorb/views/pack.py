"""The board pack: a board as PDF, slides and workbook, each the same bytes for the same board."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from math import isnan

from comorb.views.board import Board
from comorb.views.findings import amount_name
from comorb.views.pdf import report_pdf
from comorb.views.sheets import DAY, Cell, Share, Sheet, workbook
from comorb.views.slides import slides, slides_installed

MIN_SHARE = 0.005  # of a cluster or of all records that a diagnosis in the workbook has


def board_pdf(board: Board) -> bytes:
    """Return a board as a PDF."""
    report_pdf(board, printed := io.BytesIO())
    return printed.getvalue()


def board_workbook(board: Board) -> bytes:
    """Return a board as an .xlsx file: findings, groups, outcomes, diagnoses and method."""
    words = board.words
    rows: list[tuple[Cell, ...]] = [
        (one.text, ", ".join(map(str, one.clusters))) for one in board.findings
    ]
    sheets = {
        words("sheet.findings"): _columns(board, ("finding", "group"), rows),
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


def _groups(board: Board) -> Sheet:
    words, profile = board.words, board.profile
    clusters = profile.clusters
    sheet: dict[str, list[Cell]] = {
        words("sheet.group"): [one.number for one in clusters],
        words("sheet.name"): [one.name for one in clusters],
        words("sheet.records"): [one.size for one in clusters],
        words("sheet.share"): [_share(one.share) for one in clusters],
    }
    if (used := profile.burden) is not None:
        figures = zip(used.columns, used.totals, used.means, used.shares, strict=True)
        for name, totals, means, shares in figures:
            what = amount_name(name, words)
            sheet[words("sheet.total", what=what)] = [_number(one) for one in totals[:-1]]
            sheet[words("sheet.mean", what=what)] = [_number(one) for one in means[:-1]]
            sheet[words("sheet.share_of", what=what)] = [_share(one) for one in shares[:-1]]
    sheet[words("sheet.confidence")] = [_share(one.top) for one in clusters]
    sheet[words("sheet.stability")] = [one.stability for one in clusters]
    if any(map(board.note, clusters)):
        for key in ("note", "owner", "pathway"):
            sheet[words(f"sheet.{key}")] = [getattr(one, key) or None for one in clusters]
    return sheet


def _outcomes(board: Board) -> Sheet:
    words, profile = board.words, board.profile
    every: list[tuple[Cell, Cell]] = [(one.number, one.name) for one in profile.clusters]
    every.append((words("sheet.all"), words("sheet.all")))
    rows: list[tuple[Cell, ...]] = []
    for one in board.measures:
        outcome, v = one.outcome, one.value
        share, better = outcome.kind == "share", outcome.corrected
        kind = _share if share else _number
        for place, named in enumerate(every):
            events = _number(outcome.counts[v, place]) if share else None
            figures = (outcome.estimate, outcome.low, outcome.high)
            own = [kind(figure[v, place]) for figure in figures]
            # Neither a median nor the figure of all records is corrected.
            corrected: list[Cell] = [None] * 3
            if better is not None and place < profile.k and outcome.values[v] != "median":
                figures = (better.estimate, better.low, better.high)
                corrected = [kind(figure[v, place]) for figure in figures]
            known = _number(outcome.known[place])
            rows.append((one.name, *named, events, known, *own, *corrected))
    heads = ("outcome", "group", "name", "events", "records", "observed", "low", "high")
    return _columns(board, (*heads, "corrected", "corrected_low", "corrected_high"), rows)


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
