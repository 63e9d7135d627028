"""Files: their endings, how large they may be, whether they changed, and temporary folders."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from comorb.errors import RecordsError
from comorb.messages import Message

ENDINGS = (
    *("csv", "tsv", "txt", "tab", "dat", "psv", "parquet", "pq", "arrow", "feather", "ipc"),
    *("json", "ndjson", "jsonl", "xlsx", "xlsm", "xlsb", "xls", "ods"),
    *("sas7bdat", "xpt", "dta", "sav", "zsav", "por", "zip"),
)
_NAME = re.compile(
    rf"(?P<stem>.*)(?P<ending>\.({'|'.join(ENDINGS)})(\.gz|\.zst|\.gzip)?)$", re.IGNORECASE
)


def ending_of(file: str) -> str:
    """Return the ending of a file that can be read, such as '.csv.gz', in small letters, or ''."""
    name = _NAME.match(file)
    return name["ending"].lower() if name else ""


def table_name(file: str) -> str:
    """Return a file's name without its endings: 'VISITS.csv.gz' is the table 'VISITS'."""
    name = _NAME.match(file)
    return (name["stem"] if name else "") or file


@dataclass(frozen=True)
class Limits:
    """The most that is read; 0 is no limit.

    Attributes
    ----------
    expanded : int
        Bytes of an unpacked source.
    rows, columns : int
        Size of a table.
    memory : int
        Bytes of memory of a reader in its own process.
    """

    expanded: int = 0
    rows: int = 0
    columns: int = 0
    memory: int = 0


_limits = Limits()


def set_limits(limits: Limits) -> None:
    """Set the limits for all that this process opens from now on."""
    global _limits
    _limits = limits


def current_limits() -> Limits:
    """Return the limits of this process."""
    return _limits


def check_expanded(name: str, size: int) -> None:
    """Refuse a source that unpacks to more bytes than are read."""
    if 0 < _limits.expanded < size:
        raise RecordsError("limit.unpacked", name=name, gb=_limits.expanded / 1e9)


def check_rows(name: str, rows: int) -> None:
    """Refuse a table of more rows than are read."""
    if 0 < _limits.rows < rows:
        raise RecordsError("limit.rows", name=name, limit=_limits.rows)


def check_columns(name: str, columns: int) -> None:
    """Refuse a table of more columns than are read."""
    if 0 < _limits.columns < columns:
        raise RecordsError("limit.columns", name=name, columns=columns, limit=_limits.columns)


_PREFIX, _LOCK = "comorb-", ".lock"


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Yield a folder for temporary files, which hold records; it is removed in the end.

    A file next to it is locked meanwhile. A lock that is free was left, with its folder, by a
    process that was killed: both are removed.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*{_LOCK}"):
        with suppress(OSError):
            opened = os.open(left, os.O_RDWR)
            try:
                if _take_lock(opened):
                    shutil.rmtree(left.with_suffix(""), ignore_errors=True)
                    left.unlink(missing_ok=True)
            finally:
                os.close(opened)
    opened, lock = _new_lock()
    folder = lock.with_suffix("")
    try:
        folder.mkdir(mode=0o700)
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if os.name == "posix":
            lock.unlink(missing_ok=True)
        os.close(opened)
        lock.unlink(missing_ok=True)  # on Windows, an open file can't be removed


def _new_lock() -> tuple[int, Path]:
    """Return a new lock; one that another process removed meanwhile is made again."""
    while True:
        opened, name = tempfile.mkstemp(_LOCK, _PREFIX)
        _take_lock(opened)
        if os.path.exists(name):  # noqa: PTH110
            return opened, Path(name)
        os.close(opened)


def _take_lock(lock: int) -> bool:
    """Take a lock and return True; False where another process has it or there are no locks."""
    try:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


FileSignature = tuple[int, int, int]


def read_signature(file: Path) -> FileSignature | None:
    """Return the size, the time of the last change and the inode of a file, None if it is gone."""
    try:
        state = file.stat()
    except OSError:
        return None
    return state.st_size, state.st_mtime_ns, state.st_ino


@contextmanager
def refuse_changes(label: str, files: Sequence[Path]) -> Iterator[None]:
    """Raise an error when one of the files changed during this context."""
    before = [read_signature(file) for file in files]
    yield
    after = [read_signature(file) for file in files]
    if changed := sum(one != two for one, two in zip(before, after, strict=True)):
        what = Message("source.changed_files", n=changed, files=len(files), label=label)
        raise RecordsError("source.changed", what=label if len(files) == 1 else what)
