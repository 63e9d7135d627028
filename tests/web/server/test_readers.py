"""Readers: nobody's slow file keeps others waiting, and who leaves takes the work along."""

import asyncio
import gzip
import threading
import time
from contextlib import suppress
from functools import partial

import pytest
from starlette.concurrency import run_in_threadpool

from comorb.records.sources.files import Limits
from comorb.web.server import readers as module
from comorb.web.server.readers import CancelScope, Readers, cancel_on_disconnect
from comorb.web.server.security import RefusedError
from comorb.web.worker.process import Bounds, StoppedError, TaskError
from comorb.web.worker.requests import Data, Task, cohorts


class Slow:
    """A worker whose tasks take as long as they say, unless it is stopped."""

    def __init__(self, bounds=None):
        self._stopped = threading.Event()
        self.stops = 0

    def ask(self, seconds):
        if self._stopped.wait(seconds):
            self._stopped.clear()
            raise StoppedError("stopped")
        return seconds

    def stop(self):
        self.stops += 1
        self._stopped.set()

    close = stop


@pytest.fixture
def readers(monkeypatch):
    monkeypatch.setattr(module, "Worker", Slow)
    readers = Readers()
    yield readers
    readers.close()


def read(readers: Readers, scope: CancelScope, seconds: float) -> float:
    with readers.reader(scope) as reader:
        return reader.ask(seconds)


def begin(readers, scope, seconds, times=1) -> list[threading.Thread]:
    def quietly():
        with suppress(StoppedError):
            read(readers, scope, seconds)

    threads = [threading.Thread(target=quietly) for _ in range(times)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    return threads


def test_a_slow_file_of_one_keeps_no_other_waiting(readers):
    slow = CancelScope("ana")
    threads = begin(readers, slow, 60, times=3)
    started = time.monotonic()
    assert read(readers, CancelScope("bea"), 0) == 0
    assert time.monotonic() - started < 5
    slow.cancel()
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()


def test_a_user_comes_back_to_the_reader_that_holds_their_data(readers):
    ana, eva = CancelScope("ana"), CancelScope("eva")
    for _ in range(3):
        with readers.reader(ana) as first, readers.reader(eva) as second:
            held = first, second
        with readers.reader(eva) as again:
            assert again is held[1]
        with readers.reader(ana) as again:
            assert again is held[0]


def test_too_much_at_once_of_one_is_refused_and_not_that_of_others(readers):
    slow = CancelScope("ana")
    threads = begin(readers, slow, 60, times=8)
    with pytest.raises(RefusedError, match="much at once") as refused:
        read(readers, CancelScope("ana"), 0)
    assert refused.value.status == 429
    assert read(readers, CancelScope("bea"), 0) == 0
    slow.cancel()
    for thread in threads:
        thread.join(5)
    assert read(readers, CancelScope("ana"), 0) == 0


def test_who_left_stops_only_what_is_done_for_them(readers):
    done = CancelScope("ana")
    read(readers, done, 0)
    done.cancel()
    assert sum(worker.stops for worker in readers._workers) == 0
    with pytest.raises(StoppedError, match="has left"):
        read(readers, done, 0)
    assert read(readers, CancelScope("ana"), 0) == 0


class Visitor:
    """A request without a body whose client leaves at once, or never."""

    def __init__(self, leaves: bool):
        self._leaves, self._came = leaves, False

    async def receive(self) -> dict:
        if not self._came:
            self._came = True
            return {"type": "http.request", "body": b""}
        if not self._leaves:
            await asyncio.sleep(60)
        return {"type": "http.disconnect"}


async def visit(visitor: Visitor, scope: CancelScope, readers: Readers, seconds: float) -> float:
    async with cancel_on_disconnect(visitor, scope):
        return await run_in_threadpool(read, readers, scope, seconds)


def test_work_is_stopped_when_its_client_leaves(readers):
    scope, started = CancelScope("ana"), time.monotonic()
    with pytest.raises(StoppedError):
        asyncio.run(visit(Visitor(True), scope, readers, 60))
    assert time.monotonic() - started < 5


def test_work_is_done_for_a_client_that_stays(readers):
    scope = CancelScope("ana")
    assert asyncio.run(visit(Visitor(False), scope, readers, 0.3)) == 0.3


def test_too_many_that_ask_at_once_are_told_so(readers, monkeypatch):
    monkeypatch.setattr(module, "_MAX_PENDING", 3)
    slow = [CancelScope(name) for name in ("ana", "bea", "eva")]
    threads = [begin(readers, scope, 60)[0] for scope in slow]
    with pytest.raises(RefusedError, match="Too many ask at the moment") as refused:
        read(readers, CancelScope("ida"), 0)
    assert refused.value.status == 503
    for scope, thread in zip(slow, threads, strict=True):
        scope.cancel()
        thread.join(5)
    assert read(readers, CancelScope("ida"), 0) == 0


def test_changes_are_made_one_after_the_other_by_whoever_has_a_reader(readers):
    lock, order = threading.Lock(), []
    first = threading.Thread(
        target=lambda: order.append(readers.ask(0.3, CancelScope("ana"), lock))
    )
    first.start()
    time.sleep(0.1)
    order.append(readers.ask(0, CancelScope("bea"), lock))
    first.join(5)
    assert order == [0.3, 0]


def test_a_task_that_takes_too_long_is_stopped_and_told(monkeypatch):
    monkeypatch.setattr(module, "Worker", Slow)
    readers = Readers(seconds=0.3)
    with pytest.raises(TaskError, match=r"takes more than 0\.005 minutes"):
        readers.ask(60, CancelScope("ana"))
    assert readers.ask(0, CancelScope("ana")) == 0
    slow = CancelScope("ana")
    threading.Timer(0.05, slow.cancel).start()
    with pytest.raises(StoppedError):
        readers.ask(60, slow)
    readers.close()


def test_a_small_file_that_becomes_a_huge_table_is_refused_and_the_next_is_read(tmp_path):
    pytest.importorskip("resource")
    bomb, small = tmp_path / "bomb.csv.gz", tmp_path / "small.csv"
    lines = b"".join(b"%d,4280,25000,4019\n" % i for i in range(100_000))
    bomb.write_bytes(gzip.compress(b"id,dx1,dx2,dx3\n") + gzip.compress(lines) * 300)
    small.write_bytes(b"id,dx1,dx2,dx3\n" + b"".join(lines.splitlines(keepends=True)[:100]))
    readers = Readers(Bounds(memory=4 << 30))
    try:
        with pytest.raises(TaskError, match=r"not enough memory|bomb\.csv\.gz needs more memory"):
            readers.ask(understand(bomb, tmp_path), CancelScope("ana"))
        for _ in range(2):  # each of the readers
            assert readers.ask(understand(small, tmp_path), CancelScope("ana"))["records"] == 100
    finally:
        readers.close()


def understand(file, folder) -> Task:
    return partial(cohorts.describe_data, Data(str(file), "upload", str(folder), {}, "t"), 11)


def test_a_file_beyond_a_limit_is_refused_by_name_and_the_next_is_read(tmp_path):
    bomb, small = tmp_path / "bomb.csv.gz", tmp_path / "small.csv"
    bomb.write_bytes(gzip.compress(b"id,dx1,dx2\n" + b"1,4280,25000\n" * 200_000))
    small.write_bytes(b"id,dx1,dx2\n" + b"".join(b"%d,4280,25000\n" % i for i in range(50)))
    bounds = Bounds(limits=Limits(expanded=1_000_000), folder=str(tmp_path / "temporary"))
    readers = Readers(bounds)
    try:
        with pytest.raises(TaskError, match=r"bomb\.csv\.gz unpacks to more than 0\.001 GB"):
            readers.ask(understand(bomb, tmp_path), CancelScope("ana"))
        assert readers.ask(understand(small, tmp_path), CancelScope("ana"))["records"] == 50
    finally:
        readers.close()
    assert list((tmp_path / "temporary").iterdir()) == []
