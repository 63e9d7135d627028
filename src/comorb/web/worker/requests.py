"""What the server sends to its workers: functions to call, with the data or the run they are about.

A task is a `functools.partial` of a function in `cohorts`, `downloads` or `tasks`. The server knows
the functions of `cohorts` and `tasks` by name alone: those modules load all that computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from comorb.runs.spec import RunSpec

Rules = dict[str, Any]
View = Literal["full", "protected"]
Task = partial[Any]


@dataclass(frozen=True)
class Data:
    """Data to read: where they are, how they are read, and which columns are outcomes.

    ``folder`` is where the cohorts are kept, and the users' maps of codes; ``outcomes`` are all
    when None.
    """

    source: str
    kind: str
    folder: str
    reading: Rules
    title: str
    outcomes: list[str] | None = None


@dataclass(frozen=True)
class RunPart:
    """A part of a run, by the run's folder: the cluster of a number, or a region of its map.

    The map is drawn from the records of the run ``of``.
    """

    folder: str
    cluster: int | None
    region: list[list[float]] | None = None
    of: RunRequest | None = None


@dataclass(frozen=True)
class RunRequest:
    """A run to make, or one that is made, and its folder.

    The cohort follows from the ``data`` and the ``rules``. ``earlier`` are the folders of runs
    whose numbers and names are kept. A merge of two clusters, a split of one, or a ``record`` moved
    to a ``cluster``, starts from the run in ``parent``, whose model's clusters have the numbers in
    ``groups``. The secret that counts are protected with is in the ``workspace``.
    """

    data: Data
    rules: Rules
    spec: RunSpec
    folder: str
    workspace: str
    min_cell: int
    within: RunPart | None = None
    earlier: tuple[str, ...] = ()
    parent: str | None = None
    groups: list[int] | None = None
    record: str = ""
    cluster: int | None = None
    named_from: int = 0  # the fewest records of a code that the rules may name
    own_groups: list[int] | None = None  # the numbers of its own model's clusters, once made


@dataclass(frozen=True)
class Counted:
    """How many records a run is on, reported while it is made."""

    records: int


class _Module:
    """A module that only workers load; what it has as attributes calls its functions there."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Task:
        return partial(_call, self._name, name)


def _call(module: str, function: str, *args: Any, **given: Any) -> Any:
    return getattr(import_module(f"comorb.web.worker.{module}"), function)(*args, **given)


if TYPE_CHECKING:
    from comorb.web.worker import cohorts as cohorts
    from comorb.web.worker import tasks as tasks
else:
    cohorts, tasks = _Module("cohorts"), _Module("tasks")
