"""Tokens, roles, sessions, the one-time link and the limit on tries."""

import pytest

from comorb.errors import InputError
from comorb.web.server import access as module
from comorb.web.server.access import Access, User
from comorb.web.server.store import Store

OWNED = ("data", "runs", "definitions")


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


def test_who_worked_alone_goes_on_under_a_name(access, store):
    session = access.use_link(access.new_link())
    body = {"state": "running", "kind": "upload"}
    mine = {table: store.add(table, "local", body)["id"] for table in OWNED}
    secret = access.user_of_session(session).csrf
    tokens = access.add_users({"bob": "viewer"}, owner="maria")
    assert access.users() == [("bob", "viewer"), ("maria", "exporter")]
    assert {access.user_of_token(token).name for token in tokens.values()} == {"bob", "maria"}
    goes_on = access.user_of_session(session)
    assert (goes_on, goes_on.csrf) == (User("maria", "exporter", session), secret)
    rows = [store.get(table, key) for table, key in mine.items()]
    assert {(row["owner"], row["state"]) for row in rows} == {("maria", "running")}


@pytest.mark.parametrize("work", ["session", *OWNED])
def test_nobody_is_cut_off_from_work_by_a_first_user(access, store, work):
    if work == "session":
        access.use_link(access.new_link())
    else:
        store.add(work, "local", {"state": "done"})
    assert access.needs_owner
    before = list(store._connection.iterdump())
    for roles in ({"bob": "viewer"}, {"bob": "king"}):
        with pytest.raises(InputError, match=r"expected a (name for whoever worked here|role)"):
            access.add_users(roles)
    for owner in ("a b", "local"):
        with pytest.raises(InputError, match="expected a name of"):
            access.add_users({"bob": "viewer"}, owner)
    assert list(store._connection.iterdump()) == before
    assert access.is_local


def test_who_worked_alone_may_be_the_first_user_with_every_right(access, store):
    mine = store.add("runs", "local", {"state": "done"})["id"]
    with pytest.raises(InputError, match=r"expected the role exporter for 'maria'.*got 'analyst'"):
        access.add_users({"maria": "analyst"}, owner="maria")
    assert list(access.add_users({"maria": "exporter"}, owner="maria")) == ["maria"]
    assert store.get("runs", mine)["owner"] == "maria"


def test_local_work_can_still_be_given_to_one_who_is_a_user(access, store):
    token = access.add_user("maria", "analyst")
    left = store.add("runs", "local", {"state": "done"})["id"]
    assert not access.needs_owner
    assert list(access.add_users({"bob": "viewer"}, owner="maria")) == ["bob"]
    assert store.get("runs", left)["owner"] == "maria"
    assert access.user_of_token(token) == User("maria", "analyst")


def test_a_session_that_is_over_is_no_work(access, monkeypatch):
    access.use_link(access.new_link())
    now = module.time.time()
    monkeypatch.setattr(module.time, "time", lambda: now + 13 * 3600)
    assert not access.needs_owner


def test_where_there_were_users_nobody_comes_in_as_the_local_user(access, store):
    key = access.new_link()
    access.add_user("ana", "viewer")
    access.remove_user("ana")
    assert not access.has_users
    assert access.use_link(key) is None
    assert access.user_of_session(access.open_session("local")) is None


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
