"""Delta Lake: a folder of Parquet files of which only those count that its log names.

The log is a file of JSON actions for each version and, now and then, a checkpoint that sums up
all before it. Files that were removed stay in the folder for a while and are not records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.records.sources.duck import OpenedSource, SourceTable, literal, quote, run_safely
from comorb.records.sources.parquet import check_checksums

LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
_NEW_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.[0-9a-f-]{36}\.(json|parquet)")
# What a reader may meet and needs to do nothing for, given that no file and no setting uses it.
_HARMLESS = {"timestampNtz", "vacuumProtocolCheck", "columnMapping", "deletionVectors"}
_IDLE = {"add", "remove", "commitInfo", "txn", "cdc", "domainMetadata", "protocol", "metaData"}
_INSTEAD = Message("delta.instead")


@dataclass(frozen=True)
class DataFile:
    """A file that the log names, with its values of the partitions and its rows, if told."""

    partition: dict[str, str | None]
    rows: int | None

    @classmethod
    def of(cls, added: dict[str, Any]) -> DataFile:
        """Return what an action of the log adds."""
        rows = json.loads(added.get("stats") or "{}").get("numRecords")
        # A blank value of a partition means that it is missing.
        values = dict(added.get("partitionValues") or {})
        texts = {
            name: None if value in (None, "") else str(value) for name, value in values.items()
        }
        return cls(texts, None if rows is None else int(rows))


@dataclass
class DeltaTable:
    """What the log says: the files with their partitions and counts, and the columns.

    ``partitions`` are the columns that aren't in the files but are values of the log.
    """

    name: str
    files: dict[str, DataFile] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    known: bool = False

    def apply(self, action: dict[str, Any]) -> None:
        """Take up one action of the log."""
        if added := action.get("add"):
            self._refuse_deletions(added)
            self.files[added["path"]] = DataFile.of(added)
        elif removed := action.get("remove"):
            self.files.pop(removed["path"], None)
        elif protocol := action.get("protocol"):
            self._check_protocol(protocol)
        elif metadata := action.get("metaData"):
            self._describe(metadata)
        elif unknown := {name for name, value in action.items() if value} - _IDLE:
            raise ValueError(f"{len(unknown)} unknown actions")

    def _refuse_deletions(self, added: dict[str, Any]) -> None:
        if (added.get("deletionVector") or {}).get("storageType"):
            raise RecordsError("delta.deletion_vectors", name=self.name, instead=_INSTEAD)

    def _check_protocol(self, protocol: dict[str, Any]) -> None:
        version = protocol["minReaderVersion"]
        unknown = set(protocol.get("readerFeatures") or ()) - _HARMLESS
        if unknown or version > 3:
            what = ", ".join(sorted(unknown)) or Message("delta.reader_version", version=version)
            raise RecordsError("delta.needs", name=self.name, what=what, instead=_INSTEAD)

    def _describe(self, metadata: dict[str, Any]) -> None:
        settings = dict(metadata.get("configuration") or {})
        if settings.get("delta.columnMapping.mode", "none") != "none":
            raise RecordsError("delta.mapping", name=self.name, instead=_INSTEAD)
        self.columns = tuple(
            each["name"] for each in json.loads(metadata["schemaString"])["fields"]
        )
        self.partitions = tuple(metadata.get("partitionColumns") or ())
        self.known = True


def read_log(folder: Path) -> DeltaTable:
    """Return the latest version of a Delta table."""
    table = DeltaTable(folder.name)
    try:
        for action in _actions(folder):
            table.apply(action)
        if not table.known:
            raise _damaged(folder.name)
    except (KeyError, TypeError, ValueError, AttributeError, OSError, pa.ArrowException) as error:
        if isinstance(error, RecordsError):
            raise
        raise _damaged(folder.name) from None
    return table


def delta_files(folder: Path, table: DeltaTable) -> dict[Path, DataFile]:
    """Return the files of a Delta table, each checked to be there."""
    files: dict[Path, DataFile] = {}
    root = folder.resolve()
    for path, added in table.files.items():
        try:
            file = (root / unquote(path)).resolve()
            there = file.is_file()
        except (OSError, ValueError):
            raise _damaged(folder.name) from None
        if "://" in path or not file.is_relative_to(root):
            raise RecordsError("delta.outside", folder=folder.name, instead=_INSTEAD)
        if not there:
            raise RecordsError("delta.missing_file", folder=folder.name)
        files[file] = added
    if not files:
        raise RecordsError("delta.no_rows", folder=folder.name)
    return files


def open_delta(source: OpenedSource, folder: Path) -> SourceTable:
    """Open the latest version of a Delta table; its files must be among those allowed."""
    table = read_log(folder)
    files = delta_files(folder, table)
    stored: set[str] = set()
    for file, added in files.items():
        parquet = run_safely(file.name, lambda file=file: pq.ParquetFile(file))  # type: ignore[misc]
        with parquet:
            stored |= set(parquet.schema_arrow.names)
            if added.rows not in (None, parquet.metadata.num_rows):
                raise RecordsError("delta.other_rows", folder=folder.name)
    check_checksums(source, folder.name, list(files))
    inside = [name for name in table.columns if name not in table.partitions]
    picks = [f"f.{quote(name)}" if name in stored else f"NULL AS {quote(name)}" for name in inside]
    picks += [f"p.{quote(name)}" for name in table.partitions]
    names = ", ".join(literal(str(file)) for file in files)
    read = (
        f"read_parquet([{names}], union_by_name = true, hive_partitioning = false, "
        "filename = 'file of the row')"
    )
    if not table.partitions:
        return source.view(folder.name, f"SELECT {', '.join(picks)} FROM {read} f")
    values = {
        name: [each.partition.get(name) for each in files.values()] for name in table.partitions
    }
    arrays = {name: pa.array(each, pa.string()) for name, each in values.items()}
    mapping = f"delta_{len(source.opened)}"
    keys = pa.array([str(file) for file in files])
    source.connection.register(mapping, pa.table({"file of the row": keys, **arrays}))
    joined = f'{read} f JOIN {mapping} p ON f."file of the row" = p."file of the row"'
    return source.view(folder.name, f"SELECT {', '.join(picks)} FROM {joined}")


def _actions(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the actions from the last whole checkpoint on, each version in its turn."""
    log = folder / LOG
    names = sorted(file.name for file in log.iterdir())
    commits = {int(match[1]): name for name in names if (match := _COMMIT.fullmatch(name))}
    begin, parts = _last_checkpoint(names)
    newer = [int(match[1]) for name in names if (match := _NEW_CHECKPOINT.fullmatch(name))]
    first = begin + 1
    versions = sorted(version for version in commits if version >= first)
    if versions != list(range(first, first + len(versions))) or not (versions or parts):
        what = Message("delta.newer_checkpoint") if newer else Message("delta.whole_log")
        raise RecordsError("delta.gap", folder=folder.name, what=what, instead=_INSTEAD)
    for name in parts:
        with pq.ParquetFile(log / name, page_checksum_verification=True) as checkpoint:
            for batch in checkpoint.iter_batches(columns=None):
                yield from batch.to_pylist()
    for version in versions:
        with (log / commits[version]).open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.strip())


def _last_checkpoint(names: list[str]) -> tuple[int, list[str]]:
    """Return the version and the files of the last checkpoint that is whole, or −1."""
    parts: dict[tuple[int, int], list[str]] = {}
    for name in names:
        if match := _CHECKPOINT.fullmatch(name):
            parts.setdefault((int(match[1]), int(match[3] or 1)), []).append(name)
    whole = {key: files for key, files in parts.items() if len(files) == key[1]}
    return (max(whole)[0], whole[max(whole)]) if whole else (-1, [])


def _damaged(name: str) -> RecordsError:
    return RecordsError("delta.log", name=name)
