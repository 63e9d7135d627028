"""Readers: nobody's slow file keeps others waiting, and who leaves takes the work along."""

import asyncio
import gzip
import threading
import time
from contextlib import suppress

import pytest

from comorb.web.server import readers as module
from comorb.web.server.readers import Errand, Readers, while_there
from comorb.web.server.refusals import RefusedError
from comorb.web.worker.messages import Data, Understand
from comorb.web.worker.process import StoppedError, TaskError


class Slow:
    """A worker whose tasks take as long as they say, unless it is stopped."""

    def __init__(self, memory=0):
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


def read(readers: Readers, errand: Errand, seconds: float) -> float:
    with readers.reader(errand) as reader:
        return reader.ask(seconds)


def begin(readers, errand, seconds, times=1) -> list[threading.Thread]:
    def quietly():
        with suppress(StoppedError):
            read(readers, errand, seconds)

    threads = [threading.Thread(target=quietly) for _ in range(times)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    return threads


def test_a_slow_file_of_one_keeps_no_other_waiting(readers):
    slow = Errand("ana")
    threads = begin(readers, slow, 60, times=3)
    started = time.monotonic()
    assert read(readers, Errand("bea"), 0) == 0
    assert time.monotonic() - started < 5
    slow.leave()
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()


def test_too_much_at_once_of_one_is_refused_and_not_that_of_others(readers):
    slow = Errand("ana")
    threads = begin(readers, slow, 60, times=8)
    with pytest.raises(RefusedError, match="much at once") as refused:
        read(readers, Errand("ana"), 0)
    assert refused.value.status == 429
    assert read(readers, Errand("bea"), 0) == 0
    slow.leave()
    for thread in threads:
        thread.join(5)
    assert read(readers, Errand("ana"), 0) == 0


def test_who_left_stops_only_what_is_done_for_them(readers):
    done = Errand("ana")
    read(readers, done, 0)
    done.leave()
    assert sum(worker.stops for worker in readers._workers) == 0
    with pytest.raises(StoppedError, match="has left"):
        read(readers, done, 0)
    assert read(readers, Errand("ana"), 0) == 0


class Visitor:
    """A request whose client leaves at once, or never."""

    def __init__(self, leaves: bool):
        self._leaves = leaves

    async def is_disconnected(self) -> bool:
        return self._leaves


def test_work_is_stopped_when_its_client_leaves(readers):
    errand, started = Errand("ana"), time.monotonic()
    with pytest.raises(StoppedError):
        asyncio.run(while_there(Visitor(True), errand, read, readers, errand, 60))
    assert time.monotonic() - started < 5


def test_work_is_done_for_a_client_that_stays(readers):
    errand = Errand("ana")
    told = asyncio.run(while_there(Visitor(False), errand, read, readers, errand, 0.6))
    assert told == 0.6


def test_a_task_that_takes_too_long_is_stopped_and_told(monkeypatch):
    monkeypatch.setattr(module, "Worker", Slow)
    readers = Readers(seconds=0.3)
    with pytest.raises(TaskError, match=r"takes more than 0\.005 minutes"):
        readers.ask(60, Errand("ana"))
    assert readers.ask(0, Errand("ana")) == 0
    slow = Errand("ana")
    threading.Timer(0.05, slow.leave).start()
    with pytest.raises(StoppedError):
        readers.ask(60, slow)
    readers.close()


def test_a_small_file_that_becomes_a_huge_table_is_refused_and_the_next_is_read(tmp_path):
    pytest.importorskip("resource")
    bomb, small = tmp_path / "bomb.csv.gz", tmp_path / "small.csv"
    lines = b"".join(b"%d,4280,25000,4019\n" % i for i in range(100_000))
    with gzip.open(bomb, "wb") as file:
        file.write(b"id,dx1,dx2,dx3\n")
        for _ in range(300):
            file.write(lines)
    small.write_bytes(b"id,dx1,dx2,dx3\n" + b"".join(lines.splitlines(keepends=True)[:100]))
    readers = Readers(memory=4 << 30)
    try:
        with pytest.raises(
            TaskError, match=r"not enough memory|bomb\.csv\.gz can't be read to its end"
        ):
            readers.ask(understand(bomb, tmp_path), Errand("ana"))
        for _ in range(2):  # each of the readers
            assert readers.ask(understand(small, tmp_path), Errand("ana"))["records"] == 100
    finally:
        readers.close()


def understand(file, folder) -> Understand:
    return Understand(Data(str(file), "upload", str(folder), {}, "t"), 11)
