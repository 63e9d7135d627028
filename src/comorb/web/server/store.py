"""Store: users, data, runs, questions and the audit log in SQLite, files in folders beside it.

What is known about data and runs is a JSON document each, with its id and owner as columns.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sqlite3
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

Table = Literal["data", "runs"]
Row = dict[str, Any]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS users (
    name TEXT PRIMARY KEY, role TEXT NOT NULL, token TEXT NOT NULL UNIQUE, created REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS sessions (
    token TEXT PRIMARY KEY, user TEXT NOT NULL, expires REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS data (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, created REAL NOT NULL, body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, created REAL NOT NULL, body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS questions (
    user TEXT NOT NULL, data TEXT NOT NULL, digest TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (user, data, digest)
);
CREATE TABLE IF NOT EXISTS audit (
    at TEXT NOT NULL, user TEXT NOT NULL, action TEXT NOT NULL, target TEXT NOT NULL
);
CREATE TRIGGER IF NOT EXISTS audit_stays BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
CREATE TRIGGER IF NOT EXISTS audit_grows BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
"""
_ADD = "INSERT INTO {} VALUES (?, ?, ?, ?)"
_GET = "SELECT * FROM {} WHERE id = ?"
_LIST = "SELECT * FROM {} ORDER BY created DESC"
_CHANGE = "UPDATE {} SET body = ? WHERE id = ?"
_REMOVE = "DELETE FROM {} WHERE id = ?"


class Store:
    """A workspace folder: comorb.sqlite, data/ID/ and runs/ID/, closed to other accounts."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace.absolute()
        self.workspace.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in ("data", "runs"):
            (self.workspace / name).mkdir(exist_ok=True, mode=0o700)
        path = self.workspace / "comorb.sqlite"
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        self._lock = threading.RLock()
        with self._lock:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.executescript(_SCHEMA)
        path.chmod(0o600)

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._connection.close()

    def query(self, sql: str, *values: object) -> list[Row]:
        """Run one statement and return its rows."""
        with self._lock:
            return [dict(row) for row in self._connection.execute(sql, values)]

    def folder(self, table: Table, key: str) -> Path:
        """Return where the files of data or of a run are."""
        return self.workspace / table / key

    def add(self, table: Table, owner: str, body: Mapping[str, Any], key: str = "") -> Row:
        """Add data or a run, with its folder, and return it."""
        key = key or secrets.token_hex(6)
        self.folder(table, key).mkdir(mode=0o700, exist_ok=True)
        self.query(_ADD.format(table), key, owner, time.time(), json.dumps(body))
        return self.get(table, key) or {}

    def get(self, table: Table, key: str) -> Row | None:
        """Return data or a run, or None when there is none of that id."""
        rows = self.query(_GET.format(table), key)
        return _plain(rows[0]) if rows else None

    def list(self, table: Table) -> list[Row]:
        """Return all data or runs, the latest first."""
        return [_plain(row) for row in self.query(_LIST.format(table))]

    def change(self, table: Table, key: str, fields: Mapping[str, Any]) -> Row | None:
        """Change some fields, and return what is there then."""
        with self._lock:
            rows = self.query(_GET.format(table), key)
            if not rows:
                return None
            body = json.loads(rows[0]["body"]) | dict(fields)
            self.query(_CHANGE.format(table), json.dumps(body), key)
            return self.get(table, key)

    def remove(self, table: Table, key: str) -> None:
        """Remove data or a run, with its files."""
        self.query(_REMOVE.format(table), key)
        shutil.rmtree(self.folder(table, key), ignore_errors=True)

    def audit(self, user: str, action: str, target: str) -> None:
        """Write down who did what to which data or run; never what it holds."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.query("INSERT INTO audit VALUES (?, ?, ?, ?)", at, user, action, target)


def _plain(row: Row) -> Row:
    body: Row = json.loads(row["body"])
    return {"id": row["id"], "owner": row["owner"], "created": row["created"]} | body
