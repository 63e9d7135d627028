"""The audit log: whoever edits, deletes, adds or moves an act by hand is found out."""

import sqlite3
from contextlib import closing

import pytest

from comorb.web.server.store import Store

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
    eva.get("/api/v1/runs", headers={"authorization": "Bearer wrong"})
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
        ("", "fail to sign in", "testclient"),
        ("eva", "sign out", ""),
        ("command line", "add viewer", "tom"),
        ("command line", "remove user", "tom"),
    ]
    assert store.broken_act() is None
