"""user, as an administrator meets it."""

import os
import subprocess
import sys
from contextlib import closing

import pytest

from comorb.web.server.access import Access
from comorb.web.server.store import Store


def test_a_user_is_added_listed_and_removed(comorb):
    token = comorb("user", "add", "ana", "--role", "viewer").stdout.strip()
    assert len(token) > 40
    assert comorb("user", "list").stdout == "ana\tviewer\n"
    assert comorb("user", "remove", "ana").exit_code == 0
    assert comorb("user", "list").stdout == ""


def work_alone(workspace) -> str:
    """Make a run as the local user does, and return its id."""
    with closing(Store(workspace)) as store:
        access = Access(store)
        access.use_link(access.new_link())
        return store.add("runs", "local", {"state": "done"})["id"]


def test_who_worked_alone_is_named_by_an_option_and_keeps_everything(comorb, tmp_path):
    run = work_alone(tmp_path / "icu")
    told = comorb("user", "add", "bob", "--role", "viewer", "--owner", "rosa", "--workspace", "icu")
    assert told.exit_code == 0
    tokens = told.stdout.splitlines()
    first, second = told.stderr.splitlines()
    assert first.startswith("Token of bob (viewer), shown only this once; give it to them")
    assert second.startswith("Token of rosa (exporter), shown only this once; keep it")
    with closing(Store(tmp_path / "icu")) as store:
        names = [Access(store).user_of_token(token).name for token in tokens]
        assert names == ["bob", "rosa"]
        assert store.get("runs", run)["owner"] == "rosa"


def test_without_a_terminal_and_the_option_nothing_is_changed(comorb, tmp_path):
    run = work_alone(tmp_path / "icu")
    told = comorb("user", "add", "bob", "--role", "viewer", "--workspace", "icu")
    assert (told.exit_code, told.stdout) == (1, "")
    assert "expected a name for whoever worked here alone" in told.stderr
    assert "--owner NAME" in told.stderr
    with closing(Store(tmp_path / "icu")) as store:
        assert Access(store).is_local
        assert store.get("runs", run)["owner"] == "local"


@pytest.mark.skipif(os.name != "posix", reason="a terminal is imitated with pty")
def test_at_a_terminal_the_name_is_asked_for(tmp_path):
    import pty

    work_alone(tmp_path / "icu")
    ours, theirs = pty.openpty()
    words = ("user", "add", "bob", "--role", "viewer", "--workspace", str(tmp_path / "icu"))
    command = [sys.executable, "-m", "comorb", *words]
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        os.write(ours, b"rosa\n")
        tokens, asked = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert (process.returncode, len(tokens.splitlines())) == (0, 2)
    assert asked.startswith("Someone worked here alone, and keeps their runs")
    with closing(Store(tmp_path / "icu")) as store:
        assert Access(store).users() == [("bob", "viewer"), ("rosa", "exporter")]


def test_a_folder_of_ones_own_is_no_place_for_users(comorb, tmp_path):
    (tmp_path / "visits.csv").write_text("id,code\n")
    told = comorb("user", "add", "bob", "--workspace", ".")
    assert told.exit_code == 1
    assert "expected an empty folder or a workspace of the explorer" in told.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["visits.csv"]


def test_what_is_not_an_action_is_refused(comorb):
    assert "expected add NAME, remove NAME or list, got 'drop'" in comorb("user", "drop").stderr
    assert comorb("user", "add").exit_code == 2
    assert "no user 'ana'" in comorb("user", "remove", "ana").stderr
    assert "expected a role" in comorb("user", "add", "ana", "--role", "king").stderr


def test_the_store_is_closed_also_when_a_user_is_refused(comorb, monkeypatch):
    closed = []
    close = Store.close
    monkeypatch.setattr(Store, "close", lambda store: (closed.append(store), close(store)))
    assert comorb("user", "remove", "ana").exit_code == 2
    assert len(closed) == 1
