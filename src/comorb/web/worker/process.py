"""Worker: a warm process that does one task at a time; killing it is how a task is cancelled.

Messages are JSON both ways: {"task", "arguments"} goes in; any number of {"told"} and then one
{"result"} or {"error"} come out.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from comorb.errors import ComorbError

Told = Callable[[dict[str, Any]], None]


class TaskError(ComorbError):
    """A task that can't be done, in the words of the error that says why."""


class StoppedError(ComorbError):
    """A task whose process was ended before it was done."""


class Worker:
    """One process, started when it is first needed; tasks wait for each other."""

    def __init__(self, nice: int = 0) -> None:
        self._nice = nice
        self._turn = threading.Lock()
        self._state = threading.Lock()
        self.closed = False
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None

    def ask(self, task: str, arguments: dict[str, Any], told: Told | None = None) -> Any:
        """Do a task and return what it returns.

        Raises
        ------
        TaskError
            When it can't be done; the message can be shown.
        StoppedError
            When the process was ended meanwhile.
        """
        with self._turn:
            pipe = self._started()
            try:
                pipe.send_bytes(json.dumps({"task": task, "arguments": arguments}).encode())
                while True:
                    message = json.loads(pipe.recv_bytes())
                    if "error" in message:
                        raise TaskError(message["error"])
                    if "result" in message:
                        return message["result"]
                    if told is not None:
                        told(message["told"])
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
                self._process.terminate()
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
                self._process = spawn.Process(target=_work, args=(theirs, self._nice), daemon=True)
                self._process.start()
                theirs.close()
            return self._pipe


def _work(pipe: Connection, nice: int) -> None:
    """Answer tasks until the other side is gone."""
    if hasattr(os, "nice"):
        os.nice(nice)
    warnings.simplefilter("ignore")
    from comorb.web.worker import tasks

    def told(what: dict[str, Any]) -> None:
        pipe.send_bytes(json.dumps({"told": what}).encode())

    while True:
        try:
            message = json.loads(pipe.recv_bytes())
        except (EOFError, OSError, KeyboardInterrupt):
            return
        try:
            answer = {"result": tasks.TASKS[message["task"]](message["arguments"], told)}
        except ComorbError as error:
            answer = {"error": str(error)}
        except MemoryError:
            answer = {"error": "There is not enough memory for this; choose a smaller cohort."}
        except Exception as error:
            answer = {"error": f"This can't be done: an unexpected {type(error).__name__}."}
        pipe.send_bytes(json.dumps(answer).encode())
