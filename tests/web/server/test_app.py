"""The start of a server: what a killed one left half-done goes, and the rest stays."""

import stat

from comorb.web.server.app import TEMPORARY, _clean
from comorb.web.server.store import Store


def test_what_a_killed_server_left_half_done_is_removed(tmp_path):
    store = Store(tmp_path)
    kept = {
        table: store.add(table, "ana", {"kind": "upload", "about": {}})["id"]
        for table in ("data", "runs")
    }
    half = store.add("data", "ana", {"kind": "upload"})["id"]
    refused = store.add("data", "ana", {"kind": "upload", "refused": {"error": "why"}})["id"]
    run, data = tmp_path / "runs" / kept["runs"], tmp_path / "data" / kept["data"]
    lost = (tmp_path / "runs" / "none", tmp_path / TEMPORARY / "0123456789ab")
    for folder in (run / "assign-0a", data / "maps" / "0123456789ab", *lost):
        folder.mkdir(parents=True)
        (folder / "records.csv").write_text("MARKER")
    whole = [run / "profile.json", data / "records.csv", data / "maps" / "0123456789abcdef" / "m"]
    ready = run / ".comorb-ready" / "model.comorb"
    for path in (*whole, ready):
        path.parent.mkdir(exist_ok=True)
        path.write_text("kept")
    for path in (
        run / "download-0a.csv",
        run / ".assignments.csv.0a",
        tmp_path / "data" / half / "r",
    ):
        path.write_text("MARKER")
    _clean(store)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if b"MARKER" in path.read_bytes()]
    assert all(path.read_text() == "kept" for path in (*whole, ready))
    assert {row["id"] for row in store.list("data")} == {kept["data"], refused}
    store.close()


def test_what_a_server_writes_is_for_its_account_alone(client, app, run, records):
    sent = client("eva").put("/api/v1/data?name=v.csv", content=records.read_bytes()).json()["id"]
    client("eva").get(f"/api/v1/data/{sent}/codes")
    files = [path for path in app.state.store.workspace.rglob("*") if path.is_file()]
    assert len(files) > 10
    open_to_others = stat.S_IRWXG | stat.S_IRWXO
    assert [path.name for path in files if path.stat().st_mode & open_to_others] == []
    client("eva").delete(f"/api/v1/data/{sent}")
