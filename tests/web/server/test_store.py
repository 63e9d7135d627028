"""The workspace: rows, folders and the log that only grows and shows who changed it."""

import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from fastapi.testclient import TestClient

from comorb.errors import StorageError
from comorb.web.server.store import Store
from tests.web.conftest import BASE


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


def test_what_is_put_aside_is_gone_comes_back_to_its_owner_and_is_removed_later(store):
    row, other = (store.add("runs", "ana", {"title": title}) for title in ("one", "two"))
    for one in (row, other):
        store.put_aside("runs", one["id"])
    assert store.get("runs", row["id"]) is None
    assert store.list("runs") == []
    assert store.put_back("runs", row["id"], "bea") is None
    assert store.put_back("runs", row["id"], "ana") == row
    assert store.put_back("runs", row["id"], "ana") is None
    store.remove_aside(60)
    assert store.folder("runs", other["id"]).is_dir()
    store.remove_aside()
    assert not store.folder("runs", other["id"]).exists()
    assert store.put_back("runs", other["id"], "ana") is None
    assert store.list("runs") == [row]


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
    for number in (1, "1"):
        with pytest.raises(sqlite3.IntegrityError, match="only added to"):
            store.query(
                "INSERT OR REPLACE INTO audit VALUES (?, '', 'bea', 'run', 'abc', '')", number
            )
    assert [row["user"] for row in store.query("SELECT * FROM audit")] == ["ana"]
    assert store.broken_act() is None


def test_a_log_of_an_earlier_version_is_sealed_as_it_was(tmp_path):
    with closing(sqlite3.connect(tmp_path / "comorb.sqlite")) as old:
        for table in ("users", "sessions", "data", "runs"):
            with closing(Store(tmp_path / "new")) as new:
                (row,) = new.query("SELECT sql FROM sqlite_master WHERE name = ?", table)
            old.execute(row["sql"])
        old.execute("CREATE TABLE audit (at TEXT, user TEXT, action TEXT, target TEXT)")
        old.execute("CREATE TRIGGER audit_grows BEFORE DELETE ON audit BEGIN SELECT 1; END")
        old.execute("INSERT INTO audit VALUES ('then', 'ana', 'run', 'abc')")
        old.commit()
    for _ in range(2):
        with closing(Store(tmp_path)) as store:
            assert [(act["number"], act["at"]) for act in store.acts()] == [(1, "then")]
            assert store.broken_act() is None


def test_many_threads_and_processes_add_to_one_log(store):
    other = Store(store.workspace)
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda i: (store, other)[i % 2].audit("ana", "run", str(i)), range(80)):
            pass
    assert len(store.acts()) == 80
    assert store.broken_act() is None
    other.close()


def not_a_database(path):
    path.write_bytes(b"no database, " * 500)


def a_folder(path):
    path.mkdir()


def of_something_else(path):
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE users (id INTEGER)")


def of_another_version(path):
    with closing(Store(path.parent)) as store:
        store.query("ALTER TABLE runs ADD COLUMN more TEXT")


def cut_off(path):
    with closing(Store(path.parent)) as store:
        for i in range(300):
            store.audit("ana", "run", str(i) * 20)
        store.query("PRAGMA wal_checkpoint(TRUNCATE)")
    path.write_bytes(path.read_bytes()[:9000])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (not_a_database, "file is not a database"),
        (a_folder, "unable to open"),
        (of_something_else, "a database of something else"),
        (of_another_version, "table runs is of another version"),
        (cut_off, "damaged|malformed"),
    ],
)
def test_what_is_no_workspace_is_refused_and_left_as_it_is(tmp_path, make, said):
    path = tmp_path / "comorb.sqlite"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StorageError, match=rf"expected a workspace of the explorer.*({said})"):
        Store(tmp_path)
    assert before is None or path.read_bytes() == before


def test_a_workspace_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="File exists"):
        Store(tmp_path / "file")


def test_one_server_holds_a_workspace_until_it_is_closed(store):
    store.hold()
    other = Store(store.workspace)
    with pytest.raises(StorageError, match="another server is at work in"):
        other.hold()
    other.audit("ana", "run", "abc")  # commands may still work in it
    store.close()
    other.hold()
    other.close()


def test_a_transaction_is_done_whole_or_not_at_all(store):
    def half_done():
        with store.transaction():
            store.audit("ana", "run", "abc")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half_done()
    assert store.acts() == []


ATTACKS = {
    "a name": ("UPDATE audit SET user = 'bea' WHERE number = 3", 3),
    "an action": ("UPDATE audit SET action = 'open run' WHERE number = 1", 1),
    "a time": ("UPDATE audit SET at = '2020-01-01T00:00:00Z' WHERE number = 5", 5),
    "a seal": ("UPDATE audit SET seal = 'x' WHERE number = 2", 2),
    "deleted": ("DELETE FROM audit WHERE number = 2", 2),
    "the first deleted": ("DELETE FROM audit WHERE number = 1", 1),
    "the last deleted": ("DELETE FROM audit WHERE number >= 5", 5),
    "all deleted": ("DELETE FROM audit", 1),
    "replaced": ("INSERT OR REPLACE INTO audit VALUES (4, '', 'bea', 'run', 'x', 'x')", 4),
    "added": ("INSERT INTO audit VALUES (6, '', 'bea', 'run', 'x', 'x')", 6),
    "put before": ("INSERT INTO audit VALUES (0, '', 'bea', 'run', 'x', 'x')", 1),
    "reordered": (
        "UPDATE audit SET number = CASE number WHEN 2 THEN -3 ELSE -2 END"
        " WHERE number IN (2, 3); UPDATE audit SET number = -number WHERE number < 0",
        2,
    ),
    "renumbered": (
        "DELETE FROM audit WHERE number = 3;UPDATE audit SET number = number - 1 WHERE number > 3",
        3,
    ),
}


@pytest.fixture
def workspace(tmp_path):
    with closing(Store(tmp_path)) as store:
        for number in range(1, 6):
            store.audit("ana", "run", f"{number:012x}")
        assert store.broken_act() is None
    return tmp_path


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_log_that_was_changed_by_hand_is_told_by_its_first_break(workspace, attack):
    sql, place = ATTACKS[attack]
    with closing(sqlite3.connect(workspace / "comorb.sqlite")) as database:
        for trigger in ("stays", "grows", "once"):
            database.execute(f"DROP TRIGGER audit_{trigger}")
        database.executescript(sql)
    with closing(Store(workspace)) as store:
        assert store.broken_act() == place
        store.audit("ana", "run", "later")
        assert store.broken_act() == place


def test_every_change_and_every_way_in_or_out_is_in_the_log(app, client, run, records, tokens):
    store, eva = app.state.store, client("eva")
    before = len(store.acts())
    path = f"/api/v1/runs/{run['id']}"
    eva.patch(path, json={"title": "Heart failure"})
    eva.patch(path, json={"shared": True})
    eva.patch(path, json={"shared": False})
    eva.put(f"{path}/names", json={"2": "Two"})
    copy = eva.post(f"{path}/duplicate").json()["id"]
    eva.post(f"/api/v1/runs/{copy}/cancel")
    eva.delete(f"/api/v1/runs/{copy}")
    eva.get(f"/api/v1/compare/{run['id']}/{run['id']}")
    sent = eva.put("/api/v1/data?name=v.csv", content=records.read_bytes()).json()["id"]
    data = f"/api/v1/data/{sent}"
    eva.patch(data, json={"title": "Mine"})
    eva.put(f"{data}/maps?name=m.csv", content=b"code,group\n428,hf\n")
    eva.delete(data)
    stranger = TestClient(app, base_url=BASE, client=("stranger", 50_000))
    stranger.get("/api/v1/runs", headers={"authorization": "Bearer wrong"})
    eva.post("/api/v1/logout")
    app.state.access.add_user("tom", "viewer")
    app.state.access.remove_user("tom")
    acts = store.acts()[before:]
    assert [(act["user"], act["action"], act["target"]) for act in acts] == [
        *(("eva", action, run["id"]) for action in ("rename run", "share", "unshare")),
        ("eva", "name clusters", run["id"]),
        ("eva", "duplicate run", run["id"]),
        ("eva", "cancel run", copy),
        ("eva", "delete run", copy),
        *[("eva", "compare run", run["id"])] * 2,
        *(("eva", each, sent) for each in ("upload", "change data", "add a map", "delete data")),
        ("", "fail to sign in", "stranger"),
        ("eva", "sign out", ""),
        ("command line", "add viewer", "tom"),
        ("command line", "remove user", "tom"),
    ]
    assert store.broken_act() is None
