"""Requests between the server and its workers: tasks, answers and progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from comorb.runs.spec import RunSpec

Rules = dict[str, Any]
View = Literal["full", "protected"]


@dataclass(frozen=True)
class Data:
    """Data to read: where they are, how they are read, and which columns are outcomes.

    ``folder`` is where what was read is kept, and the maps of codes that were given; ``outcomes``
    are all when None.
    """

    source: str
    kind: str
    folder: str
    reading: Rules
    title: str
    outcomes: list[str] | None = None


@dataclass(frozen=True)
class Inside:
    """A part of a run, by the run's folder: the cluster of a number, or a region of its map.

    The records of the run ``of`` which there is a map are those it was made of.
    """

    folder: str
    cluster: int | None
    region: list[list[float]] | None = None
    of: MakeRun | None = None


@dataclass(frozen=True)
class Task:
    """Something that a worker is asked to do."""


@dataclass(frozen=True)
class KeepSecret(Task):
    """Make the secret that counts are protected with, where the workspace has none."""

    workspace: str


@dataclass(frozen=True)
class MakeRun(Task):
    """A run to make and its folder.

    ``spec`` is what was asked for; the cohort follows from the ``data`` and the ``rules``.
    ``earlier`` are the folders of runs whose numbers and names go on. A merge of two clusters, a
    split of one into several, or a ``record`` moved to a ``cluster``, starts from the run in
    ``parent``, whose model's clusters go by the numbers in ``groups``. The secret that counts are
    protected with is in the ``workspace``.
    """

    data: Data
    rules: Rules
    spec: RunSpec
    folder: str
    workspace: str
    min_cell: int
    within: Inside | None = None
    earlier: tuple[str, ...] = ()
    parent: str | None = None
    groups: list[int] | None = None
    record: str = ""
    cluster: int | None = None
    named_from: int = 0  # records that a code has at least which the rules may name
    own_groups: list[int] | None = (
        None  # what the clusters of its own fitted model go by, once made
    )


@dataclass(frozen=True)
class Understand(Task):
    """Read data and say what they were understood to be."""

    data: Data
    min_cell: int


@dataclass(frozen=True)
class DescribeColumns(Task):
    """Say what each column of data is that couldn't be read."""

    data: Data
    min_cell: int


@dataclass(frozen=True)
class ReadMap(Task):
    """Read a map of codes to groups and say what it holds."""

    path: str


@dataclass(frozen=True)
class ListCodes(Task):
    """List the codes that rules make of data."""

    data: Data
    rules: Rules


@dataclass(frozen=True)
class MatchCodes(ListCodes):
    """Say how many of these codes, of ``least`` records or more, each part of texts stands for."""

    texts: list[str]
    least: int = 0


@dataclass(frozen=True)
class CountCohort(Task):
    """Count the records and codes that rules leave."""

    data: Data
    rules: Rules


@dataclass(frozen=True)
class CountProtected(CountCohort):
    """Count them so that nothing is told of a few; the secret is in the ``workspace``."""

    workspace: str
    min_cell: int


@dataclass(frozen=True)
class MeasureStability(Task):
    """Find out how stable the clusters of a finished run are."""

    run: MakeRun


@dataclass(frozen=True)
class ExplainRecord(Task):
    """Say where one record of a run belongs, by its id."""

    run: MakeRun
    record: str
    language: str = "en"


@dataclass(frozen=True)
class SplitRun(Task):
    """Cut the records of a run in slices; counts below ``min_cell`` are not told, all with 0."""

    run: MakeRun
    min_cell: int
    by: str


@dataclass(frozen=True)
class ShowSlice(SplitRun):
    """Write the profile of one slice to a file; ``groups`` are those of the run itself."""

    label: str
    path: str
    groups: list[int] | None = None
    language: str = "en"


@dataclass(frozen=True)
class DrawMap(Task):
    """Count the records of a run in the cells of its map, by cluster or something else."""

    run: MakeRun
    by: str
    min_cell: int


@dataclass(frozen=True)
class OfRun(Task):
    """Something about a finished run; counts below ``min_cell`` are not told, all with 0."""

    folder: str
    min_cell: int


@dataclass(frozen=True)
class ShowProfile(OfRun):
    """Write the document that a view of a run shows, in a language."""

    language: str = "en"


@dataclass(frozen=True)
class NoteStability(OfRun):
    """Write the stability of a run's clusters into its profile."""

    stability: tuple[float, ...]


@dataclass(frozen=True)
class NameClusters(OfRun):
    """Give clusters other names, by their numbers."""

    names: dict[int, str]


@dataclass(frozen=True)
class ExplainCodes(OfRun):
    """Say where a record with some codes belongs."""

    codes: list[str]
    language: str = "en"


@dataclass(frozen=True)
class RankDiagnoses(OfRun):
    """List the n most relevant diagnoses of each cluster for a λ."""

    lam: float
    n: int
    language: str = "en"


@dataclass(frozen=True)
class AssignFile(OfRun):
    """Write the cluster of each record of a file to another file."""

    records: str
    path: str


@dataclass(frozen=True)
class NoteClusters(OfRun):
    """Write what people noted of clusters, by their numbers: note, owner and pathway."""

    notes: dict[int, dict[str, str]]


@dataclass(frozen=True)
class AssignData(OfRun):
    """Put the records of data into the clusters of a run; ``path`` is where a worklist goes.

    The secret is in the ``workspace``; fewer records than ``fewest`` are refused.
    """

    data: Data
    workspace: str
    fewest: int
    path: str = ""


@dataclass(frozen=True)
class WriteDownload(OfRun):
    """Write one download of a run to a file; ``name`` is one that ``downloads`` lists.

    In a ``language``; a board's has its ``site``, its ``day`` as 2026-01-31, and ``starred``
    outcomes, else all.
    """

    path: str
    name: str
    title: str
    language: str = "en"
    site: str = ""
    day: str = ""
    starred: tuple[str, ...] = ()


@dataclass(frozen=True)
class CompareRuns(Task):
    """Put two runs side by side, protected with a ``min_cell``; ``follow`` records of both.

    The secret is in the ``workspace``.
    """

    one: str
    two: str
    follow: bool
    workspace: str
    min_cell: int
    language: str = "en"


@dataclass(frozen=True)
class Counted:
    """How many records a run is on, told while it is made."""

    records: int
