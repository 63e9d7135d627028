"""Folders, archives and stores: which of their files are the tables, and what those are called."""

from __future__ import annotations

import re
import shutil
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.records.sources.delta import LOG
from comorb.records.sources.files import check_expanded, ending_of, table_name
from comorb.records.sources.kinds import detect_kind
from comorb.records.sources.parquet import is_partition, read_schema
from comorb.remote import Place, Remote, matching, place_of

# Tables of OMOP and FHIR, which have these names in any case and number of files.
STANDARD_TABLES = (
    *("condition_occurrence", "condition_era", "concept", "person", "visit_occurrence", "death"),
    *("drug_exposure", "drug_era", "procedure_occurrence", "observation_period"),
    *("condition", "patient", "encounter", "medicationrequest", "procedure", "medication"),
)
# The numbers of the files of one table: 'part-0001-3f2a…', 'visits_2019', 'visits (2)'.
_NUMBERING = re.compile(
    r"[-_. (]*[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}.*|[-_. (]*\d[\d_.\-() ]*"
)


@dataclass(frozen=True)
class TableFiles:
    """The files of one table: their kind, and the folder below which partitions are named."""

    name: str
    kind: str
    files: tuple[Path, ...]
    root: Path | None = None


def find_files(path: Path) -> list[Path]:
    """Return the data files of a path, a folder or a pattern, as absolute paths."""
    try:
        if path.is_file():
            return [_check_name(path.resolve())]
        if path.is_dir():
            return _files_below(path.resolve())
        if path.exists():
            raise RecordsError("source.pipe", file=path.name)
    except OSError as error:
        reason = error.strerror or Message("source.cannot_open")
        raise RecordsError("source.unreadable", label=path.name[:80], reason=reason) from None
    if not is_glob(path):
        raise RecordsError("source.no_path", path=path)
    files = expand_glob(path)
    if not files:
        raise RecordsError("source.no_match", file=path.name)
    return [_check_name(file.resolve()) for file in files]


def are_paths(source: Any) -> bool:
    """Return whether an object is a list of paths."""
    several = isinstance(source, list | tuple) and bool(source)
    return several and all(isinstance(one, str | Place) for one in source)


def combine_files(paths: Sequence[str | Path]) -> TableFiles:
    """Return several files as one table, all Parquet or all text."""
    files = [file for one in paths for file in find_files(Path(one))]
    kinds = sorted({detect_kind(file) for file in files})
    if kinds not in (["parquet"], ["text"]):
        raise RecordsError("source.mixed_kinds", kinds=kinds)
    name = Path(paths[0]).name
    label = Message("text.others", parts=name) if len(paths) > 1 else name
    return TableFiles(label, kinds[0], tuple(files))


def is_glob(path: Path) -> bool:
    """Return whether a path is a pattern, such as 'claims/**/*.parquet'."""
    return any(mark in str(path) for mark in "*?[")


def expand_glob(path: Path) -> list[Path]:
    """Return the files that a pattern matches; ** is any number of folders."""
    root, rest = Path(path.anchor), path.parts[len(Path(path.anchor).parts) :]
    wild = next((at for at, part in enumerate(rest) if is_glob(Path(part))), len(rest) - 1)
    found = root.joinpath(*rest[:wild]).glob("/".join(rest[wild:]))
    return sorted(file for file in found if file.is_file())


def _check_name(file: Path) -> Path:
    try:
        str(file).encode()
    except UnicodeEncodeError:
        name = str(file).encode(errors="surrogateescape").decode(errors="replace")
        raise RecordsError("source.name_encoding", name=name) from None
    return file


def _files_below(folder: Path) -> list[Path]:
    """Return the data files below a folder, without those of a log.

    A table of Iceberg or Hudi is refused: its log isn't read, and its folder has removed files.
    """
    metadata = folder / "metadata"
    names = [file.name for file in metadata.iterdir()] if metadata.is_dir() else []
    iceberg = any(name.endswith(".metadata.json") or name == "version-hint.text" for name in names)
    if iceberg or (folder / ".hoodie").is_dir():
        what = "an Iceberg" if iceberg else "a Hudi"
        raise RecordsError("source.lakehouse", folder=folder.name, what=what)
    files = []
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and not entry.name.startswith((".", "_")):
            files += _parquet_below(entry) if _is_delta(entry) else _files_below(entry)
        elif entry.is_file() and entry.name[0] not in "._" and ending_of(entry.name):
            files.append(_check_name(entry))
    return files


def _parquet_below(folder: Path) -> list[Path]:
    return [_check_name(file) for file in sorted(folder.rglob("*.parquet"))]


def _is_delta(folder: Path) -> bool:
    return (folder / LOG).is_dir()


def find_tables(path: Path, files: list[Path]) -> list[TableFiles]:
    """Return the tables that the files of a path make up."""
    root = path.resolve() if path.is_dir() else None
    if root is not None and _is_delta(root):
        return [TableFiles(root.name, "delta", tuple(_parquet_below(root)), root)]
    if not files:
        raise RecordsError("source.empty_folder", file=path.name)
    if root is None:
        return _group_files(path.stem, {file: detect_kind(file) for file in files}, None)
    here = {file: detect_kind(file) for file in files if file.parent == root}
    below: dict[Path, list[Path]] = {}
    for file in files:
        if file not in here:
            below.setdefault(root / file.relative_to(root).parts[0], []).append(file)
    if below and not here and _are_one_table(root, below):
        return _group_files(root.name, dict.fromkeys(files, "parquet"), root)
    tables = _group_files(root.name, here, None) if here else []
    for folder, some in below.items():
        tables += find_tables(folder, some)
    return tables


def _are_one_table(root: Path, below: dict[Path, list[Path]]) -> bool:
    """Whether folders hold one table: they are partitions, or have the same columns."""
    if any(map(_is_delta, below)):
        return False
    files = [file for some in below.values() for file in some]
    if any(detect_kind(file) != "parquet" for file in files):
        return False
    partitioned = all(is_partition(folder.name) for folder in below)
    named = any(table_name(folder.name).lower() in STANDARD_TABLES for folder in below)
    return partitioned or (not named and _have_same_columns(files))


def _have_same_columns(files: Iterable[Path]) -> bool:
    return len({frozenset(read_schema(file).names) for file in files}) == 1


def _group_files(name: str, kinds: dict[Path, str], root: Path | None) -> list[TableFiles]:
    """Return the tables of files of one folder, each of which has its kind."""
    standard = {file: part for file in kinds if (part := standard_name(file.name))}
    names = {
        file: standard.get(file)
        or (_base_name(file) if kind == "parquet" else table_name(file.name))
        for file, kind in kinds.items()
    }
    kind, whole = {*kinds.values()}, standard_case(name)
    if kind == {"parquet"} and not standard:
        # Parts of one table: partitions, one name but for numbers, or the same columns.
        if root is not None or len({*names.values()}) == 1 or _have_same_columns(kinds):
            return [TableFiles(whole, "parquet", tuple(kinds), root)]
    elif kind == {"text"} and not standard and whole in STANDARD_TABLES and are_numbered([*kinds]):
        return [TableFiles(whole, "text", tuple(kinds))]
    tables = []
    for each in dict.fromkeys(names.values()):
        same = tuple(file for file in kinds if names[file] == each)
        several = {kinds[file] for file in same}
        parts = several in ({"parquet"}, {"json"}) or (several == {"text"} and are_numbered(same))
        if len(same) > 1 and not parts:
            raise several_files_error(name, each)
        tables.append(TableFiles(each, several.pop(), same))
    return tables


def several_files_error(label: str, table: str) -> RecordsError:
    """Return the error of a table that is in several files and can't be read from them."""
    return RecordsError("source.table_in_files", label=label, table=table)


def _base_name(file: Path) -> str:
    return _NUMBERING.sub("", table_name(file.name)) or "records"


def are_numbered(files: Sequence[Path]) -> bool:
    """Return whether text files are one table: one ending, and one name but for numbers."""
    names = {table_name(file.name) for file in files}
    bases = {_NUMBERING.sub("", name) for name in names}
    return len(bases) == len({ending_of(file.name) for file in files}) == 1 and not bases & names


def standard_case(name: str) -> str:
    """Return the name of a standard table in small letters, another as it is."""
    return name.lower() if name.lower() in STANDARD_TABLES else name


def standard_name(name: str) -> str | None:
    """Return the standard table that a file is named after.

    >>> standard_name("PERSON-0001.csv.gz"), standard_name("visits.csv")
    ('person', None)
    """
    part = re.split(r"[.\-]", name)[0].lower()
    return part if part in STANDARD_TABLES else None


def find_data_files(place: Place) -> dict[str, Remote]:
    """Return the data files of a file, a folder or a pattern in a store, by their relative names.

    The log of a Delta table is among them, as it names the others that count.
    """
    assert isinstance(place, Remote)  # noqa: S101 - callers pass no paths
    root, found = matching(place)
    kept = {}
    for one in found:
        name = one.uri[len(root.uri) + 1 :]
        steps = name.split("/")
        hidden = any(step.startswith((".", "_")) for step in steps)
        if LOG in steps or (not hidden and ending_of(steps[-1])):
            kept[name] = one
    if not kept:
        raise RecordsError("source.no_records_at", place=place)
    return kept


def find_listed_data(places: Sequence[str | Place]) -> dict[str, Remote]:
    """Return the data files of a list of places in a store, each in a numbered folder."""
    files = [file for one in places for file in find_data_files(place_of(one)).values()]
    return {f"{number}/{file.name}": file for number, file in enumerate(files)}


def fetch_list(places: Sequence[str | Place], folder: Path) -> list[Path]:
    """Return several places as paths; those in a store are copied to a folder."""
    return [
        fetch_records(place, folder / str(number)) if isinstance(place, Remote) else place
        for number, place in enumerate(map(place_of, places))
    ]


def fetch_records(place: Place, folder: Path) -> Path:
    """Copy records from a store to a folder, and return the path of the copy."""
    files = find_data_files(place)
    root = folder / place.name.replace("*", "all")
    if list(files) == [place.name]:
        files[place.name].fetch(root)
        return root
    for name, one in files.items():
        one.fetch(root / name)
    return root


_COPY_BYTES = 1 << 22
_SPARE_BYTES = 1 << 28
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, ValueError)


def unpack(file: Path, folder: Path) -> list[Path]:
    """Unpack the data files of an archive to places below a folder, whatever their names are."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = {}
            for each in archive.infolist():
                steps = PurePosixPath(each.filename).parts
                parts = [part for part in steps if part not in ("/", "..")]
                hidden = any(part.startswith((".", "__MACOSX")) for part in parts)
                if not each.is_dir() and not hidden and each.file_size > 0:
                    members[each] = folder.joinpath(*parts)
            _check_members(file.name, list(members), folder)
            for member, path in members.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as packed, path.open("xb") as out:
                    shutil.copyfileobj(packed, out, _COPY_BYTES)
            return list(members.values())
    except RecordsError:
        raise
    except _ZIP_ERRORS:
        message = Message("zip.damaged", file=file.name)
    raise RecordsError(message)


def _check_members(name: str, members: list[zipfile.ZipInfo], folder: Path) -> None:
    if not members:
        raise RecordsError("zip.empty", name=name)
    if any(each.flag_bits & 1 for each in members):
        raise RecordsError("zip.password", name=name)
    needed, free = sum(each.file_size for each in members), shutil.disk_usage(folder).free
    check_expanded(name, needed)
    if needed + _SPARE_BYTES > free:
        raise RecordsError("zip.no_room", name=name, needed=needed / 1e9, free=free / 1e9)
