"""Worker: a warm process that does one task at a time; killing it is how a task is cancelled.

A task of `messages` goes in; any number of messages on how far it is, and then an `Answer` or a
`TaskError`, come out.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import shutil
import signal
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from comorb.errors import ComorbError, lacks_memory
from comorb.web.worker.isolation import Bounds, isolate, resident
from comorb.web.worker.messages import Counted, Task

if TYPE_CHECKING:
    from comorb.insight.runs.progress import Progress

_NO_MEMORY = "There is not enough memory for this; choose fewer records, or ask for more memory."
_SECONDS = 0.2  # between looks at how much memory a process holds
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

    def __init__(self, nice: int = 0, bounds: Bounds | None = None) -> None:
        self._nice, self._bounds = nice, bounds or Bounds()
        self._folder: Path | None = None
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
            self._empty()
            pipe = self._started()
            try:
                pipe.send(task)
                while True:
                    self._watch(pipe)
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

    def _empty(self) -> None:
        """End a process that holds much of earlier tasks, so that the next has its whole share."""
        most, process = self._bounds.resident, self._process
        if most and process is not None and process.pid and resident(process.pid) > most // 2:
            self.stop()

    def _watch(self, pipe: Connection) -> None:
        """Wait for a message; end a process that holds more memory than it may."""
        most, process = self._bounds.resident, self._process
        while most and process is not None and not pipe.poll(_SECONDS):
            if process.pid and resident(process.pid) > most:
                self.stop()
                raise OutOfMemoryError(
                    f"This takes more than {most / 1e9:.3g} GB of memory, which is the most here; "
                    "choose fewer records or codes, or ask for more memory."
                )

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

    def _new_folder(self) -> str:
        """Return a folder for what a process needs for a while; it goes with the process."""
        self._remove_folder()
        if not self._bounds.folder:
            return ""
        self._folder = Path(self._bounds.folder) / token_hex(6)
        self._folder.mkdir(mode=0o700, parents=True)
        return str(self._folder)

    def _remove_folder(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None

    def _started(self) -> Connection:
        with self._state:
            if self.closed:
                raise StoppedError("The server is closing; start the task again later.")
            if self._process is None or not self._process.is_alive() or self._pipe is None:
                spawn = multiprocessing.get_context("spawn")
                self._pipe, theirs = spawn.Pipe()
                bounds = replace(self._bounds, folder=self._new_folder())
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
    """Answer tasks until the other side is gone."""
    if multiprocessing.parent_process():
        isolate(bounds)
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
        except Exception as error:
            answer = _refusal(task, error)
        pipe.send(answer)


def _refusal(task: Task, error: Exception) -> TaskError:
    lacking = lacks_memory(error)
    if isinstance(error, ComorbError):
        return (OutOfMemoryError if lacking else TaskError)(str(error))
    if lacking:
        return OutOfMemoryError(_NO_MEMORY)
    _log.error("%s in %s\n%s", type(error).__name__, type(task).__name__, frames(error))
    return TaskError(f"This can't be done: an unexpected {type(error).__name__}.")


def frames(error: BaseException) -> str:
    """Return where an error came from, frame by frame, without what it or any variable holds."""
    calls = traceback.extract_tb(error.__traceback__)
    return "\n".join(f"  {Path(call.filename).name}:{call.lineno} {call.name}" for call in calls)
