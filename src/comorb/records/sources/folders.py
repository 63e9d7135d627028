"""Folders, archives and stores: which of their files are the tables, and what those are called."""

from __future__ import annotations

import re
import shutil
import zipfile
import zlib
from collections.abc import Sequence
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

# Tables of the usual models, which go by these names in whatever case and number of files.
STANDARD_TABLES = (
    *("condition_occurrence", "condition_era", "concept", "person", "visit_occurrence", "death"),
    *("drug_exposure", "drug_era", "procedure_occurrence", "observation_period"),
    *("condition", "patient", "encounter", "medicationrequest", "procedure", "medication"),
)
# What numbers the parts of one table: 'part-0001-3f2a…', 'visits_2019', 'visits (2)'.
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
    """Return the data files of a path, a folder or a glob, as absolute paths."""
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
    """Tell a list of files from other lists."""
    several = isinstance(source, list | tuple) and bool(source)
    return several and all(isinstance(one, str | Place) for one in source)


def combine_files(paths: Sequence[str | Path]) -> TableFiles:
    """Return the one table that several files are, all Parquet or all text."""
    files = [file for one in paths for file in find_files(Path(one))]
    kinds = sorted({detect_kind(file) for file in files})
    if kinds not in (["parquet"], ["text"]):
        raise RecordsError("source.mixed_kinds", kinds=kinds)
    name = Path(paths[0]).name
    return TableFiles(
        Message("text.others", parts=name) if len(paths) > 1 else name, kinds[0], tuple(files)
    )


def is_glob(path: Path) -> bool:
    """Tell a pattern, such as 'claims/**/*.parquet', from the path of a file."""
    return any(mark in str(path) for mark in "*?[")


def expand_glob(path: Path) -> list[Path]:
    """Return the files that a pattern stands for; ** is any number of folders."""
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
    """Return the data files below a folder, those of a lake's log left out."""
    refuse_lakes(folder)
    files = []
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and not entry.name.startswith((".", "_")):
            files += _files_below(entry) if not is_delta(entry) else _parquet_below(entry)
        elif entry.is_file() and entry.name[0] not in "._" and ending_of(entry.name):
            files.append(_check_name(entry))
    return files


def _parquet_below(folder: Path) -> list[Path]:
    return [_check_name(file) for file in sorted(folder.rglob("*.parquet"))]


def is_delta(folder: Path) -> bool:
    """Tell a folder that is a Delta table."""
    return (folder / LOG).is_dir()


def refuse_lakes(folder: Path) -> None:
    """Refuse tables whose log isn't read here, because their folder holds removed files too."""
    metadata = folder / "metadata"
    names = [file.name for file in metadata.iterdir()] if metadata.is_dir() else []
    iceberg = any(name.endswith(".metadata.json") or name == "version-hint.text" for name in names)
    if iceberg or (folder / ".hoodie").is_dir():
        what = "an Iceberg" if iceberg else "a Hudi"
        raise RecordsError("source.lakehouse", folder=folder.name, what=what)


def find_tables(path: Path, files: list[Path]) -> list[TableFiles]:
    """Return the tables that the files of a path are."""
    root = path.resolve() if path.is_dir() else None
    if root is not None and is_delta(root):
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
    """Whether folders hold the parts of one table: partitions, or the same columns in each."""
    if any(is_delta(folder) for folder in below):
        return False
    files = [file for some in below.values() for file in some]
    if any(detect_kind(file) != "parquet" for file in files):
        return False
    partitioned = all(is_partition(folder.name) for folder in below)
    named = any(table_name(folder.name).lower() in STANDARD_TABLES for folder in below)
    return partitioned or (not named and len({frozenset(read_schema(f).names) for f in files}) == 1)


def _group_files(name: str, kinds: dict[Path, str], root: Path | None) -> list[TableFiles]:
    """Return the tables of files side by side."""
    parted = {file: part for file in kinds if (part := standard_name(file.name))}
    kind = {*kinds.values()}
    if kind == {"parquet"} and not parted and _are_alike(list(kinds), root):
        return [TableFiles(standard_case(name), "parquet", tuple(kinds), root)]
    if (
        kind == {"text"}
        and not parted
        and standard_case(name) in STANDARD_TABLES
        and are_numbered([*kinds])
    ):
        return [TableFiles(standard_case(name), "text", tuple(kinds))]
    names = {file: parted.get(file) or table_name(file.name) for file in kinds}
    numbered = {file for file in kinds if kinds[file] == "parquet" and file not in parted}
    names |= {file: _base_name(file) for file in numbered}
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
    """Return the error of a table that isn't read from more than one file."""
    return RecordsError("source.table_in_files", label=label, table=table)


def _are_alike(files: list[Path], root: Path | None) -> bool:
    """Whether Parquet files are parts of one table: the same columns, or a name but for numbers."""
    if root is not None or len({_base_name(file) for file in files}) == 1:
        return True
    return len({frozenset(read_schema(file).names) for file in files}) == 1


def _base_name(file: Path) -> str:
    return _NUMBERING.sub("", table_name(file.name)) or "records"


def are_numbered(files: Sequence[Path]) -> bool:
    """Tell whether text files are parts of one table: one ending, and one name but for numbers."""
    names = {table_name(file.name) for file in files}
    bases = {_NUMBERING.sub("", name) for name in names}
    return len(bases) == len({ending_of(file.name) for file in files}) == 1 and not bases & names


def standard_case(name: str) -> str:
    """Return the name of a table of the usual models in small letters, another as it is."""
    return name.lower() if name.lower() in STANDARD_TABLES else name


def standard_name(name: str) -> str | None:
    """Return the table of the usual models that a file is called after.

    >>> standard_name("PERSON-0001.csv.gz"), standard_name("visits.csv")
    ('person', None)
    """
    part = re.split(r"[.\-]", name)[0].lower()
    return part if part in STANDARD_TABLES else None


def find_data_files(place: Place) -> dict[str, Remote]:
    """Return the data files of a file, a folder or a pattern in a store, by their relative names.

    The log of a Delta table is among them, as it tells which of the others count.
    """
    assert isinstance(place, Remote)  # noqa: S101 - nobody asks of paths
    root, found = matching(place)
    names = {one.uri[len(root.uri) + 1 :]: one for one in found}
    kept = {name: one for name, one in names.items() if _is_data_file(name.split("/"))}
    if not kept:
        raise RecordsError("source.no_records_at", place=place)
    return kept


def find_listed_data(places: Sequence[str | Place]) -> dict[str, Remote]:
    """Return the data files of a list of places in a store, each in a folder of its own number."""
    files = [file for one in places for file in find_data_files(place_of(one)).values()]
    return {f"{number}/{file.name}": file for number, file in enumerate(files)}


def fetch_list(places: Sequence[str | Place], folder: Path) -> list[Path]:
    """Copy those of several places that are in a store to a folder, and return where all are."""
    found = []
    for number, one in enumerate(places):
        place = place_of(one)
        if isinstance(place, Remote):
            place = fetch_records(place, folder / str(number))
        found.append(place)
    return found


def fetch_records(place: Place, folder: Path) -> Path:
    """Copy records from a store to a folder, and return where they are, under the same name."""
    files = find_data_files(place)
    root = folder / place.name.replace("*", "all")
    if list(files) == [place.name]:
        files[place.name].fetch(root)
        return root
    for name, one in files.items():
        one.fetch(root / name)
    return root


def _is_data_file(steps: list[str]) -> bool:
    if LOG in steps:
        return True
    return not any(step.startswith((".", "_")) for step in steps) and bool(ending_of(steps[-1]))


_COPY_BYTES = 1 << 22
_SPARE_BYTES = 1 << 28


def unpack(file: Path, folder: Path) -> list[Path]:
    """Unpack the files of an archive below a folder and return them."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = [each for each in archive.infolist() if _is_data(each)]
            _check_members(file.name, members, folder)
            return [_unpack_member(archive, each, folder) for each in members]
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        NotImplementedError,
        ValueError,
    ) as e:
        if isinstance(e, RecordsError):
            raise
        message = Message("zip.damaged", file=file.name)
    raise RecordsError(message)


def _is_data(member: zipfile.ZipInfo) -> bool:
    parts = [part for part in PurePosixPath(member.filename).parts if part != ".."]
    hidden = any(part.startswith((".", "__MACOSX")) for part in parts)
    return not member.is_dir() and not hidden and member.file_size > 0


def _check_members(name: str, members: list[zipfile.ZipInfo], folder: Path) -> None:
    if not members:
        raise RecordsError("zip.empty", name=name)
    if any(each.flag_bits & 1 for each in members):
        raise RecordsError("zip.password", name=name)
    needed, free = sum(each.file_size for each in members), shutil.disk_usage(folder).free
    check_expanded(name, needed)
    if needed + _SPARE_BYTES > free:
        raise RecordsError(
            "zip.no_room", name=name, needed=needed / 1000000000.0, free=free / 1000000000.0
        )


def _unpack_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path) -> Path:
    """Unpack one file, to a place below the folder whatever its name says."""
    parts = [part for part in PurePosixPath(member.filename).parts if part not in ("/", "..")]
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as packed, path.open("xb") as out:
        shutil.copyfileobj(packed, out, _COPY_BYTES)
    return path
