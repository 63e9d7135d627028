"""user, as an administrator meets it."""

from comorb.web.server.store import Store


def test_a_user_is_added_listed_and_removed(comorb):
    token = comorb("user", "add", "ana", "--role", "viewer").stdout.strip()
    assert len(token) > 40
    assert comorb("user", "list").stdout == "ana\tviewer\n"
    assert comorb("user", "remove", "ana").exit_code == 0
    assert comorb("user", "list").stdout == ""


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
