"""Worker: a warm, isolated process that does one task at a time; killing it cancels the task."""

from __future__ import annotations

import ctypes
import errno
import logging
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from comorb.errors import ComorbError, lacks_memory
from comorb.records.sources.files import Limits, set_limits
from comorb.web.worker.requests import Counted, Task

if TYPE_CHECKING:
    from comorb.runs.progress import Progress

_NETWORK = frozenset(
    f"socket.{name}"
    for name in ("__new__", "connect", "bind", "sendto", "sendmsg", "getaddrinfo", "gethostbyname")
)
# The kernel's: its name of a kind of processor, and the number of the call that makes a socket.
_MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
_URING, _OTHER_CALLS = 425, 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EACCES
_NO_NEW_RIGHTS, _SECCOMP, _FILTER = 38, 22, 2


@dataclass(frozen=True)
class Bounds:
    """What a worker may have; 0 is without a limit.

    The system refuses a process more than ``memory``. The server ends one that holds more than
    ``resident``, as compiled threads don't recover from a refusal.
    """

    memory: int = 0  # bytes that its process, and each that it starts, may allocate
    resident: int = 0  # bytes that its process may hold
    limits: Limits = field(default_factory=Limits)  # of what it reads
    folder: str = ""  # for temporary files; the system's folder if empty


def isolate(bounds: Bounds) -> None:
    """Bind this process, and those that it starts, for good."""
    if bounds.folder:
        os.environ["TMPDIR"] = tempfile.tempdir = bounds.folder
    set_limits(bounds.limits)
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core would hold records
        if bounds.memory:
            resource.setrlimit(resource.RLIMIT_AS, (bounds.memory, bounds.memory))
    if hasattr(os, "uname"):
        with suppress(OSError):  # Linux ends it before the server when memory is short
            Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")
    close_network()


def resident(process: int) -> int:
    """Return the bytes of memory that a process alone holds; 0 where the system doesn't say."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()
        return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError, IndexError):
        return 0


def close_network() -> None:
    """Refuse sockets: to Python everywhere, and on Linux to native code and programs it starts."""
    sys.addaudithook(_refuse_network)
    if hasattr(os, "uname") and sys.platform == "linux":
        if known := _MACHINES.get(os.uname().machine):
            _refuse_calls(*known)


def _refuse_network(event: str, _: object) -> None:
    if event in _NETWORK:
        raise PermissionError(errno.EACCES, "Workers have no network.")


class _Instruction(ctypes.Structure):
    """One step of a filter of calls."""

    _fields_ = (
        ("code", ctypes.c_ushort),
        ("yes", ctypes.c_ubyte),
        ("no", ctypes.c_ubyte),
        ("k", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    """A filter of calls."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.POINTER(_Instruction)))


def _refuse_calls(machine: int, socket: int) -> None:
    """Have the kernel refuse the calls that make a socket, and those of another machine's kind."""
    steps = [
        _Instruction(_LOAD, 0, 0, 4),  # the kind of processor
        _Instruction(_EQUAL, 0, 5, machine),
        _Instruction(_LOAD, 0, 0, 0),  # the number of the call
        _Instruction(_AT_LEAST, 3, 0, _OTHER_CALLS),
        _Instruction(_EQUAL, 2, 0, socket),
        _Instruction(_EQUAL, 1, 0, _URING),  # which makes sockets too
        _Instruction(_RETURN, 0, 0, _ALLOW),
        _Instruction(_RETURN, 0, 0, _REFUSE),
    ]
    program = _Program(len(steps), (_Instruction * len(steps))(*steps))
    kernel = ctypes.CDLL(None).prctl
    word = ctypes.c_ulong
    kernel.argtypes = (ctypes.c_int, word, ctypes.c_void_p, word, word)
    if kernel(_NO_NEW_RIGHTS, 1, None, 0, 0) == 0:
        kernel(_SECCOMP, _FILTER, ctypes.addressof(program), 0, 0)


_SECONDS = 0.2  # between looks at how much memory a process holds
_log = logging.getLogger("comorb.worker")


@dataclass(frozen=True)
class Answer:
    """What a task returned."""

    value: Any


class TaskError(ComorbError):
    """A task that can't be done, with the message of the error that stopped it."""


class OutOfMemoryError(TaskError):
    """A task that ran out of memory; its process may have none left, and is ended."""


class StoppedError(ComorbError):
    """A task whose process was ended before it was done."""


class Worker:
    """One process, started when it is first needed; tasks wait for each other."""

    def __init__(self, nice: int = 0, bounds: Bounds | None = None) -> None:
        self._nice, self._bounds = nice, bounds or Bounds()
        self._folder: Path | None = None
        self._turn = threading.Lock()
        self._state = threading.Lock()
        self.closed = False
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None

    def ask(self, task: Task, report: Callable[[Progress | Counted], None] | None = None) -> Any:
        """Do a task and return what it returns; one that reports its progress takes a ``report``.

        One that can't be done is a `TaskError`, whose message can be shown; a `StoppedError` says
        that the process was ended meanwhile.
        """
        with self._turn:
            if self._bounds.resident and self._resident() > self._bounds.resident // 2:
                self.stop()  # so that what earlier tasks left leaves the next one its whole share
            pipe = self._started()
            try:
                pipe.send((task, report is not None))
                while True:
                    self._watch(pipe)
                    message = pipe.recv()
                    if isinstance(message, OutOfMemoryError):
                        self.stop()
                    if isinstance(message, TaskError):
                        raise message
                    if isinstance(message, Answer):
                        return message.value
                    if report is not None:
                        report(message)
            except (EOFError, OSError):
                self.stop()
                raise StoppedError("task.stopped") from None

    def _resident(self) -> int:
        process = self._process
        return resident(process.pid) if process is not None and process.pid else 0

    def _watch(self, pipe: Connection) -> None:
        """Wait for a message; end a process that holds more memory than it may."""
        most = self._bounds.resident
        while most and self._process is not None and not pipe.poll(_SECONDS):
            if self._resident() > most:
                self.stop()
                raise OutOfMemoryError("task.memory", gb=most / 1000000000.0)

    def warm(self) -> None:
        """Start the process, so that the first task needn't wait for it."""
        self._started()

    def stop(self) -> None:
        """End the process and what it is doing; the next task starts another."""
        with self._state:
            if self._process is not None:
                _terminate(self._process)
                self._process.join(5)
                if self._process.is_alive():
                    self._process.kill()
                    self._process.join(5)
            self._process = None
            self._remove_folder()

    def close(self) -> None:
        """End the process for good."""
        self.closed = True
        self.stop()

    def _remove_folder(self) -> None:
        """Remove the temporary folder of a process that ended."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None

    def _started(self) -> Connection:
        with self._state:
            if self.closed:
                raise StoppedError("task.closing")
            if self._process is None or not self._process.is_alive() or self._pipe is None:
                self._remove_folder()
                bounds = self._bounds
                if bounds.folder:
                    self._folder = Path(bounds.folder) / token_hex(6)
                    self._folder.mkdir(mode=0o700, parents=True)
                    bounds = replace(bounds, folder=str(self._folder))
                spawn = multiprocessing.get_context("spawn")
                self._pipe, theirs = spawn.Pipe()
                given = (theirs, self._nice, bounds)
                self._process = spawn.Process(target=_work, args=given, daemon=True)
                self._process.start()
                theirs.close()
            return self._pipe


def _terminate(process: multiprocessing.process.BaseProcess) -> None:
    """End a process with those that it started, where they are a group of their own."""
    if hasattr(os, "killpg") and process.pid and process.is_alive():
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGTERM)
    process.terminate()


def _work(pipe: Connection, nice: int, bounds: Bounds) -> None:
    """Do tasks until the other side is gone."""
    if multiprocessing.parent_process():
        isolate(bounds)
        if hasattr(os, "setsid"):
            os.setsid()
    if hasattr(os, "nice"):
        os.nice(nice)
    import comorb.web.worker.tasks  # noqa: F401 - before the first task comes

    while True:
        try:
            task, reports = pipe.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        try:
            answer: Answer | TaskError = Answer(task(report=pipe.send) if reports else task())
        except Exception as error:
            answer = _refusal(error)
        pipe.send(answer)


def _refusal(error: Exception) -> TaskError:
    lacking = lacks_memory(error)
    if isinstance(error, ComorbError):
        return (OutOfMemoryError if lacking else TaskError)(error.message)
    if lacking:
        return OutOfMemoryError("task.no_memory")
    _log.error("%s\n%s", type(error).__name__, frames(error))
    return TaskError("task.unexpected", type=type(error).__name__)


def frames(error: BaseException) -> str:
    """Return where an error came from, frame by frame, without the values of any variable."""
    calls = traceback.extract_tb(error.__traceback__)
    return "\n".join(f"  {Path(call.filename).name}:{call.lineno} {call.name}" for call in calls)
