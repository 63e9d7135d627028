"""The start of a server: what a killed one left half-done goes, and nothing else does."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from comorb.web.server.app import Settings, create_app
from comorb.web.server.store import LOST, TEMPORARY, Store, clear_leftovers
from tests.web.conftest import BASE
from tests.web.server.test_workspace import contents, write


def text_files(folder: Path) -> list[str]:
    """Return what `write` wrote that is still there, wherever it is."""
    found = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    texts = [path.read_bytes().decode("utf-8", "replace") for path in found]
    return sorted(text for text in texts if text.startswith("of "))


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "kept")
    yield store
    store.close()


def test_what_a_killed_server_left_half_done_is_removed(tmp_path):
    store = Store(tmp_path)
    kept = {
        table: store.add(table, "ana", {"kind": "upload", "about": {}})["id"]
        for table in ("data", "runs")
    }
    half = store.add("data", "ana", {"kind": "upload", "source": "records.csv"})["id"]
    refused = store.add("data", "ana", {"kind": "upload", "refused": {"error": "why"}})["id"]
    run, data = tmp_path / "runs" / kept["runs"], tmp_path / "data" / kept["data"]
    empty = tmp_path / "runs" / "ab0123456789"
    empty.mkdir()
    temporary = tmp_path / TEMPORARY / "0123456789ab"
    for folder in (run / "assign-0a1b2c3e", data / "maps" / "0123456789ab", temporary):
        folder.mkdir(parents=True)
        (folder / "records.csv").write_text("MARKER")
    whole = [run / "profile.json", data / "records.csv", data / "maps" / "0123456789abcdef" / "m"]
    ready = run / ".comorb-ready" / "model.comorb"
    for path in (*whole, ready):
        path.parent.mkdir(exist_ok=True)
        path.write_text("kept")
    for path in (
        run / "download-0a1b2c3d.csv",
        run / "assign-0a1b2c3d.csv",
        run / "shown-protected.json",
        run / ".assignments.csv.0a1b2c3d",
        run / ".profile.json.4711-0a1b2c3d",
        tmp_path / "data" / half / ".records.csv.0a1b2c3d",
    ):
        path.write_text("MARKER")
    assert clear_leftovers(store) == ""
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if b"MARKER" in path.read_bytes()]
    assert all(path.read_text() == "kept" for path in (*whole, ready))
    assert {row["id"] for row in store.list("data")} == {kept["data"], refused}
    assert not empty.exists()
    assert not (tmp_path / LOST).exists()
    store.close()


def test_folders_that_an_older_database_does_not_know_are_kept_and_named(store):
    backup = store.workspace.parent / "backup.sqlite"
    known = store.add("runs", "ana", {"state": "done"})["id"]
    store.query("VACUUM INTO ?", str(backup))
    later = {
        table: store.add(table, "ana", {"kind": "upload", "about": {}, "state": "done"})["id"]
        for table in ("data", "runs")
    }
    for table, key in (("runs", known), *later.items()):
        write(store.workspace, f"{table}/{key}/model.comorb", f"{table}/{key}/maps/a/b.csv")
    before = text_files(store.workspace)
    store.close()
    shutil.copyfile(backup, store.workspace / "comorb.sqlite")
    with closing(Store(store.workspace)) as older:
        line = clear_leftovers(older)
        assert clear_leftovers(older) == ""
    assert text_files(store.workspace) == before
    (place,) = (store.workspace / LOST).iterdir()
    assert line.count("\n") == 0
    assert line.endswith(f"data/{later['data']}, runs/{later['runs']}, moved to {place}.")
    assert (place / "runs" / later["runs"] / "maps" / "a" / "b.csv").is_file()
    assert (store.workspace / "runs" / known / "model.comorb").is_file()


@pytest.mark.parametrize("marked", [True, False])
def test_an_empty_database_costs_no_file_at_the_next_start(tmp_path, marked):
    folder = tmp_path / "hospital"
    with TestClient(create_app(Settings(folder)), base_url=BASE):
        pass
    for number in range(17):
        write(folder, f"runs/{number:012x}/model.comorb", f"data/{number + 99:012x}/records.csv")
    before = text_files(folder)
    assert len(before) == 34
    for path in folder.glob("comorb.sqlite*"):
        path.unlink()
    (folder / "comorb.sqlite").touch()
    if not marked:
        (folder / "comorb-workspace.json").unlink()
    for _ in range(2):
        with TestClient(create_app(Settings(folder)), base_url=BASE):
            pass
        assert text_files(folder) == before


def test_what_comorb_did_not_name_stays_where_it_is(store):
    row = store.add("runs", "ana", {"state": "done"})
    own = ("data/hf.csv", "runs/plots/one.png", f"{TEMPORARY}/draft.docx", "notes.txt")
    near = tuple(
        f"runs/{row['id']}/{name}" for name in ("assign-me.txt", ".todo.bad", "maps/north")
    )
    write(store.workspace, *own, *near)
    before = contents(store.workspace)
    line = clear_leftovers(store)
    assert "data/hf.csv, runs/plots, left in place" in line
    after = contents(store.workspace)
    assert {name: after.get(name) for name in (*own, *near)} == {
        name: before[name] for name in (*own, *near)
    }


def test_a_link_is_not_followed(store, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere, ".profile.json.0a1b2c3d", "download-0a1b2c3d.csv", "0123456789ab/mine.csv")
    linked = store.add("runs", "ana", {"state": "done"})["id"]
    plain = store.add("data", "ana", {"kind": "upload", "about": {}})["id"]
    aside = store.add("runs", "ana", {"state": "done", "deleted": 1.0})
    assert aside == {}
    (key,) = (row["id"] for row in store.query("SELECT id FROM runs") if row["id"] != linked)
    for folder in (store.folder("runs", linked), store.folder("runs", key)):
        folder.rmdir()
        folder.symlink_to(elsewhere)
    (store.workspace / TEMPORARY).symlink_to(elsewhere)
    (store.folder("data", plain) / "maps").symlink_to(elsewhere)
    (store.workspace / "data" / "ab0123456789").symlink_to(elsewhere)
    before = contents(elsewhere)
    clear_leftovers(store)
    assert contents(elsewhere) == before
    assert store.get("runs", linked) is not None


def test_a_folder_of_data_that_is_a_link_is_left_as_it_is(tmp_path):
    elsewhere = tmp_path / "disk"
    write(elsewhere, "0123456789ab/records.csv", "letters.docx")
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "runs").symlink_to(elsewhere)
    (elsewhere / "letters.docx").rename(tmp_path / "letters.docx")
    with closing(Store(folder)) as store:
        (tmp_path / "letters.docx").rename(elsewhere / "letters.docx")
        before = contents(elsewhere)
        assert clear_leftovers(store) == ""
        assert contents(elsewhere) == before


def test_an_upload_that_came_in_whole_is_kept_when_the_database_is_older(store):
    half = store.add("data", "ana", {"kind": "upload", "source": "records.parquet"})["id"]
    write(store.workspace, f"data/{half}/records.parquet")
    assert f"data/{half}, moved to" in clear_leftovers(store)
    assert text_files(store.workspace / LOST) == [f"of data/{half}/records.parquet"]
    assert store.get("data", half) is None


def test_what_cannot_be_moved_is_left_and_named(store):
    write(store.workspace, "runs/0123456789ab/model.comorb", LOST)
    assert "runs/0123456789ab, left in place." in clear_leftovers(store)
    assert (store.workspace / "runs" / "0123456789ab" / "model.comorb").is_file()


def test_the_line_at_the_start_names_ten_folders_at_most(tmp_path, caplog):
    with closing(Store(tmp_path)):
        pass
    write(tmp_path, *(f"runs/{number:012x}/model.comorb" for number in range(13)))
    with TestClient(create_app(Settings(tmp_path)), base_url=BASE):
        pass
    (line,) = (one.getMessage() for one in caplog.records if one.name == "comorb.server")
    assert "runs/000000000009 and 3 more, moved to" in line
