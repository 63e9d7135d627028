"""Stamps: whether files are still what they were when they were first looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from comorb.errors import RecordsError

Stamp = tuple[int, int, int]


def stamp_of(file: Path) -> Stamp | None:
    """Return the size, the time of the last change and the inode of a file, None if it is gone."""
    try:
        state = file.stat()
    except OSError:
        return None
    return state.st_size, state.st_mtime_ns, state.st_ino


@contextmanager
def unchanged(label: str, files: Sequence[Path]) -> Iterator[None]:
    """Refuse what was read in this context when one of its files is no longer the same."""
    before = [stamp_of(file) for file in files]
    yield
    changed = sum(stamp_of(file) != stamp for file, stamp in zip(files, before, strict=True))
    if changed:
        what = label if len(files) == 1 else f"{changed:,} of the {len(files):,} files of {label}"
        raise RecordsError(
            f"{what} changed while being read, so nothing of it was kept; read it again when "
            "nothing writes to it."
        )
