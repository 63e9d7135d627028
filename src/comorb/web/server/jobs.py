"""Jobs: the queue of runs, their fits one after the other, and their progress.

Fits have a process of their own, and two others answer from finished runs, so that a fit never
keeps a page waiting. Two more read records (`readers`), and one measures stability later.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comorb.fields import rules_of
from comorb.messages import Message
from comorb.profiles.rounded import round_count
from comorb.runs.spec import RunSpec
from comorb.web.server.readers import CancelScope, Readers
from comorb.web.server.security import RefusedError
from comorb.web.server.store import Row, Store
from comorb.web.worker.downloads import document, write_document
from comorb.web.worker.process import Bounds, StoppedError, TaskError, Worker
from comorb.web.worker.requests import (
    Counted,
    Data,
    RunPart,
    RunRequest,
    Task,
    View,
    cohorts,
    tasks,
)

if TYPE_CHECKING:
    from comorb.runs.progress import Progress


class FairQueue:
    """Keys that wait; one thread takes them, the oldest of each user in turn."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: OrderedDict[str, deque[str]] = OrderedDict()
        self._closed = False

    def put(self, user: str, key: str) -> None:
        """Let a key of a user wait."""
        with self._changed:
            self._waiting.setdefault(user, deque()).append(key)
            self._changed.notify()

    def get(self) -> str | None:
        """Wait for a key and return it, or None once the queue is closed.

        A user with more keys goes to the end.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if self._closed:
                return None
            user, keys = self._waiting.popitem(last=False)
            key = keys.popleft()
            if keys:
                self._waiting[user] = keys
            return key

    def before(self, key: str) -> list[str]:
        """Return the keys that are taken before one that waits, in their order."""
        with self._changed:
            turns = [turn for keys in self._waiting.values() for turn in enumerate(keys)]
        keys = [one for _, one in sorted(turns, key=lambda turn: turn[0])]
        return keys[: keys.index(key)] if key in keys else []

    def close(self) -> None:
        """Return no more keys."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


_RATE = {True: 1.2e-3, False: 2e-5}  # seconds a record, before there is a run to learn from
_FOUND = 0.55  # the share of its time after which a run on very many records has its clusters
_CHOSEN = 50_000  # records beyond which choosing a number takes no longer
_SECONDS = 0.5  # between looks at whether a run is still wanted
_KEPT = 600  # seconds for which what was deleted can be brought back
_MOST = 20  # runs that a user may have waiting
_OPTIONS = tuple(rule.name for rule in rules_of(RunSpec) if rule.web)  # that a row has
_EARLIER = 5  # runs back that a cluster's number and name are looked for


@dataclass
class _Pace:
    """How far a run is: its stage, when it started, how long it may take, its records."""

    stage: str
    started: float
    expected: float
    records: int | None = None


class Jobs:
    """The queue of runs and the processes that do the work."""

    def __init__(
        self,
        store: Store,
        min_cell: int,
        readers: Readers | None = None,
        bounds: Bounds | None = None,
        site: str = "",
    ) -> None:
        self.store, self.min_cell, self.site = store, min_cell, site
        self._fits, self._later = Worker(bounds=bounds), Worker(10, bounds)
        self._readers, self._answering = readers or Readers(), Readers(bounds)
        self._changes = threading.Lock()  # of what is kept of a run's profile
        self._waiting, self._unmeasured = FairQueue(), FairQueue()
        self._progress: dict[str, _Pace] = {}
        self._cancelled: set[str] = set()
        self._closing = threading.Event()
        self._turn = threading.Lock()  # a run starts, or is cancelled before it does
        self._records: dict[str, str] = {}
        self._threads = [
            threading.Thread(target=self._serve, args=job, daemon=True)
            for job in ((self._waiting, self._fit), (self._unmeasured, self._measure))
        ]
        self._threads.append(threading.Thread(target=self._end_unwanted, daemon=True))

    def start(self) -> None:
        """Warm the processes up and take up what an earlier server left undone."""
        for row in reversed(self.store.list("runs")):
            if row["state"] in ("queued", "running"):
                self.put(row["id"])
            elif row["state"] == "done" and not row.get("measured"):
                self._unmeasured.put(row["owner"], row["id"])
        for thread in self._threads:
            thread.start()
        self._fits.warm()
        threading.Thread(target=self._make_secret, daemon=True).start()

    def _make_secret(self) -> None:
        """Have the secret of the workspace made; a task that needs it reports what is wrong."""
        with suppress(StoppedError, TaskError):
            self.ask(partial(cohorts.make_secret, str(self.store.workspace)), CancelScope(""))

    def close(self) -> None:
        """End the processes; runs that are not done are taken up at the next start."""
        self._closing.set()
        for workers in (self._fits, self._answering, self._later, self._readers):
            workers.close()
        self._waiting.close()
        self._unmeasured.close()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(10)

    def put(self, key: str, record: str = "") -> None:
        """Put a run in the queue; the id of a record to move is never written to the store."""
        self._records[key] = record
        row = self.store.change("runs", key, {"state": "queued"})
        if row is not None:
            self._waiting.put(row["owner"], key)

    def check_queue(self, user: str) -> None:
        """Refuse a user who has many runs waiting already."""
        rows = [row for row in self.store.list("runs") if row["owner"] == user]
        if sum(row["state"] in ("queued", "running") for row in rows) >= _MOST:
            raise RefusedError(429, "run.queue_full", n=_MOST)

    def cancel(self, key: str) -> None:
        """Stop a run that is waiting or running."""
        with self._turn:
            row = self.store.get("runs", key) or {"state": "gone"}
            if row["state"] == "running":
                self._cancelled.add(key)
                self._fits.stop()
            elif row["state"] == "queued":
                self.store.change("runs", key, {"state": "cancelled"})

    def _end_unwanted(self) -> None:
        """Stop the fit of a run that was ended elsewhere, as when its user was removed.

        What was deleted long enough ago is removed.
        """
        looked = 0.0
        while not self._closing.wait(_SECONDS):
            if time.monotonic() - looked > _KEPT / 10:
                looked = time.monotonic()
                self.store.remove_aside(_KEPT)
            with self._turn:
                for key in list(self._progress):
                    row = self.store.get("runs", key)
                    if row is not None and row["state"] == "cancelled":
                        self._cancelled.add(key)
                        self._fits.stop()

    def ask(self, task: Task, scope: CancelScope) -> Any:
        """Do a task about a finished run for a user."""
        return self._answering.ask(task, scope)

    def change(self, task: Task, scope: CancelScope) -> Any:
        """Change what is kept of a finished run: one change after the other, so none is lost."""
        return self._answering.ask(task, scope, self._changes)

    def read(self, task: Task, scope: CancelScope) -> Any:
        """Do a task that reads records for a user."""
        return self._readers.ask(task, scope)

    def progress(self, key: str) -> dict[str, Any]:
        """Return the state of a run: its stage, the share done, the seconds left if known."""
        row = self.store.get("runs", key) or {"state": "gone"}
        pace = self._progress.get(key)
        plain: dict[str, Any] = {"state": row["state"], "measured": bool(row.get("measured"))}
        if row["state"] == "failed":
            plain["message"] = row["message"]
        if row["state"] == "queued":
            earlier = [self.store.get("runs", one) for one in self._waiting.before(key)]
            queued = sum(one is not None and one["state"] == "queued" for one in earlier)
            plain["before"] = len(self._progress) + queued
        if row["state"] == "running" and pace:
            spent = time.monotonic() - pace.started
            plain |= {
                "stage": pace.stage,
                "records": pace.records,
                "done": round(min(spent / pace.expected, 0.98), 3),
                "left": max(round(pace.expected - spent, 1), 0) or None,
            }
        return plain

    def data_of(self, row: Row) -> Data:
        """Return what a task needs to read some data."""
        folder = self.store.folder("data", row["id"])
        return Data(
            source=row["source"] if row["kind"] != "upload" else str(folder / row["source"]),
            kind=row["kind"],
            folder=str(folder),
            reading=row["reading"],
            title=row["title"],
            outcomes=row.get("outcomes"),
        )

    def folder_of(self, key: str) -> str:
        """Return the folder of a run, as tasks take it."""
        return str(self.store.folder("runs", key))

    def least(self, view: View) -> int:
        """Return the smallest count that a view shows; 0 where it shows all."""
        return 0 if view == "full" else self.min_cell

    def document(self, key: str, view: View, scope: CancelScope) -> Path:
        """Return a view of the profile of a run, in the user's language, as a JSON file."""
        folder, least, language = self.folder_of(key), self.least(view), scope.language
        path = document(folder, least, language)
        if not path.exists():
            self.change(partial(write_document, folder, least, language), scope)
        return path

    def _serve(self, waiting: FairQueue, job: Any) -> None:
        while (key := waiting.get()) is not None and not self._fits.closed:
            with suppress(StoppedError, TaskError):
                job(key)

    def _fit(self, key: str) -> None:
        with self._turn:
            row = self.store.get("runs", key)
            if row is None or row["state"] != "queued":
                return
            automatic = isinstance(row["k"], str)
            started = time.monotonic()
            data = self.store.get("data", row["data"])
            size = ((data or {}).get("about") or {}).get("records")
            pace = _Pace("reading", started, self._expected(automatic, size))
            self._progress[key] = pace
            self.store.change("runs", key, {"state": "running"})

        def report(message: Progress | Counted) -> None:
            if key in self._cancelled:
                self._fits.stop()
            if isinstance(message, Counted):
                pace.records = message.records
                pace.expected = self._expected(automatic, round_count(message.records, 1))
            else:
                pace.stage = message.stage
                if message.left is not None:
                    pace.expected = (time.monotonic() - started + message.left) / _FOUND

        try:
            if data is None:
                raise TaskError("run.data_deleted")
            if row.get("cluster") is not None and not self._records.get(key):
                raise TaskError("run.move_interrupted")
            done = self._fits.ask(partial(tasks.make_run, self.request(row, data)), report)
        except StoppedError:
            ended: Row = {"state": "failed", "message": Message("run.ended_early")}
            if key in self._cancelled:
                ended = {"state": "cancelled"}
            elif self._fits.closed:
                ended = {"state": "queued"}
            self.store.change("runs", key, ended)
            return
        except TaskError as error:
            self.store.change("runs", key, {"state": "failed", "message": error.message})
            return
        finally:
            self._progress.pop(key, None)
            self._cancelled.discard(key)
            self._records.pop(key, None)
        seconds = round(time.monotonic() - started, 2)
        self.store.change("runs", key, {"state": "done", "seconds": seconds, **done})
        self._unmeasured.put(row["owner"], key)

    def request(self, row: Row, data: Row) -> RunRequest:
        """Return what a task needs to make a run, or to read the records of one."""
        parent, within = self.store.get("runs", row["parent"] or ""), row["within"]
        return RunRequest(
            data=self.data_of(data),
            rules=row["rules"],
            spec=RunSpec.from_dict({one: row[one] for one in _OPTIONS if row.get(one) is not None}),
            folder=self.folder_of(row["id"]),
            workspace=str(self.store.workspace),
            min_cell=self.min_cell,
            within=within and self._part(within),
            earlier=tuple(self.folder_of(key) for key in self._earlier(row)),
            parent=self.folder_of(row["parent"]) if parent else None,
            groups=parent.get("groups") if parent else None,
            record=self._records.get(row["id"], ""),
            cluster=row.get("cluster"),
            named_from=row.get("named_from", 0),
            own_groups=row.get("groups"),
        )

    def _part(self, within: Row) -> RunPart:
        """Return the part of a run that another one is inside of."""
        region, of = within.get("region"), None
        above = self.store.get("runs", within["run"])
        data = self.store.get("data", above["data"]) if above else None
        if region and above and data:
            of = self.request(above, data)
        return RunPart(self.folder_of(within["run"]), within.get("cluster"), region, of)

    def _earlier(self, row: Row) -> list[str]:
        """Return the runs whose numbers and names a run keeps, the last one first."""
        keys: list[str] = []
        before = self.store.get("runs", row["parent"] or "")
        while before and before["within"] == row["within"] and len(keys) < _EARLIER:
            keys += [before["id"]] if before["state"] == "done" else []
            before = self.store.get("runs", before["parent"] or "")
        return keys

    def _measure(self, key: str) -> None:
        row = self.store.get("runs", key)
        data = self.store.get("data", row["data"]) if row else None
        if row is None or data is None:
            return
        if row.get("groups") or row.get("moved"):
            self.store.change("runs", key, {"measured": True})
            return
        request = self.request(row, data)
        try:
            measured = self._later.ask(partial(tasks.measure_stability, request))
            if measured is not None:
                note = partial(tasks.note_stability, request.folder, self.min_cell, measured)
                self.change(note, CancelScope(""))
        finally:
            if not self._later.closed:
                self.store.change("runs", key, {"measured": True})

    def _expected(self, automatic: bool, records: int | None = None) -> float:
        """Return how many seconds a run may take, from the last one of its kind."""
        for row in self.store.list("runs"):
            if row["state"] == "done" and isinstance(row["k"], str) == automatic:
                rate = float(row["seconds"]) / int(row["records"])
                return max(rate * (records or row["records"]), 1.0) + 0.5
        size = records or 20_000
        choosing = _RATE[True] * min(size, _CHOSEN) if automatic else 0.0
        return max(choosing + _RATE[False] * size, 1.0) + 0.5
