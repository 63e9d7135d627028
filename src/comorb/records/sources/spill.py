"""Spill: folders for temporary files, of which the next one removes those that a kill left."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_PREFIX, _LOCK = "comorb-", ".lock"


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Yield a folder for temporary files, which hold records, that is removed in the end.

    It is locked meanwhile: one whose lock is free was left by a process that was killed.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        _remove_if_left(folder)
    with (
        tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as made,
        Path(made, _LOCK).open("wb") as lock,
    ):
        _take(lock)
        yield made


def _remove_if_left(folder: Path) -> None:
    with suppress(OSError), (folder / _LOCK).open("r+b") as lock:
        if _take(lock):
            shutil.rmtree(folder, ignore_errors=True)


def _take(lock: IO[bytes]) -> bool:
    """Take a lock, or tell that another process has it; where there are no locks, that it does."""
    try:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
