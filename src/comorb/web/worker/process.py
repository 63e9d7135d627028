"""Worker: a warm process that does one task at a time; killing it is how a task is cancelled.

A task of `messages` goes in; any number of messages on how far it is, and then an `Answer` or a
`TaskError`, come out.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comorb.errors import ComorbError
from comorb.web.worker.messages import Counted, Task

if TYPE_CHECKING:
    from comorb.insight.runs.progress import Progress

_NO_MEMORY = "There is not enough memory for this; choose fewer records, or ask for more memory."
_log = logging.getLogger("comorb.worker")


@dataclass(frozen=True)
class Answer:
    """What a task returned."""

    value: Any


class TaskError(ComorbError):
    """A task that can't be done, in the words of the error that says why."""


class OutOfMemoryError(TaskError):
    """A task that memory didn't suffice for; its process may have none left, and is ended."""


class StoppedError(ComorbError):
    """A task whose process was ended before it was done."""


class Worker:
    """One process, started when it is first needed; tasks wait for each other."""

    def __init__(self, nice: int = 0, memory: int = 0) -> None:
        self._nice, self._memory = nice, memory  # bytes; 0 is without a limit
        self._turn = threading.Lock()
        self._state = threading.Lock()
        self.closed = False
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None

    def ask(self, task: Task, tell: Callable[[Progress | Counted], None] | None = None) -> Any:
        """Do a task and return what it returns.

        One that can't be done is a `TaskError`, whose message can be shown; a `StoppedError` says
        that the process was ended meanwhile.
        """
        with self._turn:
            pipe = self._started()
            try:
                pipe.send(task)
                while True:
                    message = pipe.recv()
                    if isinstance(message, OutOfMemoryError):
                        self.stop()
                    if isinstance(message, TaskError):
                        raise message
                    if isinstance(message, Answer):
                        return message.value
                    if tell is not None:
                        tell(message)
            except (EOFError, OSError):
                self.stop()
                raise StoppedError(
                    "The task was stopped before it was done; start it again."
                ) from None

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
            self._process = None

    def close(self) -> None:
        """End the process for good."""
        self.closed = True
        self.stop()

    def _started(self) -> Connection:
        with self._state:
            if self.closed:
                raise StoppedError("The server is closing; start the task again later.")
            if self._process is None or not self._process.is_alive() or self._pipe is None:
                spawn = multiprocessing.get_context("spawn")
                self._pipe, theirs = spawn.Pipe()
                given = (theirs, self._nice, self._memory)
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


def _limit(memory: int) -> None:
    """Let this process and those that it starts have so many bytes each, where that can be said."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    except (ImportError, ValueError, OSError):
        return


def _work(pipe: Connection, nice: int, memory: int = 0) -> None:
    """Answer tasks until the other side is gone."""
    if memory:
        _limit(memory)
    if hasattr(os, "setsid") and multiprocessing.parent_process():
        os.setsid()
    if hasattr(os, "nice"):
        os.nice(nice)
    from comorb.web.worker import tasks

    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        try:
            answer: Answer | TaskError = Answer(tasks.do(task, pipe.send))
        except ComorbError as error:
            answer = TaskError(str(error))
        except MemoryError:
            answer = OutOfMemoryError(_NO_MEMORY)
        except Exception as error:
            _log.error("%s in %s\n%s", type(error).__name__, type(task).__name__, frames(error))
            answer = TaskError(f"This can't be done: an unexpected {type(error).__name__}.")
        pipe.send(answer)


def frames(error: BaseException) -> str:
    """Return where an error came from, frame by frame, without what it or any variable holds."""
    calls = traceback.extract_tb(error.__traceback__)
    return "\n".join(f"  {Path(call.filename).name}:{call.lineno} {call.name}" for call in calls)
