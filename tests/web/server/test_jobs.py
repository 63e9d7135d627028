"""The queue: fair among users; what an earlier server left undone is taken up again."""

import stat
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from comorb.profiles.noise import SECRET_FILE
from comorb.web.server.jobs import FairQueue, Jobs
from comorb.web.server.readers import CancelScope
from comorb.web.server.security import RefusedError
from comorb.web.server.store import Store
from comorb.web.worker.process import Bounds, TaskError
from comorb.web.worker.requests import cohorts

BODY = {
    "data": "built",
    "title": "Left",
    "k": 2,
    "rules": {"at_least": 3},
    "parent": None,
    "within": None,
    "merge": None,
}
DATA = {"kind": "builtin", "source": "tertiary", "title": "T", "reading": {}}


def test_a_run_that_was_not_done_is_taken_up_and_its_time_is_foreseen(tmp_path):
    store = Store(tmp_path)
    store.add("data", "*", DATA, "built")
    keys = [
        store.add("runs", "ana", BODY | {"state": state})["id"] for state in ("running", "queued")
    ]
    lost = store.add("runs", "ana", BODY | {"state": "queued", "data": "gone"})["id"]
    jobs = Jobs(store, 11)
    jobs.start()
    seen = set()
    for _ in range(900):
        told = jobs.progress(keys[0])
        seen.add(told.get("stage"))
        if told["state"] == "running":
            assert 0 <= told["done"] < 1
            assert told["left"] is None or told["left"] > 0
        if all(jobs.progress(key)["state"] == "done" for key in keys):
            break
        time.sleep(0.05)
    rows = [store.get("runs", key) for key in keys]
    assert [row["state"] for row in rows] == ["done", "done"]
    assert "finding" in seen
    while jobs.progress(lost)["state"] in ("queued", "running"):
        time.sleep(0.05)
    assert "were deleted" in jobs.progress(lost)["message"]
    assert jobs.progress("none")["state"] == "gone"
    for view in ("full", "protected"):
        jobs.document(keys[0], view, CancelScope("ana")).unlink()
        assert jobs.document(keys[0], view, CancelScope("ana")).exists()
    jobs.close()
    store.close()


def test_the_secret_is_made_at_the_start_and_one_that_is_damaged_is_told_when_needed(tmp_path):
    store = Store(tmp_path)
    jobs = Jobs(store, 11)
    jobs.start()
    for _ in range(600):
        if (tmp_path / SECRET_FILE).exists():
            break
        time.sleep(0.05)
    assert stat.S_IMODE((tmp_path / SECRET_FILE).stat().st_mode) == 0o600
    jobs.close()
    (tmp_path / SECRET_FILE).write_text("no secret")
    again = Jobs(store, 11)
    again.start()
    data = again.data_of(store.add("data", "*", DATA, "built"))
    with pytest.raises(TaskError, match="is damaged; put back the file"):
        again.read(
            partial(cohorts.count_protected, data, {}, str(tmp_path), 11), CancelScope("ana")
        )
    again.close()
    store.close()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory isn't told here")
def test_a_fit_that_needs_more_memory_than_it_may_have_ends_with_a_sentence_and_the_next_is_done(
    tmp_path,
):
    store = Store(tmp_path)
    store.add("data", "*", DATA, "built")
    large = store.add("runs", "ana", BODY | {"state": "queued"})["id"]
    jobs = Jobs(store, 11, bounds=Bounds(resident=50_000_000))
    jobs.start()
    ended(jobs, large)
    assert "takes more than 0.05 GB of memory" in jobs.progress(large)["message"]
    jobs._fits._bounds = Bounds()
    small = store.add("runs", "ana", BODY | {"state": "queued"})["id"]
    jobs.put(small)
    ended(jobs, small)
    assert jobs.progress(small)["state"] == "done"
    jobs.close()
    store.close()


def ended(jobs: Jobs, key: str) -> None:
    for _ in range(1200):
        if jobs.progress(key)["state"] not in ("queued", "running"):
            return
        time.sleep(0.05)
    raise AssertionError("it still runs")


def test_a_user_with_many_runs_waiting_is_refused_and_another_is_not(tmp_path):
    store = Store(tmp_path)
    jobs = Jobs(store, 11)
    for state in ("queued",) * 19 + ("running", "done"):
        store.add("runs", "ana", BODY | {"state": state})
    with pytest.raises(RefusedError, match="20 runs waiting, which is the most") as refused:
        jobs.check_queue("ana")
    assert refused.value.status == 429
    jobs.check_queue("bea")
    jobs.close()
    store.close()


def test_users_take_turns_and_each_has_the_oldest_first():
    turns = FairQueue()
    for key in ("a1", "a2", "a3"):
        turns.put("ana", key)
    turns.put("bea", "b1")
    turns.put("eva", "e1")
    assert [turns.get() for _ in range(2)] == ["a1", "b1"]
    turns.put("bea", "b2")
    assert [turns.get() for _ in range(4)] == ["e1", "a2", "b2", "a3"]


def test_who_takes_waits_until_there_is_something_and_stops_at_the_end():
    turns, taken = FairQueue(), []

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
    turns = FairQueue()
    for user, key in (("ana", "a1"), ("ana", "a2"), ("ana", "a3"), ("bea", "b1")):
        turns.put(user, key)
    assert turns.before("a1") == []
    assert turns.before("b1") == ["a1"]
    assert turns.before("a3") == ["a1", "b1", "a2"]
    assert turns.before("gone") == []
    assert [turns.get() for _ in range(4)] == ["a1", "b1", "a2", "a3"]
