"""The process that does the work: errors without data, stopping, memory, no network."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from comorb.errors import TooLargeError
from comorb.web.worker import cohorts, downloads, requests
from comorb.web.worker.process import (
    Bounds,
    OutOfMemoryError,
    StoppedError,
    TaskError,
    Worker,
    _terminate,
    _work,
    resident,
)
from comorb.web.worker.requests import Data

DATA = Data("heart_failure", "builtin", "", {}, "")
CODES = partial(cohorts.list_codes, DATA, {})


@pytest.fixture(scope="module")
def worker():
    worker = Worker()
    yield worker
    worker.close()


def test_a_task_is_done_again_and_again(worker):
    worker.warm()
    assert worker.ask(CODES) == worker.ask(CODES)


def test_an_error_of_ours_is_told_whole(worker):
    with pytest.raises(TaskError, match="There is no profile"):
        worker.ask(partial(downloads.write_document, "nowhere", 11, "en"))


def test_an_error_that_nobody_foresaw_is_told_without_what_it_holds(worker):
    broken = partial(cohorts.list_codes, Data("patient 7", "builtin", "", {}, ""), {})
    with pytest.raises(TaskError, match=r"^This can't be done: an unexpected KeyError\.$"):
        worker.ask(broken)


def test_an_error_that_nobody_foresaw_is_logged_with_its_frames_alone(capfd):
    worker = Worker()
    with pytest.raises(TaskError):
        worker.ask(partial(cohorts.list_codes, Data("patient 7", "builtin", "", {}, ""), {}))
    worker.close()
    logged = capfd.readouterr().err
    assert "KeyError\n" in logged
    assert "list_codes\n  cohorts.py:" in logged
    assert "patient 7" not in logged


def test_a_stopped_task_says_so_and_the_next_one_is_done(worker):
    errors = []

    def ask():
        try:
            worker.ask(partial(time.sleep, 60))
        except (StoppedError, TaskError) as error:
            errors.append(type(error))

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.2)
    worker.stop()
    thread.join(30)
    assert errors == [StoppedError]
    assert worker.ask(CODES)[0][0] == "428"


def test_a_closed_worker_takes_no_more_tasks():
    worker = Worker()
    worker.close()
    with pytest.raises(StoppedError, match="closing"):
        worker.ask(CODES)


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
    def fail(data, rules):
        raise error

    monkeypatch.setattr(cohorts, "list_codes", fail)
    ours, theirs = multiprocessing.Pipe()
    process = threading.Thread(target=_work, args=(theirs, 0, Bounds()))
    process.start()
    ours.send((partial(requests.cohorts.list_codes, DATA, {}), False))
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


LINUX = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux tells it")
ATTACKS = {
    "a socket": "socket.socket()",
    "a connection": "made.connect(('127.0.0.1', 9))",
    "a name": "socket.getaddrinfo('localhost', 9)",
    "a server": "made.bind(('127.0.0.1', 0))",
    "a message": "made.sendto(b'1', ('127.0.0.1', 9))",
}
NATIVE = {
    "a library": "import ctypes; sys.exit(ctypes.CDLL(None).socket(2, 1, 0) >= 0)",
    "a program": "import subprocess; "
    "sys.exit(not subprocess.run([sys.executable, '-c', 'import socket; socket.socket()'],"
    " stderr=subprocess.DEVNULL).returncode)",
}


def isolated(code: str) -> subprocess.CompletedProcess:
    before = "import socket, sys; made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
    bound = "from comorb.web.worker.process import Bounds, isolate; isolate(Bounds()); "
    command = [sys.executable, "-c", before + bound + code]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_worker_has_no_network(attack):
    done = isolated(ATTACKS[attack])
    assert done.stderr.endswith("PermissionError: [Errno 13] Workers have no network.\n")


@pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine not in ("x86_64", "aarch64"),
    reason="only Linux refuses it to native code",
)
@pytest.mark.parametrize("attack", NATIVE)
def test_neither_has_native_code_nor_a_program_that_it_starts(attack):
    done = isolated(NATIVE[attack])
    assert done.returncode == 0, done.stderr


def test_what_needs_no_network_works_in_a_worker():
    done = isolated(
        "import os, tempfile; tempfile.TemporaryFile(); os.pipe(); print(socket.gethostname())"
    )
    assert done.returncode == 0, done.stderr


@LINUX
def test_a_worker_that_is_started_is_bound(tmp_path):
    worker = Worker(bounds=Bounds(folder=str(tmp_path)))
    worker.ask(CODES)
    status = Path(f"/proc/{worker._process.pid}/status").read_text()
    assert status.partition("Seccomp:")[2].split()[0] == "2"
    assert Path(f"/proc/{worker._process.pid}/oom_score_adj").read_text().strip() == "500"
    assert len(list(tmp_path.iterdir())) == 1
    worker.close()
    assert list(tmp_path.iterdir()) == []


@LINUX
def test_a_task_that_holds_more_memory_than_it_may_ends_with_a_sentence():
    worker = Worker(bounds=Bounds(resident=30_000_000))
    said = r"takes more than 0\.03 GB of memory, which is the most here; choose fewer records"
    for _ in range(2):
        with pytest.raises(OutOfMemoryError, match=said):
            worker.ask(CODES)
    worker.close()


@LINUX
def test_what_earlier_tasks_left_in_memory_is_not_held_against_the_next():
    worker = Worker(bounds=Bounds(resident=1_500_000_000))
    worker.ask(CODES)
    first = worker._process.pid
    assert resident(first) > 50_000_000
    worker.ask(CODES)
    assert worker._process.pid == first
    worker._bounds = Bounds(resident=2 * resident(first) - 1)
    worker.ask(CODES)
    assert worker._process.pid != first
    worker.close()


def test_what_a_process_holds_is_nothing_where_there_is_none():
    assert resident(2**22 + 1) == 0
