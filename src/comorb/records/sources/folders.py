"""Folders: which of their files are the tables, and what the tables are called.

Files of one table are found by their columns and their names: Parquet in folders named year=2020
or in numbered parts is one table, and a folder of different tables is a database.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comorb.errors import RecordsError
from comorb.records.sources.delta import LOG
from comorb.records.sources.endings import ending_of, table_name
from comorb.records.sources.kinds import kind_of
from comorb.records.sources.parquet import is_partition, schema_of
from comorb.remote import Remote

# Tables of the usual models, which go by these names in whatever case and number of files.
PARTS = (
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


def files_of(path: Path) -> list[Path]:
    """Return the data files of a path, a folder or a glob, as absolute paths."""
    try:
        if path.is_file():
            return [_readable(path.resolve())]
        if path.is_dir():
            return _inside(path.resolve())
        if path.exists():
            raise RecordsError(
                f"{path.name} is a pipe or a device, and a file is looked through before it is "
                "read; save it to a file and read that."
            )
    except OSError as error:
        reason = error.strerror or "it can't be opened"
        raise RecordsError(f"{path.name[:80]} can't be read: {reason}.") from None
    if not is_glob(path):
        raise RecordsError(f"There is no file or folder {path}; check the name.")
    files = globbed(path)
    if not files:
        raise RecordsError(f"No file matches {path.name}; check the pattern and the folder.")
    return [_readable(file.resolve()) for file in files]


def are_paths(source: Any) -> bool:
    """Tell a list of files from other lists."""
    several = isinstance(source, list | tuple) and bool(source)
    return several and all(isinstance(one, str | Path | Remote) for one in source)


def listed(paths: Sequence[str | Path]) -> TableFiles:
    """Return the one table that several files are, all Parquet or all text."""
    files = [file for one in paths for file in files_of(Path(one))]
    kinds = sorted({kind_of(file) for file in files})
    if kinds not in (["parquet"], ["text"]):
        raise RecordsError(
            f"Several files are read as one table when all are Parquet or all are text; got "
            f"{' and '.join(kinds)}."
        )
    name = Path(paths[0]).name
    return TableFiles(f"{name} and others" if len(paths) > 1 else name, kinds[0], tuple(files))


def is_glob(path: Path) -> bool:
    """Tell a pattern, such as 'claims/**/*.parquet', from the path of a file."""
    return any(mark in str(path) for mark in "*?[")


def globbed(path: Path) -> list[Path]:
    """Return the files that a pattern stands for; ** is any number of folders."""
    root, rest = Path(path.anchor), path.parts[len(Path(path.anchor).parts) :]
    wild = next((at for at, part in enumerate(rest) if is_glob(Path(part))), len(rest) - 1)
    found = root.joinpath(*rest[:wild]).glob("/".join(rest[wild:]))
    return sorted(file for file in found if file.is_file())


def _readable(file: Path) -> Path:
    try:
        str(file).encode()
    except UnicodeEncodeError:
        name = str(file).encode(errors="surrogateescape").decode(errors="replace")
        raise RecordsError(f"The name of {name} isn't in UTF-8; rename it.") from None
    return file


def _inside(folder: Path) -> list[Path]:
    """Return the data files below a folder, those of a lake's log left out."""
    refuse_lakes(folder)
    files = []
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and not entry.name.startswith((".", "_")):
            files += _inside(entry) if not is_delta(entry) else _parquet_below(entry)
        elif entry.is_file() and entry.name[0] not in "._" and ending_of(entry.name):
            files.append(_readable(entry))
    return files


def _parquet_below(folder: Path) -> list[Path]:
    return [_readable(file) for file in sorted(folder.rglob("*.parquet"))]


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
        raise RecordsError(
            f"{folder.name} is {what} table, whose folder holds removed rows too; read it with "
            "its own reader, write it as Parquet and read that."
        )


def tables_in(path: Path, files: list[Path]) -> list[TableFiles]:
    """Return the tables that the files of a path are."""
    root = path.resolve() if path.is_dir() else None
    if root is not None and is_delta(root):
        return [TableFiles(root.name, "delta", tuple(_parquet_below(root)), root)]
    if not files:
        raise RecordsError(
            f"The folder {path.name} holds no data: expected .csv, .tsv, .txt, .parquet, "
            ".ndjson, .json, .arrow, .xlsx, .sas7bdat, .xpt, .sav, .dta or .zip files."
        )
    if root is None:
        return _grouped(path.stem, {file: kind_of(file) for file in files}, None)
    here = {file: kind_of(file) for file in files if file.parent == root}
    below: dict[Path, list[Path]] = {}
    for file in files:
        if file not in here:
            below.setdefault(root / file.relative_to(root).parts[0], []).append(file)
    if below and not here and _is_one(root, below):
        return _grouped(root.name, dict.fromkeys(files, "parquet"), root)
    tables = _grouped(root.name, here, None) if here else []
    for folder, some in below.items():
        tables += tables_in(folder, some)
    return tables


def _is_one(root: Path, below: dict[Path, list[Path]]) -> bool:
    """Whether folders hold the parts of one table: partitions, or the same columns in each."""
    if any(is_delta(folder) for folder in below):
        return False
    files = [file for some in below.values() for file in some]
    if any(kind_of(file) != "parquet" for file in files):
        return False
    partitioned = all(is_partition(folder.name) for folder in below)
    named = any(table_name(folder.name).lower() in PARTS for folder in below)
    return partitioned or (not named and len({frozenset(schema_of(f).names) for f in files}) == 1)


def _grouped(name: str, kinds: dict[Path, str], root: Path | None) -> list[TableFiles]:
    """Return the tables of files side by side."""
    parted = {file: part for file in kinds if (part := standard_name(file.name))}
    kind = {*kinds.values()}
    if kind == {"parquet"} and not parted and _alike(list(kinds), root):
        return [TableFiles(usual(name), "parquet", tuple(kinds), root)]
    if kind == {"text"} and not parted and usual(name) in PARTS and are_numbered([*kinds]):
        return [TableFiles(usual(name), "text", tuple(kinds))]
    names = {file: parted.get(file) or table_name(file.name) for file in kinds}
    numbered = {file for file in kinds if kinds[file] == "parquet" and file not in parted}
    names |= {file: _base(file) for file in numbered}
    tables = []
    for each in dict.fromkeys(names.values()):
        same = tuple(file for file in kinds if names[file] == each)
        several = {kinds[file] for file in same}
        parts = several in ({"parquet"}, {"json"}) or (several == {"text"} and are_numbered(same))
        if len(same) > 1 and not parts:
            raise in_several_files(name, each)
        tables.append(TableFiles(each, several.pop(), same))
    return tables


def in_several_files(label: str, table: str) -> RecordsError:
    """Return the error of a table that isn't read from more than one file."""
    return RecordsError(
        f"{label} holds the table {table!r} in more than one file; join them into one. Numbered "
        "text files are read as one on an engine, such as threads."
    )


def _alike(files: list[Path], root: Path | None) -> bool:
    """Whether Parquet files are parts of one table: the same columns, or a name but for numbers."""
    if root is not None or len({_base(file) for file in files}) == 1:
        return True
    return len({frozenset(schema_of(file).names) for file in files}) == 1


def _base(file: Path) -> str:
    return _NUMBERING.sub("", table_name(file.name)) or "records"


def are_numbered(files: Sequence[Path]) -> bool:
    """Tell whether text files are parts of one table: one ending, and one name but for numbers."""
    names = {table_name(file.name) for file in files}
    bases = {_NUMBERING.sub("", name) for name in names}
    return len(bases) == len({ending_of(file.name) for file in files}) == 1 and not bases & names


def usual(name: str) -> str:
    """Return the name of a table of the usual models in small letters, another as it is."""
    return name.lower() if name.lower() in PARTS else name


def standard_name(name: str) -> str | None:
    """Return the table of the usual models that a file is called after.

    >>> standard_name("PERSON-0001.csv.gz"), standard_name("visits.csv")
    ('person', None)
    """
    part = re.split(r"[.\-]", name)[0].lower()
    return part if part in PARTS else None
