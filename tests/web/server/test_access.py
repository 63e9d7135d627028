"""Tokens, roles, sessions, the one-time link and the limit on tries."""

import pytest

from comorb.errors import InputError
from comorb.web.server import access as module
from comorb.web.server.access import Access, User
from comorb.web.server.store import Store


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    yield store
    store.close()


@pytest.fixture
def access(store):
    return Access(store)


def test_a_token_is_kept_only_as_a_hash(access, store):
    token = access.add_user("ana", "analyst")
    assert access.user_of_token(token) == User("ana", "analyst")
    assert access.user_of_token(token + "x") is None
    assert token not in str(store.query("SELECT * FROM users"))


def test_adding_a_user_again_replaces_token_and_role(access):
    old = access.add_user("ana", "viewer")
    new = access.add_user("ana", "exporter")
    assert access.user_of_token(old) is None
    assert access.user_of_token(new).role == "exporter"
    assert access.users() == [("ana", "exporter")]


@pytest.mark.parametrize("name", ["", "a b", "local", "x" * 65])
def test_a_name_that_cannot_be_is_refused(access, name):
    with pytest.raises(InputError, match="expected a name"):
        access.add_user(name, "viewer")


def test_a_role_that_is_none_is_refused(access):
    with pytest.raises(InputError, match="expected a role out of viewer, analyst, exporter"):
        access.add_user("ana", "admin")


def test_each_role_may_do_what_those_before_it_may():
    assert [User("a", "analyst").may(role) for role in module.ROLES] == [True, True, False]


def test_the_link_works_once(access):
    key = access.new_link()
    assert access.use_link("wrong") is None
    session = access.use_link(key)
    assert access.user_of_session(session) == User("local", "exporter", session)
    assert access.use_link(key) is None


def test_the_local_session_ends_when_there_are_users(access):
    session = access.use_link(access.new_link())
    access.add_user("ana", "viewer")
    assert access.user_of_session(session) is None


def test_a_session_ends_with_its_user_its_time_or_its_owners_wish(access, monkeypatch):
    access.add_user("ana", "viewer")
    first, second, third = (access.open_session("ana") for _ in range(3))
    access.close_session(first)
    assert access.user_of_session(first) is None
    assert access.user_of_session(second).name == "ana"
    now = module.time.time()
    monkeypatch.setattr(module.time, "time", lambda: now + 13 * 3600)
    assert access.user_of_session(second) is None
    monkeypatch.undo()
    assert access.remove_user("ana")
    assert access.user_of_session(third) is None
    assert not access.remove_user("ana")


def test_a_name_that_is_given_again_inherits_nothing(access, store):
    access.add_user("ana", "analyst")
    kept = store.add("runs", "ana", {"state": "done"})["id"]
    data = store.add("data", "ana", {"kind": "upload"})["id"]
    store.query("INSERT INTO questions VALUES ('ana', 'd', 'q', 0)")
    access.add_user("ana", "exporter")  # a new token for the same person
    assert store.get("runs", kept)["owner"] == store.get("data", data)["owner"] == "ana"
    access.remove_user("ana")
    access.add_user("ana", "analyst")
    owners = {store.get("runs", kept)["owner"], store.get("data", data)["owner"]}
    owners |= {row["user"] for row in store.query("SELECT user FROM questions")}
    (owner,) = owners
    assert owner.startswith("ana (removed ")
    assert not module._NAME.fullmatch(owner)


def test_what_a_name_left_before_it_was_closed_is_not_inherited_either(access, store):
    left = store.add("runs", "ana", {"state": "done"})["id"]
    access.add_user("ana", "analyst")
    assert store.get("runs", left)["owner"] != "ana"


def test_the_runs_of_a_removed_user_end(access, store):
    access.add_user("ana", "analyst")
    before = ("queued", "running", "done", "failed")
    runs = [store.add("runs", "ana", {"state": state})["id"] for state in before]
    other = store.add("runs", "bea", {"state": "queued"})["id"]
    access.remove_user("ana")
    states = [store.get("runs", key)["state"] for key in (*runs, other)]
    assert states == ["cancelled", "cancelled", "done", "failed", "queued"]


def test_five_wrong_tries_are_enough_for_a_minute(access, monkeypatch):
    assert [access.too_many("10.0.0.1") for _ in range(7)] == [False] * 5 + [True] * 2
    assert not access.too_many("10.0.0.2")
    now = module.time.monotonic()
    monkeypatch.setattr(module.time, "monotonic", lambda: now + 61)
    assert not access.too_many("10.0.0.1")
    assert access._tries.keys() == {"10.0.0.1"}  # those of a minute ago are forgotten
