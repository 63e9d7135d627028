"""Downloads: a run as the documents its pages read, and as tables, charts and reports."""

from __future__ import annotations

import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from comorb.views import CHARTS
from comorb.web.worker.requests import OfRun, ShowProfile, WriteDownload

if TYPE_CHECKING:
    import pyarrow as pa

    from comorb.profiles.profile import Profile
    from comorb.runs.folder import RunFolder


DOCUMENT = 2  # which document the pages read: one of an earlier version is made again


def document(folder: str | Path, min_cell: int, language: str = "en") -> Path:
    """Return where a run's profile is, protected below a count, or in full with 0."""
    view = f"protected-{min_cell}" if min_cell else "full"
    name = f"page-{DOCUMENT}-{view}"
    return Path(folder) / (f"{name}.json" if language == "en" else f"{name}-{language}.json")


def shown_profile(task: OfRun) -> Profile:
    """Return the profile that a task may tell of; one that can't be protected is refused."""
    from comorb.runs.folder import load_profile

    full = load_profile(task.folder)
    return full.protected(task.min_cell) if task.min_cell else full


def write_documents(task: ShowProfile) -> None:
    """Write the document that a task asks for."""
    from comorb.storage import write_text
    from comorb.views.findings import page_json

    text = page_json(shown_profile(task), task.language)
    write_text(text, document(task.folder, task.min_cell, task.language))


def renew(folder: str, profile: Profile, min_cell: int) -> None:
    """Write the documents of a profile that is new or changed, and remove others of the run.

    One that was described by an earlier version, without keys, has a full document alone.
    """
    from comorb.storage import write_text
    from comorb.views.findings import page_json

    paths = [document(folder, 0)]
    write_text(page_json(profile), paths[0])
    if profile.cells is not None:
        paths.append(document(folder, min_cell))
        write_text(page_json(profile.protected(min_cell)), paths[1])
    for old in set(Path(folder).glob("page-*.json")) - set(paths):
        old.unlink()


BOARD = ("board.zip", "board.pptx", "board.xlsx")  # a board's pack, and its parts but the report
AGGREGATES = (
    *BOARD,
    *("report.pdf", "report.html", "profile.csv", "profile.json"),
    "outcomes.csv",
    *(f"{name}.{end}" for name in CHARTS for end in ("svg", "png")),
)
PATIENTS = ("assignments.csv", "assignments.parquet", "model.comorb")


def offered() -> tuple[str, ...]:
    """Return the downloads without patients that can be made here: slides need their extra."""
    return tuple(one for one in AGGREGATES if one != "board.pptx" or find_spec("pptx"))


def write(task: WriteDownload) -> None:
    """Write one download of a run to a file; its name says which."""
    from comorb.records.export import export
    from comorb.runs.folder import RunFolder, load_profile, outcome_batch, save_report
    from comorb.storage import write_text, write_whole
    from comorb.views import pack
    from comorb.views.board import Board
    from comorb.views.charts import draw, save
    from comorb.views.words import Words

    folder, path = RunFolder(task.folder), Path(task.path)
    if task.name == folder.model.name:
        shutil.copyfile(folder.model, path)
        return
    name, _, kind = task.name.rpartition(".")
    if name == "assignments":
        rows = _assignments(load_profile(folder.path), folder)
        export(rows.to_batches(max_chunksize=1 << 16), path)
        return
    shown = shown_profile(task)
    shown = replace(shown, source=replace(shown.source, title=task.title))
    board = Board(shown, Words(task.language), task.site, task.day, task.starred)
    if name == "profile" and kind == "json":
        write_text(shown.to_json(), path)
    elif name == "outcomes":
        export([outcome_batch(shown)], path)
    elif name == "profile":
        export(_table(shown).to_batches(), path)
    elif name == "report":
        save_report(board, path)
    elif name == "board":
        make = pack.board_pack if kind == "zip" else pack.PARTS[task.name]
        with write_whole(path) as file:
            file.write(make(board))
    else:
        save(draw(name, board.profile, words=board.words), path)


def _assignments(profile: Profile, folder: RunFolder) -> pa.Table:
    """Return the cluster of each record with its name, and whether it was moved by hand."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from comorb.runs.edit import load_moves

    table = folder.load_assignments()
    places = pa.array(profile.places_of(table["cluster"].to_numpy()))
    table = table.append_column("name", pa.array(profile.cluster_names).take(places))
    moved = load_moves(folder)
    if moved:
        by_hand = pc.is_in(table["id"], pa.array(list(moved), pa.string()))
        table = table.append_column("manual", by_hand)
    return table


def _table(profile: Profile) -> pa.Table:
    """Return a line for each cluster and code; what is not told is empty."""
    import pyarrow as pa

    k, d = profile.counts.shape

    def plain(values: object) -> pa.Array:
        return pa.array(values, from_pandas=True)

    return pa.table(
        {
            "cluster": pa.array([number for number in profile.numbers for _ in range(d)]),
            "name": pa.array([name for name in profile.cluster_names for _ in range(d)]),
            "code": pa.array(profile.codes * k),
            "diagnosis": pa.array(profile.labels * k),
            "records": plain(profile.counts.ravel()),
            "share": plain(profile.prevalence.ravel()),
            "overall": plain(list(profile.overall) * k),
            "lift": plain(profile.lift.ravel()),
            "relevance": plain(profile.relevance().ravel()),
        }
    )
