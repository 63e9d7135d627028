"""Report: the board of a saved run, with slices of one's own, written as report or pack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from comorb import storage
from comorb.errors import InputError
from comorb.profiles.profile import Profile
from comorb.runs.folder import load_profile, save_report
from comorb.runs.slices import SliceRequest, parse_slices, slice_run
from comorb.views.board import Board
from comorb.views.pack import PARTS
from comorb.views.slides import check_slides
from comorb.views.words import Words, check_language


@dataclass(frozen=True)
class ReportRequest:
    """How a run is reported: in which language, for whom, protected, and sliced by what.

    Slices that the run doesn't hold are made of its ``records``.
    """

    language: str = "en"
    site: str = ""
    day: str = ""
    min_cell: int = 0
    split_by: tuple[str, ...] = ()
    records: Any = None
    starred: tuple[str, ...] = ()


def board_of(run: str | Path, request: ReportRequest) -> Board:
    """Return what a board is shown of a saved run."""
    check_language(request.language)
    day = _day(request.day)
    profile = split_profile(run, request)
    return Board(profile, Words(request.language), request.site, day, request.starred)


def split_profile(run: str | Path, request: ReportRequest) -> Profile:
    """Return the profile of a run, protected where that is asked, with the slices that are."""
    full = load_profile(run)
    shown = full.protected(request.min_cell) if request.min_cell else full
    if not request.split_by:
        return shown
    asked = parse_slices(request.split_by)
    held = {one.by: one for one in shown.slices}
    held |= {one.by.partition(":")[0]: one for one in shown.slices}
    missing = [by for by in asked if str(by) not in held]
    made: Mapping[str, Any] = {}
    if missing:
        if request.records is None:
            known = ", ".join(one.by for one in shown.slices) or "none"
            raise InputError("report.no_slices", missing=missing, known=known)
        sliced = slice_run(
            run, request.records, SliceRequest(tuple(missing), min_cell=request.min_cell)
        )
        made = dict(zip(map(str, missing), sliced.slices, strict=True))
    return replace(shown, slices=tuple(made.get(str(by)) or held[str(by)] for by in asked))


def report_run(
    run: str | Path, path: str | Path, request: ReportRequest, force: bool = False
) -> None:
    """Write the report of a saved run to an HTML or PDF file."""
    storage.check_file(Path(path), (".html", ".pdf"), force)
    save_report(board_of(run, request), Path(path))


def pack_run(
    run: str | Path, directory: str | Path, request: ReportRequest, force: bool = False
) -> list[Path]:
    """Write the board pack of a saved run to a folder, whole or not at all; return its files."""
    check_slides()
    storage.check_folder(directory, force)
    board = board_of(run, request)
    with storage.write_folder(directory, force) as draft:
        for name, make in PARTS.items():
            (draft / name).write_bytes(make(board))
    return [Path(directory) / name for name in PARTS]


def _day(text: str) -> str:
    """Return a day as 2026-01-31, today's where that is asked for, or none."""
    if text == "today":
        return date.today().isoformat()
    if text:
        try:
            return date.fromisoformat(text).isoformat()
        except ValueError:
            raise InputError("report.day", text=text) from None
    return ""
