"""Store: the workspace of a server, with its marker, database and audit log.

Only names that comorb gave out itself are ever removed in a workspace, and a folder with files of
somebody else is refused before anything is written to it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, get_args

from comorb.errors import StorageError
from comorb.messages import pack, unpack

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
_N_OTHERS = 3  # names of others' files in a message
COMMAND_LINE = "command line"  # who acts where nobody signed in
FIELDS = ("number", "at", "user", "action", "target")
SCHEMA = """
CREATE TABLE IF NOT EXISTS audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL, user TEXT NOT NULL, action TEXT NOT NULL, target TEXT NOT NULL,
    seal TEXT NOT NULL
);
CREATE TRIGGER IF NOT EXISTS audit_stays BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
CREATE TRIGGER IF NOT EXISTS audit_grows BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
CREATE TRIGGER IF NOT EXISTS audit_once BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
"""


def new_key() -> str:
    """Return a new id of data, a run or a definition, which is the name of its folder too."""
    return secrets.token_hex(6)


def is_issued(name: str) -> bool:
    """Tell whether comorb may have given out a name for data, a run or a worker's folder."""
    return name in BUILT_IN or _ISSUED.fullmatch(name) is not None


class Marker:
    """The file that marks a folder as a workspace, and keeps what must outlast its database.

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
                shown = ", ".join(others[:_N_OTHERS]) + (" …" if others[_N_OTHERS:] else "")
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


def seal(before: str, act: Mapping[str, Any]) -> str:
    """Return the SHA-256 of an act and of the seal before it, which is empty for the first."""
    plain = json.dumps([before, *(act[field] for field in FIELDS)])
    return hashlib.sha256(plain.encode()).hexdigest()


Table = Literal["data", "runs", "definitions"]
ASIDE = "deleted"  # the field with the time when a row was put aside
Row = dict[str, Any]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS users (
    name TEXT PRIMARY KEY, role TEXT NOT NULL, token TEXT NOT NULL UNIQUE, created REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS sessions (
    token TEXT PRIMARY KEY, user TEXT NOT NULL, expires REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS questions (
    user TEXT NOT NULL, data TEXT NOT NULL, digest TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (user, data, digest)
);
""" + "".join(
    f"CREATE TABLE IF NOT EXISTS {table} (id TEXT PRIMARY KEY, owner TEXT NOT NULL,"
    " created REAL NOT NULL, body TEXT NOT NULL);\n"
    for table in get_args(Table)
)
_FIRST_TABLES = {"users", "sessions", "data", "runs", "audit"}  # those of every version
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
_COLUMNS = "SELECT name FROM pragma_table_info(?)"
_ADD = "INSERT INTO {} VALUES (?, ?, ?, ?)"
_GET = "SELECT * FROM {} WHERE id = ?"
_LIST = "SELECT * FROM {} ORDER BY created DESC"
_CHANGE = "UPDATE {} SET body = ? WHERE id = ?"
_REMOVE = "DELETE FROM {} WHERE id = ?"
_HAD_USERS = (
    "SELECT 1 FROM users UNION ALL "
    "SELECT 1 FROM audit WHERE user = ? AND action LIKE 'add %' LIMIT 1"
)
_ADD_ACT = "INSERT INTO audit VALUES (:number, :at, :user, :action, :target, :seal)"
_LAST_ACT = "SELECT seal FROM audit ORDER BY number DESC LIMIT 1"


class Store:
    """A workspace: its marker, comorb.sqlite, data/ID/ and runs/ID/, closed to other accounts."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace.absolute()
        self._lock = threading.RLock()
        self._held: sqlite3.Connection | None = None
        self.marker = Marker(self.workspace)
        path = self.workspace / DATABASE
        try:
            self.marker.open()
            if not path.exists():
                path.touch(0o600)
            self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise _unusable(path, error) from None
        self._connection.row_factory = sqlite3.Row
        try:
            self._open()
            for name in FOLDERS:
                (self.workspace / name).mkdir(exist_ok=True, mode=0o700)
            self.marker.keep(bool(self.query(_HAD_USERS, COMMAND_LINE)))
        except (OSError, sqlite3.Error, StorageError) as error:
            self._connection.close()
            raise _unusable(path, error) from None
        path.chmod(0o600)

    def _open(self) -> None:
        """Make the tables where there are none; refuse those of others, and damaged ones."""
        (check,) = self.query("PRAGMA quick_check(1)")
        if check["quick_check"] != "ok":
            raise StorageError("workspace.damaged")
        tables = {row["name"] for row in self.query(_TABLES)}
        if tables and not tables >= _FIRST_TABLES:
            raise StorageError("workspace.other_database")
        self.query("PRAGMA journal_mode = WAL")
        with self.transaction():
            columns = [row["name"] for row in self.query(_COLUMNS, "audit")]
            unsealed = columns == ["at", "user", "action", "target"]  # of an earlier version
            earlier = self.query("SELECT * FROM audit ORDER BY rowid") if unsealed else []
            if unsealed:
                self.query("DROP TABLE audit")
            for statement in _statements(_SCHEMA + SCHEMA):
                self.query(statement)
            for act in earlier:
                self._add_act(act)
        with closing(sqlite3.connect(":memory:")) as ours:
            ours.executescript(_SCHEMA + SCHEMA)
            for (table,) in ours.execute(_TABLES).fetchall():
                columns = [row["name"] for row in self.query(_COLUMNS, table)]
                if columns != [name for (name,) in ours.execute(_COLUMNS, (table,))]:
                    raise StorageError("workspace.table_version", table=table)

    def hold(self) -> None:
        """Keep the workspace from other servers, until this one is closed or its process ends."""
        path = self.workspace / LOCK
        path.touch(0o600)
        held = sqlite3.connect(path, timeout=0, check_same_thread=False, isolation_level=None)
        try:
            held.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error:
            held.close()
            raise StorageError("workspace.in_use", workspace=self.workspace) from None
        self._held = held

    def close(self) -> None:
        """Close the database, and let others have the workspace."""
        with self._lock:
            self._connection.close()
            if self._held is not None:
                self._held.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do all statements of the block or none; other processes wait."""
        with self._lock:
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.rollback()
                raise
            self._connection.commit()

    def query(self, sql: str, *values: object) -> list[Row]:
        """Run one statement and return its rows."""
        with self._lock:
            return [dict(row) for row in self._connection.execute(sql, values)]

    def folder(self, table: Table, key: str) -> Path:
        """Return where the files of data or of a run are."""
        return self.workspace / table / key

    def add(self, table: Table, owner: str, body: Mapping[str, Any], key: str = "") -> Row:
        """Add data or a run, with its folder, or a definition, and return it."""
        key = key or new_key()
        if table != "definitions":
            self.folder(table, key).mkdir(mode=0o700, exist_ok=True)
        self.query(_ADD.format(table), key, owner, time.time(), json.dumps(pack(body)))
        return self.get(table, key) or {}

    def get(self, table: Table, key: str) -> Row | None:
        """Return data or a run, or None when there is none of that id, or it was put aside."""
        rows = [_plain(row) for row in self.query(_GET.format(table), key)]
        return rows[0] if rows and ASIDE not in rows[0] else None

    def list(self, table: Table) -> list[Row]:
        """Return all data or runs, the latest first."""
        rows = [_plain(row) for row in self.query(_LIST.format(table))]
        return [row for row in rows if ASIDE not in row]

    def change(self, table: Table, key: str, fields: Mapping[str, Any]) -> Row | None:
        """Change some fields, and return what is there then."""
        with self._lock:
            rows = self.query(_GET.format(table), key)
            if not rows:
                return None
            body = json.loads(rows[0]["body"]) | pack(dict(fields))
            self.query(_CHANGE.format(table), json.dumps(body), key)
            return self.get(table, key)

    def put_aside(self, table: Table, key: str) -> None:
        """Put data or a run where only `put_back` finds it, until it is removed."""
        self.change(table, key, {ASIDE: time.time()})

    def put_back(self, table: Table, key: str, owner: str) -> Row | None:
        """Return to its owner what was put aside; None where there is nothing of the kind."""
        with self._lock:
            rows = self.query(_GET.format(table), key)
            body = json.loads(rows[0]["body"]) if rows else {}
            if body.pop(ASIDE, None) is None or rows[0]["owner"] != owner:
                return None
            self.query(_CHANGE.format(table), json.dumps(body), key)
        return self.get(table, key)

    def remove_aside(self, seconds: float = 0) -> None:
        """Remove what was put aside so many seconds ago, or longer."""
        last = time.time() - seconds
        for table in FOLDERS:
            for row in map(_plain, self.query(_LIST.format(table))):
                if row.get(ASIDE, math.inf) <= last:
                    self.remove(table, row["id"])

    def remove(self, table: Table, key: str) -> None:
        """Remove data or a run, with its files."""
        shutil.rmtree(self.folder(table, key), ignore_errors=True)  # first: it makes room
        self.forget(table, key)

    def forget(self, table: Table, key: str) -> None:
        """Remove the row of data or a run, and leave its files."""
        self.query(_REMOVE.format(table), key)

    def audit(self, user: str, action: str, target: str) -> None:
        """Write down who did what to which data or run; never what it holds."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._add_act({"at": at, "user": user, "action": action, "target": target})

    def _add_act(self, act: Row) -> None:
        with self.transaction():
            last = self.query(_LAST_ACT)
            act = act | {"number": self._acts_ever() + 1}
            sealed = act | {"seal": seal(last[0]["seal"] if last else "", act)}
            self._connection.execute(_ADD_ACT, sealed)

    def _acts_ever(self) -> int:
        """Return how many acts there were, also those deleted."""
        given = self.query("SELECT seq FROM sqlite_sequence WHERE name = 'audit'")
        return int(given[0]["seq"]) if given else 0

    def acts(self) -> Sequence[Row]:
        """Return the audit log, the earliest act first."""
        return self.query("SELECT * FROM audit ORDER BY number")

    def broken_act(self) -> int | None:
        """Return the number of the first act that is missing, changed or out of place, if any."""
        before, number = "", 0
        for number, act in enumerate(self.acts(), 1):
            if act["number"] != number or act["seal"] != seal(before, act):
                return number
            before = act["seal"]
        return None if number == self._acts_ever() else number + 1  # the end was cut off


def _unusable(path: Path, error: Exception) -> StorageError:
    reason = error.strerror if isinstance(error, OSError) else error
    return StorageError("workspace.unusable", path=path, reason=reason)


def _statements(script: str) -> Iterator[str]:
    """Yield the statements of a script, of which triggers hold others."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _plain(row: Row) -> Row:
    body: Row = unpack(json.loads(row["body"]))
    return {"id": row["id"], "owner": row["owner"], "created": row["created"]} | body


# In a folder of data or of a run: answers under way, drafts, and pages of earlier versions.
_HALF_DONE = re.compile(
    r"(assign|download)-[0-9a-f]{8}(\.\w+)*|\..+\.(\d+-)?[0-9a-f]{8}|shown-[\w-]+\.json"
)
_SHOWN = 10  # names in a message


def clear_leftovers(store: Store) -> str:
    """Clear what a killed server left, and return a line on what the store doesn't know, if any.

    Only files and folders whose names comorb gave out are removed, and only where a row of the
    store or their place shows that nobody needs them. A folder without a row may be all that is
    left of a run, such as after an older copy of the database was put back: it is moved to
    ``lost+found``. What comorb didn't name stays where it is.
    """
    store.remove_aside()
    for row in store.list("data"):
        if row["kind"] == "upload" and "about" not in row and not row.get("refused"):
            # A file under its own name came in whole, which an older database doesn't know.
            came = row.get("source") and (store.folder("data", row["id"]) / row["source"]).exists()
            (store.forget if came else store.remove)("data", row["id"])
    for path in _half_done(store):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    place, moved, left = _set_aside(store)
    found = [f"{_listed(moved)} moved to {place}"] if moved else []
    found += [f"{_listed(left)} left in place"] if left else []
    return f"Not in {store.workspace / DATABASE}: {'; '.join(found)}." if found else ""


def _half_done(store: Store) -> list[Path]:
    """Return what was under way, by its name, in folders of comorb's own; links stay."""
    found = [path for path in _inside(store.workspace / TEMPORARY) if is_issued(path.name)]
    for table in FOLDERS:
        for row in store.list(table):
            folder = store.folder(table, row["id"])
            found += [
                path
                for path in _inside(folder)
                if _HALF_DONE.fullmatch(path.name)
                and not (path.name.startswith(".") and path.is_dir())  # for `storage.settle`
            ]
            found += [path for path in _inside(folder / "maps") if is_issued(path.name)]
    return [path for path in found if not path.is_symlink()]


def _inside(folder: Path) -> Iterator[Path]:
    if folder.is_dir() and not folder.is_symlink():
        yield from folder.iterdir()


def _set_aside(store: Store) -> tuple[Path, list[str], list[str]]:
    """Move folders without a row to lost+found; return where, what was moved, and what stays."""
    place = store.workspace / LOST / time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    moved, left = [], []
    for table in FOLDERS:
        for path in sorted(_inside(store.workspace / table)):
            if store.get(table, path.name) is not None:
                continue
            name = f"{table}/{path.name}"
            if not is_issued(path.name):
                left.append(name)
                continue
            with suppress(OSError):
                path.rmdir()  # an empty one was made just before a kill
                continue
            try:
                (place / table).mkdir(parents=True, exist_ok=True, mode=0o700)
                path.rename(place / table / path.name)
            except OSError:
                left.append(name)
            else:
                moved.append(name)
    return place, moved, left


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if names[_SHOWN:] else ""
    return f"{', '.join(names[:_SHOWN])}{more},"
