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
    """The most that is read; 0 is without a limit.

    Attributes
    ----------
    expanded : int
        Bytes of a source once it is unpacked.
    rows, columns : int
        Of a table.
    memory : int
        Bytes of memory of a reader that runs apart.
    """

    expanded: int = 0
    rows: int = 0
    columns: int = 0
    memory: int = 0


_limits = Limits()


def set_limits(limits: Limits) -> None:
    """Put limits into force for whatever this process opens from now on."""
    global _limits
    _limits = limits


def current_limits() -> Limits:
    """Return the limits of this process."""
    return _limits


def check_expanded(name: str, size: int) -> None:
    """Refuse a source that unpacks to more bytes than are read."""
    if 0 < _limits.expanded < size:
        raise RecordsError("limit.unpacked", name=name, gb=_limits.expanded / 1000000000.0)


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
    """Yield a folder for temporary files, which hold records, that is removed in the end.

    A file beside it is locked meanwhile, and is the first to come and the last to go: a lock that
    is free was left by a process that was killed, with its folder.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*{_LOCK}"):
        with suppress(OSError):
            _remove_if_left(left)
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
        lock.unlink(missing_ok=True)  # elsewhere, what is open can't be removed


def _new_lock() -> tuple[int, Path]:
    """Return a lock of our own; one that was taken for a left one meanwhile is made again."""
    while True:
        opened, name = tempfile.mkstemp(_LOCK, _PREFIX)
        _take_lock(opened)
        if os.path.exists(name):  # noqa: PTH110
            return opened, Path(name)
        os.close(opened)


def _remove_if_left(lock: Path) -> None:
    opened = os.open(lock, os.O_RDWR)
    try:
        if _take_lock(opened):
            shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
            lock.unlink(missing_ok=True)
    finally:
        os.close(opened)


def _take_lock(lock: int) -> bool:
    """Take a lock, or tell that another process has it; where there are no locks, that it does."""
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
    """Refuse what was read in this context when one of its files is no longer the same."""
    before = [read_signature(file) for file in files]
    yield
    changed = sum(read_signature(file) != stamp for file, stamp in zip(files, before, strict=True))
    if changed:
        what = (
            label
            if len(files) == 1
            else Message("source.changed_files", n=changed, files=len(files), label=label)
        )
        raise RecordsError("source.changed", what=what)
