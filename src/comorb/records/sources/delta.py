"""Delta Lake: a folder of Parquet files, of which the log names those that count.

The log is a file of JSON actions for each version and, now and then, a checkpoint of all versions
before it. Files that were removed stay in the folder for a while and are not records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.records.sources.duck import OpenedSource, SourceTable, literals, quote, run_safely
from comorb.records.sources.parquet import check_checksums

LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
_NEW_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.[0-9a-f-]{36}\.(json|parquet)")
# Features that need nothing from a reader as long as no file and no setting uses them.
_HARMLESS = {"timestampNtz", "vacuumProtocolCheck", "columnMapping", "deletionVectors"}
_IDLE = {"add", "remove", "commitInfo", "txn", "cdc", "domainMetadata", "protocol", "metaData"}
_INSTEAD = Message("delta.instead")


@dataclass
class _DeltaTable:
    """A version of a table: what the log says of its files, by path, and of its columns.

    ``partitions`` are the columns whose values are in the log and not in the files.
    """

    name: str
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    known: bool = False

    def apply(self, action: dict[str, Any]) -> None:
        """Apply one action of the log."""
        if added := action.get("add"):
            if (added.get("deletionVector") or {}).get("storageType"):
                raise RecordsError("delta.deletion_vectors", name=self.name, instead=_INSTEAD)
            rows = json.loads(added.get("stats") or "{}").get("numRecords")
            # A blank value of a partition is a missing one.
            values = {
                name: None if value in (None, "") else str(value)
                for name, value in dict(added.get("partitionValues") or {}).items()
            }
            rows = None if rows is None else int(rows)
            self.files[added["path"]] = {"partition": values, "rows": rows}
        elif removed := action.get("remove"):
            self.files.pop(removed["path"], None)
        elif protocol := action.get("protocol"):
            version = protocol["minReaderVersion"]
            unknown = set(protocol.get("readerFeatures") or ()) - _HARMLESS
            if unknown or version > 3:
                newer = Message("delta.reader_version", version=version)
                what = ", ".join(sorted(unknown)) or newer
                raise RecordsError("delta.needs", name=self.name, what=what, instead=_INSTEAD)
        elif metadata := action.get("metaData"):
            settings = dict(metadata.get("configuration") or {})
            if settings.get("delta.columnMapping.mode", "none") != "none":
                raise RecordsError("delta.mapping", name=self.name, instead=_INSTEAD)
            fields = json.loads(metadata["schemaString"])["fields"]
            self.columns = tuple(each["name"] for each in fields)
            self.partitions = tuple(metadata.get("partitionColumns") or ())
            self.known = True
        elif unknown := {name for name, value in action.items() if value} - _IDLE:
            raise ValueError(f"{len(unknown)} unknown actions")


def _read_log(folder: Path) -> _DeltaTable:
    """Return the latest version of a table."""
    table = _DeltaTable(folder.name)
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


def _find_files(folder: Path, table: _DeltaTable) -> dict[Path, dict[str, Any]]:
    """Return what the log says of each file, all of which are there and inside the folder."""
    files = {}
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
    table = _read_log(folder)
    files = _find_files(folder, table)
    stored: set[str] = set()
    for file, added in files.items():
        with run_safely(file.name, partial(pq.ParquetFile, file)) as parquet:
            stored |= set(parquet.schema_arrow.names)
            if added["rows"] not in (None, parquet.metadata.num_rows):
                raise RecordsError("delta.other_rows", folder=folder.name)
    check_checksums(source, folder.name, list(files))
    inside = [name for name in table.columns if name not in table.partitions]
    picks = [f"f.{quote(name)}" if name in stored else f"NULL AS {quote(name)}" for name in inside]
    picks += [f"p.{quote(name)}" for name in table.partitions]
    sql = (
        f"SELECT {', '.join(picks)} FROM read_parquet([{literals(map(str, files))}], "
        "union_by_name = true, hive_partitioning = false, filename = 'file of the row') f"
    )
    if table.partitions:
        values = {"file of the row": pa.array([str(file) for file in files])}
        for name in table.partitions:
            texts = [added["partition"].get(name) for added in files.values()]
            values[name] = pa.array(texts, pa.string())
        mapping = f"delta_{len(source.opened)}"
        source.connection.register(mapping, pa.table(values))
        sql += f' JOIN {mapping} p ON f."file of the row" = p."file of the row"'
    return source.view(folder.name, sql)


def _actions(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the actions from the last whole checkpoint on, in the order of versions."""
    log = folder / LOG
    names = sorted(file.name for file in log.iterdir())
    commits = {int(match[1]): name for name in names if (match := _COMMIT.fullmatch(name))}
    checkpoints: dict[tuple[int, int], list[str]] = {}
    for name in names:
        if match := _CHECKPOINT.fullmatch(name):
            checkpoints.setdefault((int(match[1]), int(match[3] or 1)), []).append(name)
    whole = [key for key, files in checkpoints.items() if len(files) == key[1]]
    last = max(whole, default=(-1, 0))
    first, parts = last[0] + 1, checkpoints.get(last, [])
    versions = sorted(version for version in commits if version >= first)
    if versions != list(range(first, first + len(versions))) or not (versions or parts):
        newer = any(map(_NEW_CHECKPOINT.fullmatch, names))
        what = Message("delta.newer_checkpoint") if newer else Message("delta.whole_log")
        raise RecordsError("delta.gap", folder=folder.name, what=what, instead=_INSTEAD)
    for name in parts:
        with pq.ParquetFile(log / name, page_checksum_verification=True) as checkpoint:
            for batch in checkpoint.iter_batches():
                yield from batch.to_pylist()
    for version in versions:
        with (log / commits[version]).open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.strip())


def _damaged(name: str) -> RecordsError:
    return RecordsError("delta.log", name=name)
