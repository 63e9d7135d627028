"""Spill: folders for temporary files, of which the next one removes those that a kill left."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
        _take(opened)
        if os.path.exists(name):  # noqa: PTH110
            return opened, Path(name)
        os.close(opened)


def _remove_if_left(lock: Path) -> None:
    opened = os.open(lock, os.O_RDWR)
    try:
        if _take(opened):
            shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
            lock.unlink(missing_ok=True)
    finally:
        os.close(opened)


def _take(lock: int) -> bool:
    """Take a lock, or tell that another process has it; where there are no locks, that it does."""
    try:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
