"""What the process of a worker may have: no network, so much memory, a folder of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from comorb.web.worker.isolation import Bounds, resident
from comorb.web.worker.messages import Data, ListCodes
from comorb.web.worker.process import OutOfMemoryError, Worker

SLOW = ListCodes(Data("heart_failure", "builtin", "", {}, ""), {})
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
    bound = "from comorb.web.worker.isolation import Bounds, isolate; isolate(Bounds()); "
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
    worker.ask(SLOW)
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
            worker.ask(SLOW)
    worker.close()


@LINUX
def test_what_earlier_tasks_left_in_memory_is_not_held_against_the_next():
    worker = Worker(bounds=Bounds(resident=1_500_000_000))
    worker.ask(SLOW)
    first = worker._process.pid
    assert resident(first) > 50_000_000
    worker.ask(SLOW)
    assert worker._process.pid == first
    worker._bounds = Bounds(resident=2 * resident(first) - 1)
    worker.ask(SLOW)
    assert worker._process.pid != first
    worker.close()


def test_what_a_process_holds_is_nothing_where_there_is_none():
    assert resident(2**22 + 1) == 0
