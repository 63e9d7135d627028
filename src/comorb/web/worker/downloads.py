"""Downloads: a run as the documents its pages read, and as tables, charts and reports."""

from __future__ import annotations

import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comorb.views import CHARTS

if TYPE_CHECKING:
    import pyarrow as pa

    from comorb.profiles.profile import Profile
    from comorb.runs.folder import RunFolder

BOARD = ("board.zip", "board.pptx", "board.xlsx")  # a board's pack, and its parts but the report
AGGREGATES = (
    *BOARD,
    *("report.pdf", "report.html", "profile.csv", "profile.json"),
    "outcomes.csv",
    *(f"{name}.{end}" for name in CHARTS for end in ("svg", "png")),
)
PATIENTS = ("assignments.csv", "assignments.parquet", "model.comorb")
DOCUMENT = 2  # which document the pages read: one of an earlier version is made again


def offered() -> tuple[str, ...]:
    """Return the downloads without patients that can be made here: slides need their extra."""
    return tuple(one for one in AGGREGATES if one != "board.pptx" or find_spec("pptx"))


def document(folder: str | Path, min_cell: int, language: str = "en") -> Path:
    """Return where a run's profile is, protected below a count, or in full with 0."""
    view = f"protected-{min_cell}" if min_cell else "full"
    name = f"page-{DOCUMENT}-{view}"
    return Path(folder) / (f"{name}.json" if language == "en" else f"{name}-{language}.json")


def shown_profile(folder: str, least: int) -> Profile:
    """Return a profile, protected below a count; one that can't be protected is refused."""
    from comorb.runs.folder import load_profile

    full = load_profile(folder)
    return full.protected(least) if least else full


def write_document(folder: str, least: int, language: str) -> None:
    """Write the document that a view of a run shows, in a language."""
    from comorb.storage import write_text
    from comorb.views.findings import page_json

    text = page_json(shown_profile(folder, least), language)
    write_text(text, document(folder, least, language))


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


def write(
    folder: str, least: int, path: str, name: str, title: str, language: str = "en", **board_of: Any
) -> None:
    """Write one download of a run to a file, by its name; ``board_of`` is for its `Board`."""
    from comorb.records.export import export
    from comorb.runs.folder import RunFolder, load_profile, outcome_batch, save_report
    from comorb.storage import write_text, write_whole
    from comorb.views import pack
    from comorb.views.board import Board
    from comorb.views.charts import draw, save
    from comorb.views.words import Words

    run, target = RunFolder(folder), Path(path)
    what, _, kind = name.rpartition(".")
    if name == run.model.name:
        shutil.copyfile(run.model, target)
        return
    if what == "assignments":
        rows = _assignments(load_profile(run.path), run)
        export(rows.to_batches(max_chunksize=1 << 16), target)
        return
    shown = shown_profile(folder, least)
    shown = replace(shown, source=replace(shown.source, title=title))
    board = Board(shown, Words(language), **board_of)
    if name == "profile.json":
        write_text(shown.to_json(), target)
    elif what == "outcomes":
        export([outcome_batch(shown)], target)
    elif what == "profile":
        export(_table(shown).to_batches(), target)
    elif what == "report":
        save_report(board, target)
    elif what == "board":
        make = pack.board_pack if kind == "zip" else pack.PARTS[name]
        with write_whole(target) as file:
            file.write(make(board))
    else:
        save(draw(what, board.profile, words=board.words), target)


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
    """Return a line for each cluster and code; what is suppressed is empty."""
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
