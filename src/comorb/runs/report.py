"""The report and the board pack of a saved run, with slices of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from comorb import storage
from comorb.errors import InputError
from comorb.profiles.profile import Profile
from comorb.runs.folder import load_profile, save_report
from comorb.runs.slices import parse_slices, slice_run
from comorb.runs.spec import ReportRequest, SliceRequest
from comorb.views.board import Board
from comorb.views.pack import PARTS
from comorb.views.slides import check_slides
from comorb.views.words import Words, check_language


def board_of(run: str | Path, request: ReportRequest) -> Board:
    """Return what a board is shown of a saved run."""
    check_language(request.language)
    day = request.day
    try:
        day = date.today().isoformat() if day == "today" else day and str(date.fromisoformat(day))
    except ValueError:
        raise InputError("report.day", text=day) from None
    profile = split_profile(run, request)
    return Board(profile, Words(request.language), request.site, day, request.starred)


def split_profile(run: str | Path, request: ReportRequest) -> Profile:
    """Return the profile of a run, protected and with slices as requested."""
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
