"""Workspace: the folder that a server keeps everything in, known by its marker file.

Only names that comorb gave out itself are ever removed there, so that a folder of somebody else is
refused before anything is written to it.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from comorb.errors import StorageError

MARKER, DATABASE, LOCK = "comorb-workspace.json", "comorb.sqlite", "server.lock"
FOLDERS: tuple[Literal["data", "runs"], ...] = (
    "data",
    "runs",
)  # with a folder in them for each row of the table
TEMPORARY = "temporary"  # where workers write what they need for a while
LOST = "lost+found"  # where folders go that the store doesn't know
BUILT_IN = {
    "heart-failure": ("heart_failure", "Heart failure (simulated)"),
    "tertiary": ("tertiary", "Tertiary care (simulated)"),
}
_FORMAT, _VERSION = "comorb-workspace", 1
_OURS = re.compile(
    rf"({re.escape(DATABASE)}|{re.escape(LOCK)})(-wal|-shm|-journal)?"
    rf"|protection\.key|\.(protection\.key|{re.escape(MARKER)})\.[0-9a-f]{{8}}"
)
_ISSUED = re.compile("[0-9a-f]{12}")
_SHOWN = 3  # names in a message


def new_key() -> str:
    """Return a new id of data, a run or a definition, which is the name of its folder too."""
    return secrets.token_hex(6)


def is_issued(name: str) -> bool:
    """Tell whether comorb may have given out a name for data, a run or a worker's folder."""
    return name in BUILT_IN or _ISSUED.fullmatch(name) is not None


class Marker:
    """The file that says that a folder is a workspace, and what must outlast its database.

    Fields that this version doesn't know are kept as they are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / MARKER

    def open(self) -> None:
        """Make a workspace of a new or empty folder; refuse one with files of somebody else.

        A workspace of an earlier version has no marker. Where its database holds anything, the
        database shows whose it is, and `keep` marks it afterwards. Where that is lost, nobody
        knows whether there were users, so it is taken that there were.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        database = self._folder / DATABASE
        if self._path.exists():
            self._read()
        elif not database.exists() or (database.is_file() and not database.stat().st_size):
            others = sorted(self._others())
            if others:
                shown = ", ".join(others[:_SHOWN]) + (" …" if others[_SHOWN:] else "")
                raise StorageError(
                    "workspace.other_files",
                    folder=self._folder,
                    shown=shown,
                    example=self._folder / "comorb-workspace",
                )
            self._write(users=database.exists() or any(self._entries()))

    def keep(self, users: bool) -> None:
        """Mark a workspace whose database is in order, and keep that there are users."""
        if not self._path.exists() or (users and not self.had_users):
            self._write(users=users)

    @property
    def had_users(self) -> bool:
        """Whether anyone was ever given a token here; so it is where the marker is gone."""
        return not self._path.exists() or bool(self._read()["users"])

    def _others(self) -> Iterator[str]:
        """Yield the names in an unmarked folder that no earlier version gave out."""
        for path in self._folder.iterdir():
            whole = path.name in (*FOLDERS, TEMPORARY, LOST) and path.is_dir()
            if not whole and not (_OURS.fullmatch(path.name) and path.is_file()):
                yield path.name
        yield from (f"{one.parent.name}/{one.name}" for one in self._entries(ours=False))

    def _entries(self, ours: bool = True) -> Iterator[Path]:
        """Yield what is in the folders of data and runs, by whether it may be comorb's."""
        for folder in (self._folder / name for name in FOLDERS):
            for path in folder.iterdir() if folder.is_dir() else ():
                if (path.is_dir() and is_issued(path.name)) == ours:
                    yield path

    def _read(self) -> dict[str, Any]:
        try:
            fields = json.loads(self._path.read_text(encoding="utf-8"))
            known = fields["format"] == _FORMAT and isinstance(fields["users"], bool)
            version = int(fields["version"])
        except (OSError, ValueError, KeyError, TypeError):
            known, version = False, 0
        if not known:
            raise StorageError("workspace.marker", path=self._path, database=DATABASE)
        if version > _VERSION:
            raise StorageError("workspace.newer", folder=self._folder)
        return dict(fields)

    def _write(self, users: bool) -> None:
        """Write the marker, whole or not at all."""
        made = {
            "format": _FORMAT,
            "version": _VERSION,
            "id": secrets.token_hex(16),
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        fields = (self._read() if self._path.exists() else made) | {"users": users}
        draft = self._path.with_name(f".{MARKER}.{secrets.token_hex(4)}")
        opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(opened, "w", encoding="utf-8") as file:
                file.write(json.dumps(fields, indent=2) + "\n")
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._path)
        finally:
            draft.unlink(missing_ok=True)
