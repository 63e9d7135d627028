"""What is a workspace and what isn't: a folder of somebody else is refused and left as it is."""

import errno
import json
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from comorb.errors import StorageError
from comorb.web.server.access import Access
from comorb.web.server.store import MARKER, Store, is_issued, new_key


def contents(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"of {name}")


@pytest.mark.parametrize(
    "names",
    [
        ("analysis.R",),
        ("data/hf-2023.csv", "runs/first/notes.md"),
        ("data/0123456789ab",),  # a file, where comorb has folders
        ("runs/0123456789abc/model",),
        ("comorb.sqlite-old",),
        (".git/config",),
        ("data/0123456789ab/records.csv", "thesis.tex"),
    ],
)
@pytest.mark.parametrize("empty_store", [False, True])
def test_a_folder_with_other_files_is_refused_and_left_as_it_is(tmp_path, names, empty_store):
    write(tmp_path, *names)
    if empty_store:
        (tmp_path / "comorb.sqlite").touch()
    before = contents(tmp_path)
    with pytest.raises(StorageError, match="expected an empty folder or a workspace") as error:
        Store(tmp_path)
    assert str(tmp_path / "comorb-workspace") in str(error.value)
    assert contents(tmp_path) == before


def test_a_refusal_names_no_more_than_three_files(tmp_path):
    write(tmp_path, *(f"table{number}.csv" for number in range(9)))
    with pytest.raises(StorageError, match=r"\(table0.csv, table1.csv, table2.csv …\)"):
        Store(tmp_path)


@pytest.mark.parametrize("made", [None, "", "lost+found", "temporary"])
def test_a_new_or_empty_folder_becomes_a_workspace_also_beside_other_files(tmp_path, made):
    write(tmp_path, "cohort.csv", "data/cohort.csv")
    folder = tmp_path / "explorer" / "of-mine"
    if made is not None:
        (folder / made).mkdir(parents=True)
    with closing(Store(folder)) as store:
        assert not store.marker.had_users
    marker = json.loads((folder / MARKER).read_text())
    assert marker["format"] == "comorb-workspace"
    assert not (folder / MARKER).stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    assert (tmp_path / "data" / "cohort.csv").read_text() == "of data/cohort.csv"


def unmarked(folder: Path, *users: str) -> None:
    """Make a workspace as earlier versions did: without a marker."""
    with closing(Store(folder)) as store:
        for user in users:
            Access(store).add_user(user, "viewer")
        store.add("runs", "local", {"state": "done"})
    (folder / MARKER).unlink()


@pytest.mark.parametrize(("users", "had"), [((), False), (("kim",), True)])
def test_a_workspace_of_an_earlier_version_gets_its_marker(tmp_path, users, had):
    unmarked(tmp_path, *users)
    write(tmp_path, "notes.txt")
    with closing(Store(tmp_path)) as store:
        assert len(store.list("runs")) == 1
        assert store.marker.had_users is had
    assert (tmp_path / "notes.txt").exists()


def test_users_who_were_removed_before_there_was_a_marker_are_known_from_the_log(tmp_path):
    unmarked(tmp_path, "kim")
    with closing(Store(tmp_path)) as store:
        Access(store).remove_user("kim")
    (tmp_path / MARKER).unlink()
    with closing(Store(tmp_path)) as store:
        assert store.marker.had_users


@pytest.mark.parametrize("lose", [Path.unlink, lambda path: path.write_bytes(b"")])
def test_nobody_knows_who_worked_in_an_unmarked_workspace_without_its_database(tmp_path, lose):
    unmarked(tmp_path)
    lose(tmp_path / "comorb.sqlite")
    for _ in range(2):
        with closing(Store(tmp_path)) as store:
            assert store.marker.had_users
            assert not Access(store).is_local
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_a_marker_keeps_that_there_were_users_when_the_database_is_lost(tmp_path):
    with closing(Store(tmp_path)) as store:
        Access(store).add_user("kim", "analyst")
    fields = json.loads((tmp_path / MARKER).read_text())
    (tmp_path / "comorb.sqlite").unlink()
    with closing(Store(tmp_path)) as store:
        assert store.marker.had_users
    assert json.loads((tmp_path / MARKER).read_text()) == fields


def test_what_a_later_version_keeps_in_the_marker_stays(tmp_path):
    with closing(Store(tmp_path)):
        pass
    path = tmp_path / MARKER
    path.write_text(json.dumps(json.loads(path.read_text()) | {"quota": {"kim": 5}}))
    with closing(Store(tmp_path)) as store:
        Access(store).add_user("kim", "analyst")
    fields = json.loads(path.read_text())
    assert (fields["quota"], fields["users"]) == ({"kim": 5}, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "can't be read as one; put back a copy"),
        ("[]", "can't be read as one"),
        ('{"format": "other", "version": 1, "users": false}', "can't be read as one"),
        ('{"format": "comorb-workspace", "version": 1}', "can't be read as one"),
        ('{"format": "comorb-workspace", "version": 2, "users": true}', "a newer version"),
    ],
)
def test_a_marker_that_cannot_be_used_is_refused(tmp_path, text, said):
    (tmp_path / MARKER).write_text(text)
    with pytest.raises(StorageError, match=said):
        Store(tmp_path)
    assert contents(tmp_path) == {MARKER: text.encode()}


def test_a_database_of_something_else_gets_no_marker_and_no_folders(tmp_path):
    with closing(sqlite3.connect(tmp_path / "comorb.sqlite")) as other:
        other.execute("CREATE TABLE users (id INTEGER)")
    with pytest.raises(StorageError, match="a database of something else"):
        Store(tmp_path)
    assert list(contents(tmp_path)) == ["comorb.sqlite"]


def test_a_failed_addition_of_users_leaves_the_marker(tmp_path):
    with closing(Store(tmp_path)) as store:
        store.query("DROP TABLE questions")
        with pytest.raises(sqlite3.OperationalError):
            Access(store).add_user("kim", "analyst")
        assert not store.marker.had_users


def test_a_token_is_given_out_where_the_marker_cannot_be_written_until_later(tmp_path, monkeypatch):
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with closing(Store(tmp_path)) as store:
        with monkeypatch.context() as patch:
            patch.setattr("comorb.web.server.store.os.open", full)
            assert Access(store).add_user("kim", "analyst")
        assert not store.marker.had_users
    with closing(Store(tmp_path)) as store:
        assert store.marker.had_users


def test_every_key_is_a_name_that_comorb_gives_out():
    assert all(is_issued(new_key()) for _ in range(50))
    assert is_issued("heart-failure")
    assert not any(
        map(is_issued, ("", "data", "0123456789AB", "0123456789ab.csv", "../0123456789"))
    )
