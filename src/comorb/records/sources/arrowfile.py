"""Arrow files and streams: every value is checked in a process of its own before one is used.

Arrow takes offsets as they come, so a damaged file can end the process that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from comorb.errors import RecordsError
from comorb.records.sources.apart import Answer, run_apart
from comorb.records.sources.duck import OpenedSource, SourceTable, guarded
from comorb.records.sources.frames import register_table
from comorb.records.sources.limits import check_expanded, check_rows

_END = b"\xff\xff\xff\xff\0\0\0\0"


def open_arrow(source: OpenedSource, file: Path) -> SourceTable:
    """Open an Arrow file or stream; it stays on the disk until it is read."""
    answer = run_apart(check_arrow, _refusal(file.name), str(file))
    source.note(f"{file.name} may be damaged unseen: Arrow files have no checksums")
    if not answer["closed"]:
        source.note(f"{file.name} has no mark at its end, so records may be missing")
    return guarded(file.name, lambda: register_table(source, file.name, _table(file)))


def check_arrow(file: str) -> Answer:
    """Read a file batch by batch, check every value, and say whether its end is marked."""
    try:
        with pa.memory_map(file) as mapped:
            is_file = _is_file(mapped)
            name, rows, size = Path(file).name, 0, 0
            for batch in _batches(mapped):
                rows, size = rows + len(batch), size + batch.nbytes
                check_rows(name, rows)
                check_expanded(name, size)
                batch.validate(full=True)
            if not is_file and mapped.size() > mapped.tell():
                return {"refusal": _refusal(Path(file).name)}
            mapped.seek(max(0, mapped.size() - len(_END)))
            return {"closed": is_file or mapped.read() == _END}
    except RecordsError as error:
        return {"refusal": str(error)}
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError, IndexError):
        return {"refusal": _refusal(Path(file).name)}


def _refusal(name: str) -> str:
    return f"{name} is a damaged or cut-off Arrow file; copy or write it again."


def _is_file(mapped: Any) -> bool:
    start = mapped.read(6)
    mapped.seek(0)
    return bool(start == b"ARROW1")


def _batches(mapped: Any) -> Iterator[pa.RecordBatch]:
    if not _is_file(mapped):
        yield from pa.ipc.open_stream(mapped)
        return
    reader = pa.ipc.open_file(mapped)
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)


def _table(file: Path) -> pa.Table:
    with pa.memory_map(str(file)) as mapped:
        reader = pa.ipc.open_file(mapped) if _is_file(mapped) else pa.ipc.open_stream(mapped)
        return reader.read_all()
