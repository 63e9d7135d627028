"""Downloads: a run as tables, charts and reports.

The server reads the lists and the worker writes the files, so what is heavy is imported there.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from comorb.insight.views import charts
from comorb.web.worker.documents import shown_profile
from comorb.web.worker.messages import WriteDownload

if TYPE_CHECKING:
    import pyarrow as pa

    from comorb.insight.profile.profile import Profile
    from comorb.insight.runs.folder import RunFolder

BOARD = ("board.zip", "board.pptx", "board.xlsx")  # a board's pack, and its parts but the report
AGGREGATES = (
    *BOARD,
    *("report.pdf", "report.html", "profile.csv", "profile.json"),
    "outcomes.csv",
    *(f"{name}.{end}" for name in charts.CHARTS for end in ("svg", "png")),
)
PATIENTS = ("assignments.csv", "assignments.parquet", "model.comorb")


def offered() -> tuple[str, ...]:
    """Return the downloads without patients that can be made here: slides need their extra."""
    return tuple(one for one in AGGREGATES if one != "board.pptx" or find_spec("pptx"))


def write(task: WriteDownload) -> None:
    """Write one download of a run to a file; its name says which."""
    from comorb.insight.runs.folder import RunFolder, load_profile, outcome_batch, save_report
    from comorb.insight.views import drawing, pack
    from comorb.insight.views.board import Board
    from comorb.insight.views.words import Words
    from comorb.records.export import export
    from comorb.storage import write_text, write_whole

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
        drawing.save(charts.draw(name, board.profile, words=board.words), path)


def _assignments(profile: Profile, folder: RunFolder) -> pa.Table:
    """Return the cluster of each record with its name, and whether it was moved by hand."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from comorb.insight.runs.by_hand import moved_records

    table = folder.load_assignments()
    places = pa.array(profile.places_of(table["cluster"].to_numpy()))
    table = table.append_column("name", pa.array(profile.cluster_names).take(places))
    moved = moved_records(folder)
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
