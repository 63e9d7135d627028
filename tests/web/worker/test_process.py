"""The process that does the work: errors without data, stopping, starting again."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from comorb.errors import TooLargeError
from comorb.web.worker import tasks
from comorb.web.worker.isolation import Bounds
from comorb.web.worker.messages import Data, ListCodes, ShowProfile
from comorb.web.worker.process import (
    OutOfMemoryError,
    StoppedError,
    TaskError,
    Worker,
    _terminate,
    _work,
)

DATA = Data("heart_failure", "builtin", "", {}, "")
SLOW = ListCodes(DATA, {})


@pytest.fixture(scope="module")
def worker():
    worker = Worker()
    yield worker
    worker.close()


def test_a_task_is_done_again_and_again(worker):
    worker.warm()
    assert worker.ask(SLOW) == worker.ask(SLOW)


def test_an_error_of_ours_is_told_whole(worker):
    with pytest.raises(TaskError, match="There is no profile"):
        worker.ask(ShowProfile("nowhere", 11))


def test_an_error_that_nobody_foresaw_is_told_without_what_it_holds(worker):
    broken = ListCodes(Data("patient 7", "builtin", "", {}, ""), {})
    with pytest.raises(TaskError, match=r"^This can't be done: an unexpected KeyError\.$"):
        worker.ask(broken)


def test_an_error_that_nobody_foresaw_is_logged_with_its_frames_alone(capfd):
    worker = Worker()
    with pytest.raises(TaskError):
        worker.ask(ListCodes(Data("patient 7", "builtin", "", {}, ""), {}))
    worker.close()
    logged = capfd.readouterr().err
    assert "KeyError in ListCodes" in logged
    assert "cohorts.py:" in logged
    assert "patient 7" not in logged


def test_a_stopped_task_says_so_and_the_next_one_is_done(worker):
    errors = []

    def ask():
        try:
            worker.ask(SLOW)
        except (StoppedError, TaskError) as error:
            errors.append(type(error))

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.05)
    worker.stop()
    thread.join(30)
    assert errors == [StoppedError]
    assert worker.ask(SLOW)[0][0] == "428"


def test_a_closed_worker_takes_no_more_tasks():
    worker = Worker()
    worker.close()
    with pytest.raises(StoppedError, match="closing"):
        worker.ask(SLOW)


def test_a_machine_without_niceness_has_workers_too(monkeypatch):
    monkeypatch.delattr(os, "nice", raising=False)
    ours, theirs = multiprocessing.Pipe()
    ours.close()
    assert _work(theirs, 5, Bounds()) is None


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "not enough memory"),
        (RuntimeError("can't start new thread"), "not enough memory"),
        (TooLargeError("a.csv needs more memory"), "a.csv needs more memory"),
    ],
)
def test_a_process_without_memory_says_so_and_is_not_used_again(monkeypatch, error, said):
    def do(task, tell):
        raise error

    monkeypatch.setattr(tasks, "do", do)
    ours, theirs = multiprocessing.Pipe()
    process = threading.Thread(target=_work, args=(theirs, 0, Bounds()))
    process.start()
    ours.send(SLOW)
    told = ours.recv()
    ours.close()
    process.join()
    assert isinstance(told, OutOfMemoryError)
    assert said in str(told)


def _start_another(pipe):
    os.setsid()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as other:
        pipe.send(other.pid)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes can't be seen here")
def test_what_a_process_started_ends_with_it():
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_start_another, args=(theirs,), daemon=True)
    process.start()
    other = ours.recv()
    _terminate(process)
    process.join(10)
    for _ in range(100):
        try:
            state = Path(f"/proc/{other}/stat").read_text().split()[2]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.05)
    raise AssertionError("it still runs")
