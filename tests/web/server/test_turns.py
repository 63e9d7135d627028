"""Turns: the many runs of one user don't come before the one of another."""

import threading

from comorb.web.server.turns import Turns


def test_users_take_turns_and_each_has_the_oldest_first():
    turns = Turns()
    for key in ("a1", "a2", "a3"):
        turns.put("ana", key)
    turns.put("bea", "b1")
    turns.put("eva", "e1")
    assert [turns.get() for _ in range(2)] == ["a1", "b1"]
    turns.put("bea", "b2")
    assert [turns.get() for _ in range(4)] == ["e1", "a2", "b2", "a3"]


def test_who_takes_waits_until_there_is_something_and_stops_at_the_end():
    turns, taken = Turns(), []

    def take():
        while (key := turns.get()) is not None:
            taken.append(key)

    thread = threading.Thread(target=take)
    thread.start()
    turns.put("ana", "a1")
    while not taken:
        pass
    turns.close()
    thread.join(5)
    assert (taken, thread.is_alive()) == (["a1"], False)
    turns.put("ana", "a2")
    assert turns.get() is None


def test_who_waits_sees_what_is_before():
    turns = Turns()
    for user, key in (("ana", "a1"), ("ana", "a2"), ("ana", "a3"), ("bea", "b1")):
        turns.put(user, key)
    assert turns.before("a1") == []
    assert turns.before("b1") == ["a1"]
    assert turns.before("a3") == ["a1", "b1", "a2"]
    assert turns.before("gone") == []
    assert [turns.get() for _ in range(4)] == ["a1", "b1", "a2", "a3"]
