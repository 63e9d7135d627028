"""Divided: a source as tables that many workers read, each opened when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from comorb.errors import EngineError, RecordsError
from comorb.records.sources.chunks import Spread, spread_files, spread_frame, spread_store
from comorb.records.sources.databases import is_query
from comorb.records.sources.endings import table_name
from comorb.records.sources.folders import (
    PARTS,
    TableFiles,
    are_numbered,
    are_paths,
    files_of,
    is_glob,
    listed,
    standard_name,
    tables_in,
    usual,
)
from comorb.records.sources.kinds import kind_of
from comorb.records.sources.stores import data_in, data_of
from comorb.remote import Remote, is_remote, place_of

_KINDS = ("parquet", "text")
_BESIDE = ("person", "concept")  # with which a table of OMOP is read


class NotInPartsError(Exception):
    """A table that workers can't read in parts; no error of the records."""


@dataclass(frozen=True)
class FrameTables:
    """Frames, or tables of Spark, by the names that their tables have in a database."""

    frames: Mapping[str, Any]


@dataclass(frozen=True)
class Divided:
    """A source of tables: its label, what opens each, and the one that the source itself names."""

    label: str
    openers: Mapping[str, Callable[[], Spread]]
    table: str | None = None


def divide(source: Any, table: str | None, executor: Executor | None) -> Divided | None:
    """Return a source whose tables workers can read in parts, None for one that they can't.

    ``table`` is the one that is asked for.
    """
    if isinstance(source, FrameTables):
        frames = {usual(name): one for name, one in source.frames.items()}
        if len(frames) < len(source.frames):
            raise RecordsError("The frames have a table more than once; give each another name.")
        opened = {name: partial(_of_one, name, one, executor) for name, one in frames.items()}
        return Divided("the frames", opened)
    if _is_frame(source):
        spread = spread_frame(source, executor)
        return Divided(spread.label, {"frame": lambda: spread})
    if isinstance(source, str) and source.startswith("table:"):
        return _of_spark(source, executor)
    if table is not None and is_query(table):
        return None
    if are_paths(source):
        return _of_list(source)
    if is_remote(source):
        return _of_store(place_of(source), table)
    if not isinstance(source, str | Path) or "://" in str(source):
        return None
    return _of_path(Path(source), table)


def _is_frame(source: Any) -> bool:
    return type(source).__module__.partition(".")[0] in ("pyspark", "dask")


def _of_one(name: str, source: Any, executor: Executor | None) -> Spread:
    """Return one table of several that are given each by itself."""
    if _is_frame(source):
        return spread_frame(source, executor, name)
    divided = divide(source, None, executor)
    if divided is None or (len(divided.openers) > 1 and divided.table is None):
        raise RecordsError(
            f"Expected a frame of the engine, or one table, as {name!r}; got a "
            f"{type(source).__name__}."
        )
    return divided.openers[divided.table or next(iter(divided.openers))]()


def _of_spark(source: str, executor: Executor | None) -> Divided:
    """Return a table of Spark, one of OMOP with those beside it in the same schema."""
    engine: Any = executor
    if not hasattr(engine, "frame"):
        raise EngineError(f"{source} is a table of Spark; name the engine, as --engine spark.")
    name = source.removeprefix("table:")
    schema, dot, own = name.rpartition(".")
    names = {usual(own): name}
    if usual(own) in PARTS:
        beside = {one: f"{schema}{dot}{one}" for one in _BESIDE if one not in names}
        names |= {one: full for one, full in beside.items() if engine.has(full)}

    def opened(full: str) -> Spread:
        return spread_frame(engine.frame(full), executor, full)

    return Divided(name, {one: partial(opened, names[one]) for one in names}, next(iter(names)))


def _of_list(paths: Sequence[str | Path | Remote]) -> Divided | None:
    """Return several files, on the disk or in a store; None where they are in both."""
    afar = [is_remote(one) for one in paths]
    if all(afar):
        others = " and others" if len(paths) > 1 else ""
        label = f"{place_of(paths[0]).name}{others}"
        spread = spread_store(label, data_of(paths))
        return None if spread is None else Divided(label, {label: lambda: spread})
    if any(afar):
        return None
    several = listed([Path(str(one)) for one in paths])
    return Divided(several.name, {several.name: partial(spread_files, several.name, several)})


def _of_store(place: Path | Remote, table: str | None) -> Divided | None:
    """Return files in a store as one table, or as several by the names of the usual models."""
    files = data_in(place)
    tables: dict[tuple[str, str], dict[str, Remote]] = {}
    for name, file in files.items():
        tables.setdefault(_table_of(name), {})[name] = file
    others = tables.pop(("", ""), {})
    named = {one: partial(_in_store, some) for (one, _), some in tables.items()}
    if len(named) < len(tables) or (
        table and not {table.lower(), table_name(table).lower()} & named.keys()
    ):
        return None
    if named:
        aside = {
            table_name(Path(one).name): partial(_in_store, {one: others[one]}) for one in others
        }
        return Divided(place.name, aside | named)
    spread = spread_store(place.name, files)
    return None if spread is None else Divided(place.name, {place.name: lambda: spread})


def _table_of(name: str) -> tuple[str, str]:
    """Return the usual table of which a file in a store is, and where that lies."""
    *folders, file = name.split("/")
    for place, folder in enumerate(folders):
        if usual(folder) in PARTS:
            return usual(folder), "/".join(folders[: place + 1])
    own = standard_name(file)
    return (own, f"{'/'.join(folders)}/.") if own else ("", "")


def _in_store(files: Mapping[str, Remote]) -> Spread:
    names = [Path(name) for name in files]
    spread = spread_store(names[0].name, files)
    if spread is None or (not spread.files and len(names) > 1 and not are_numbered(names)):
        raise NotInPartsError
    return spread


def _of_path(path: Path, table: str | None) -> Divided | None:
    """Return the tables of a file, a folder or a glob."""
    files = files_of(path)
    of_text = len(files) > 1 and {kind_of(file) for file in files} == {"text"}
    if of_text and is_glob(path) and not table and not any(standard_name(f.name) for f in files):
        one = TableFiles(path.stem, "text", tuple(files))
        return Divided(path.name, {one.name: partial(spread_files, path.name, one)})
    tables = tables_in(path, files)
    names = {one.name.lower() for one in tables if one.kind in _KINDS}
    asked = {table.lower(), table_name(table).lower()} if table else names
    if not asked & names or (len(names) < len(tables) and not table):
        return None
    alone = len(tables) == 1
    opened = {one.name: partial(_in_folder, path.name if alone else "", one) for one in tables}
    return Divided(path.name, opened)


def _in_folder(label: str, table: TableFiles) -> Spread:
    if table.kind not in _KINDS:
        raise NotInPartsError
    own = label if label and table.kind == "parquet" else table.files[0].name
    return spread_files(own, table)
