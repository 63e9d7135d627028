"""The workspace: rows, folders and the log that only grows."""

import sqlite3
import stat

import pytest

from comorb.web.server.store import Store


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "workspace")
    yield store
    store.close()


def test_a_row_is_kept_changed_and_removed_with_its_folder(store):
    row = store.add("runs", "ana", {"title": "one", "k": 3})
    assert store.get("runs", row["id"]) == row
    assert store.change("runs", row["id"], {"title": "two"})["title"] == "two"
    assert store.folder("runs", row["id"]).is_dir()
    store.remove("runs", row["id"])
    assert store.get("runs", row["id"]) is None
    assert not store.folder("runs", row["id"]).exists()
    assert store.change("runs", row["id"], {}) is None


def test_the_latest_row_comes_first(store):
    keys = [store.add("data", "ana", {})["id"] for _ in range(3)]
    assert [row["id"] for row in store.list("data")] == keys[::-1]


def test_rows_survive_another_start(store):
    row = store.add("data", "ana", {"title": "kept"})
    again = Store(store.workspace)
    assert again.get("data", row["id"]) == row
    again.close()


def test_the_database_is_in_wal_mode_and_closed_to_others(store):
    assert store.query("PRAGMA journal_mode") == [{"journal_mode": "wal"}]
    for path in (store.workspace, store.workspace / "comorb.sqlite", store.workspace / "runs"):
        assert not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)


def test_the_audit_log_is_only_added_to(store):
    store.audit("ana", "run", "abc")
    with pytest.raises(sqlite3.IntegrityError, match="only added to"):
        store.query("DELETE FROM audit")
    with pytest.raises(sqlite3.IntegrityError, match="only added to"):
        store.query("UPDATE audit SET user = 'bea'")
    assert [row["user"] for row in store.query("SELECT * FROM audit")] == ["ana"]
